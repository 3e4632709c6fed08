"""The sources of noisy labels of a run on texts: columns, rules and class names, read and combined."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from drift.data.columns import find_column
from drift.data.labels import UNLABELED
from drift.data.tables import column_names, read_chunks, source_name
from drift.data.text_tables import TextColumns, TextTable
from drift.errors import ConfigError, LabelError
from drift.models.embedding import Embedder
from drift.settings import listed
from drift.tasks.text.settings import TextDataSettings, TextModelSettings
from drift.weak import sources as weak_sources
from drift.weak.combining import Combined, combine
from drift.weak.names import NameVotes, class_vectors, name_votes
from drift.weak.sources import Cells, ColumnSource, Source

if TYPE_CHECKING:
    from drift.data.tokenized import Progress
    from drift.weak import RuleSet, Summary

NAMES, RULES = "class names", "rules"


@dataclass(frozen=True)
class Sources:
    """Sources of noisy labels for N texts, and what they say together.

    sources: in the order of the options; class names come last, once the texts have vectors. rules: diagnostics of the
    rules. rule_set: these rules. names: what the class names say. combined: None until there are votes.
    """

    classes: list[str]
    sources: tuple[Source, ...] = ()
    rules: "Summary | None" = None
    rule_set: "RuleSet | None" = None
    names: NameVotes | None = None
    combined: Combined | None = None
    notes: list[str] = field(default_factory=list)

    def rows(self, kept: np.ndarray) -> Self:
        """The same sources for only these texts."""
        return replace(self, sources=tuple(replace(each, votes=each.votes[kept]) for each in self.sources))

    def extended(self, more: int) -> Self:
        """The same sources for more texts at the end, on which columns and rules abstain."""
        blank = np.zeros((more, len(self.classes)), dtype=np.float32)
        return replace(
            self, sources=tuple(replace(each, votes=np.concatenate([each.votes, blank])) for each in self.sources)
        )

    def with_names(self, votes: NameVotes) -> Self:
        """The same sources and class names."""
        return replace(self, sources=(*self.sources, Source(NAMES, "names", votes.votes)), names=votes)

    def combine(self, settings: TextDataSettings, gold: np.ndarray | None) -> Self:
        """The same sources with their combined labels. gold: known classes that may help, `(N,)`."""
        used = [each for each in self.sources if weak_sources.says_something(each)] or list(self.sources)
        combined = combine([each.votes for each in used], method=settings.combine, gold=gold)
        accuracies = np.full(len(self.sources), np.nan)
        accuracies[[any(each is one for one in used) for each in self.sources]] = combined.accuracies
        notes = [note for each in self.sources for note in weak_sources.faults(each, self.classes)]
        notes += [] if self.names is None else self.names.faults
        return replace(self, combined=replace(combined, accuracies=accuracies), notes=notes)

    @property
    def codes(self) -> np.ndarray:
        """The combined label of each text, `(N,)`, -1 for none."""
        assert self.combined is not None
        return self.combined.codes

    @property
    def soft(self) -> np.ndarray | None:
        """The combined labels as distributions, `(N, C)`; None if all of them are certain."""
        assert self.combined is not None
        p = self.combined.probabilities
        return None if ((p == 0) | (p == 1)).all() else p.astype(np.float32)


def read_sources(
    settings: TextDataSettings, tables: Mapping[str, Any], train: TextTable, text: str, named: Collection[str]
) -> Sources:
    """The columns and rules that vote on the training texts.

    tables: the tables of the run, and the rules if they are an object. text: the column with the texts. named: classes
    that are known without a vote.
    """
    source, name = tables["train"], source_name(tables["train"])
    cells = _read_columns(settings, source, name)
    rule_set = None if settings.rules is None else _rule_set(tables, settings)
    by_rules: tuple[list[str | None], Summary] | None = None
    if rule_set is not None:
        by_rules = _apply_rules(rule_set, train, source, text, settings.encoding)
    from_rules = {label for label in by_rules[0] if label is not None} if by_rules else set()
    if settings.classes and (unknown := sorted({*named, *from_rules} - {*settings.classes})):
        raise LabelError(
            f"{name}: {unknown[0]!r} is a label, and not among the classes ({listed(sorted(settings.classes))});"
            " add it to --classes, or take these labels out"
        )
    classes = sorted(settings.classes) if settings.classes else weak_sources.classes_in(cells, {*named, *from_rules})
    if len(classes) < 2:  # the caller says what is wrong
        return Sources(classes)
    found = [weak_sources.votes_of(each, classes, name) for each in cells]
    if by_rules is not None:
        code_of = {label: code for code, label in enumerate(classes)}
        codes = np.array([code_of.get(str(label), UNLABELED) for label in by_rules[0]], dtype=np.int64)
        found.append(weak_sources.from_codes(RULES, "rules", codes, len(classes)))
    return Sources(classes, tuple(found), by_rules[1] if by_rules else None, rule_set)


def _read_columns(settings: TextDataSettings, source: Any, name: str) -> list[Cells]:
    names = column_names(source, encoding=settings.encoding)
    cells = [Cells(each) for each in column_sources(settings, names, name)]
    for chunk in read_chunks(source, encoding=settings.encoding) if cells else ():
        for each in cells:
            each.read(chunk.columns, chunk.first, name)
    return cells


def column_sources(settings: TextDataSettings, names: Sequence[str], name: str) -> list[ColumnSource]:
    """The columns that vote. names: of all columns of the training table. name: of the table, for messages."""
    sources = [ColumnSource.parse(text, names, name) for text in (settings.weak, *settings.more_weak) if text]
    given = [source.name for source in sources]
    if twice := next((each for each in given if given.count(each) > 1), None):  # it would count as two that agree
        raise ConfigError(f"--weak {twice} is given twice; name each column of weak labels once")
    return sources


def vote_by_names(
    settings: TextDataSettings, model: TextModelSettings, encoder: str, texts: Any, progress: "Progress | None"
) -> NameVotes:
    """What the class names say about texts. encoder: its name; the vectors are those that a head is trained on."""
    assert settings.classes is not None
    phrases = {name: settings.classes[name] for name in sorted(settings.classes)}
    pool = model.pool if encoder == model.name else "auto"
    embedder = Embedder.of(encoder, max_length=model.max_length, pool=pool, precision=model.precision)
    vectors = embedder.embed(texts, progress=progress).vectors
    return name_votes(vectors, class_vectors(phrases, lambda lines: embedder.rows(list(lines))), list(phrases))


def _rule_set(sources: Mapping[str, Any], settings: TextDataSettings) -> "RuleSet":
    """The rules of a run, from a file or as an object."""
    from drift.weak import RuleSet

    source = sources.get("rules")
    return source if isinstance(source, RuleSet) else RuleSet.from_file(str(settings.rules))


def _apply_rules(
    rules: "RuleSet", train: TextTable, source: Any, text: str, encoding: str
) -> tuple[list[str | None], "Summary"]:
    """Weak labels from rules, and diagnostics of the rules."""
    from drift.weak import label

    table: dict[str, list[Any]] = {name: [] for name in rules.columns}
    for chunk in read_chunks(source, encoding=encoding) if table else ():
        for name, values in table.items():
            values += chunk.columns[find_column(name, list(chunk.columns), train.name)]
    gold = train.labels if any(train.labels) else None
    result = label({**table, text: list(train.texts["text"])}, rules, text=text, gold=gold)
    return result.labels, result.summary


def plain_columns(columns: TextColumns) -> TextColumns:
    """The columns of texts and gold labels: those of weak labels are read as sources."""
    return replace(columns, weak=None)


def trains_on_gold(settings: TextDataSettings, labels: Sequence[str | None]) -> bool:
    """Whether gold labels of the training table are trained on beside other sources, or only measure them.

    Class names add to the labels that there are. But a table in which every row has a label needs no class names: then
    the labels are there to measure. Beside columns and rules alone, gold labels measure, as in the paper's experiments.
    """
    if settings.gold != "auto":
        return settings.gold == "train"
    if not settings.classes:
        return False
    return settings.labels_per_class is not None or (any(labels) and not all(labels))
