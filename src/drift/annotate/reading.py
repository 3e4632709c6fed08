"""What a labelling session starts from: texts, and the labels, noisy labels and predictions that exist already."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from drift.annotate.state import Class
from drift.data.columns import find_column
from drift.data.tables import column_names, read_chunks, source_name
from drift.data.text_tables import TextColumns, choose_columns, label_of, text_of
from drift.data.texts import checked
from drift.errors import ConfigError, DataError, ShapeError
from drift.training.progress import progress

if TYPE_CHECKING:
    from drift.models.embedding import Embedder
    from drift.weak import RuleSet

RULES = "rules"  # the name of the votes of rules among the noisy labels


@dataclass
class Pool:
    """Texts to label.

    source, columns, encoding: where they come from; columns is None for a list. usable: rows that have a text.
    given: labels of the table, by row. weak: noisy labels by source, None where there is none. run: predicts at first.
    """

    source: Any
    texts: list[str]
    encoding: str = "utf-8"
    columns: TextColumns | None = None
    given: dict[int, str] = field(default_factory=dict)
    weak: dict[str, list[str | None]] = field(default_factory=dict)
    run: Any = None

    def __post_init__(self) -> None:
        self.usable = np.array([row for row, text in enumerate(self.texts) if text.strip()], dtype=np.int64)
        if not len(self.usable):
            raise DataError(f"{source_name(self.source)} has no text to label")

    @property
    def given_names(self) -> list[str]:
        """The classes of the labels in the table, sorted."""
        return sorted(set(self.given.values()))

    @property
    def class_names(self) -> list[str]:
        """All classes that are known from labels, noisy labels and the run."""
        weak = {name for votes in self.weak.values() for name in votes if name is not None}
        run = [] if self.run is None else self.run.classes
        return list(dict.fromkeys([*run, *self.given_names, *sorted(weak)]))

    def vote(self) -> list[str | None]:
        """One noisy label per text: the commonest of all sources, None if there is none or they tie."""
        votes = []
        for row in range(len(self.texts)):
            two = Counter(each[row] for each in self.weak.values() if each[row] is not None).most_common(2)
            votes.append(two[0][0] if len(two) == 1 or (two and two[0][1] > two[1][1]) else None)
        return votes

    def votes_on(self, row: int) -> dict[str, str]:
        """The noisy labels of a text, by source."""
        return {source: vote for source, votes in self.weak.items() if (vote := votes[row]) is not None}

    def weak_codes(self, find: Callable[[str], Class | None]) -> tuple[np.ndarray, np.ndarray]:
        """Rows with a noisy label, and the class number of each."""
        pairs = [(row, found.id) for row, name in enumerate(self.vote()) if name and (found := find(name))]
        return np.array([row for row, _ in pairs], dtype=np.int64), np.array([c for _, c in pairs], dtype=np.int64)

    def embedded(self, vectors: np.ndarray | None, embedder: "Embedder | None", *, quiet: bool) -> np.ndarray:
        """Vectors of all texts, `(n, D)`: the given ones, or those of an embedder, from the cache if they are there."""
        if vectors is not None:
            if np.ndim(vectors) != 2 or len(vectors) != len(self.texts):
                raise ShapeError(
                    f"vectors has shape {np.shape(vectors)}; give one row for each of {len(self.texts)} texts"
                )
            return vectors
        assert embedder is not None
        return embedder.embed(self.texts, progress=partial(progress, shown=not quiet)).vectors


def text_embedder(encoder: str) -> "Embedder":
    """The embedder of `drift fit` for texts, with its default settings."""
    from drift.models.embedding import Embedder, longest
    from drift.models.late_encoder import late_encoder
    from drift.tasks import TASKS

    task = TASKS["text"]
    defaults = task.defaults(task.choose_kind({}, finetune=False), weak=False)["model"]
    settings: Any = task.model_settings(**{**defaults, "name": encoder})
    loaded = late_encoder(encoder)
    length = min(settings.max_length, longest(*loaded))
    return Embedder(encoder, max_length=length, pool=settings.pool, precision=settings.precision, loaded=loaded)


def read_pool(
    source: Any,
    *,
    text: str | None = None,
    label: str | None = None,
    weak: Sequence[str] = (),
    rules: Any = None,
    start_from: Any = None,
    encoding: str = "utf-8",
) -> Pool:
    """Read everything; arguments as of `Annotation`."""
    run = start_from
    if run is not None and not hasattr(run, "predict_proba"):
        from drift.runs.load import load

        run = load(run)
    if isinstance(source, (list, tuple)) and all(isinstance(each, str) for each in source):
        if weak or label:
            raise ConfigError("a list of texts has no columns; give a table, or leave label and weak out")
        pool = Pool("the list of texts", list(checked(source)), run=run)
        extra: dict[str, list[Any]] = {}
    else:
        pool, extra = _read_table(source, text, label, weak, encoding, rules)
        pool.run = run
    if rules is not None:
        from drift.weak import label as label_by_rules

        name = "text" if pool.columns is None else pool.columns.text
        found = label_by_rules({**extra, name: pool.texts}, _rule_set(rules), text=name)
        pool.weak[RULES] = list(found.labels)
    return pool


def _rule_set(rules: Any) -> "RuleSet":
    from drift.weak import RuleSet

    return rules if isinstance(rules, RuleSet) else RuleSet.from_file(rules)


def _read_table(
    source: Any, text: str | None, label: str | None, weak: Sequence[str], encoding: str, rules: Any
) -> tuple[Pool, dict[str, list[Any]]]:
    """The pool of a table, and the further columns that the rules read."""
    name, names = source_name(source), column_names(source, encoding=encoding)
    for column in weak:
        find_column(column, names, name)
    columns = choose_columns(source, text=text, label=label, weak=weak[0] if weak else None, encoding=encoding)
    wanted = [] if rules is None else [each for each in _rule_set(rules).columns if each != columns.text]
    extra: dict[str, list[Any]] = {find_column(each, names, name): [] for each in wanted}
    votes: dict[str, list[str | None]] = {column: [] for column in weak}
    texts: list[str] = []
    given: dict[int, str] = {}
    for chunk in read_chunks(source, encoding=encoding):
        cells = chunk.columns[columns.text]
        if columns.label is not None:
            labels = enumerate(map(label_of, chunk.columns[columns.label]), chunk.first)
            given.update({row: value for row, value in labels if value is not None})
        texts += [text_of(value, name, row) for row, value in enumerate(cells, chunk.first)]
        for column, values in votes.items():
            values += map(label_of, chunk.columns[column])
        for column, others in extra.items():
            others += chunk.columns[column]
    return Pool(source, texts, encoding, columns, given, dict(votes)), extra
