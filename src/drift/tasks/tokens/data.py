"""Tables of sentences to training data: tags, labelled and unlabelled words, dev and test."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from drift.data.batches import ranges, some_rows
from drift.data.labels import UNLABELED, known_labels
from drift.data.sentence_formats import Wanted, adapted, sentence_columns
from drift.data.sentences import Sentences, read_sentences
from drift.data.table_splits import split_table
from drift.data.tags import OUTSIDE, split_tag, tag_set
from drift.errors import ConfigError, LabelError
from drift.tasks.tokens.decoding import restart_odds
from drift.tasks.tokens.filled import with_filled_tags
from drift.tasks.tokens.settings import TokenDataSettings

if TYPE_CHECKING:
    from drift.weak.token_diagnostics import TokenSummary


PARTS = ("train", "unlabeled", "dev", "test")


@dataclass(frozen=True)
class TaggedSentences:
    """Sentences with one tag per word.

    codes: of all words, sentence after sentence, `(words,)`. unknown: tags that training lacks, coded after the others.
    notes: a warning about them.
    """

    sentences: Sentences
    codes: np.ndarray
    unknown: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def sizes(self) -> np.ndarray:
        return sizes_of(self.sentences)


@dataclass(frozen=True)
class TokenData:
    """The data of a run on words.

    classes: all tags. entities: whether they are B- and I-, or plain names of slots.
    sentences: those of train, then those of the unlabelled table.
    gold, weak: tag codes of all words, -1 for none.
    train_words: number of words in train. Rules and weak tags cover only these.
    notes: what a user should know. rules: diagnostics of the rules that gave the weak tags.
    """

    classes: list[str]
    entities: bool
    sentences: Sentences
    gold: np.ndarray
    weak: np.ndarray | None
    train_words: int
    dev: TaggedSentences | None
    test: TaggedSentences | None
    notes: list[str]
    rules: "TokenSummary | None" = None

    @property
    def scheme(self) -> str:
        return "IOB2" if self.entities else "IO"

    @property
    def outside(self) -> int:
        return self.classes.index(OUTSIDE)

    @cached_property
    def restart(self) -> float:
        """How rarely an entity begins right after another one, in the tags to learn from; see `restart_odds`."""
        codes = self.gold if self.weak is None else self.weak
        return restart_odds(codes, sizes_of(self.sentences), self.classes, entities=self.entities)


def read_token_data(settings: TokenDataSettings, sources: Mapping[str, Any], *, seed: int) -> TokenData:
    """Read all tables. sources: train, unlabeled, dev, test and rules, as paths or objects."""
    if settings.split:
        sources = {**sources, **split_table(sources["train"], settings.split, encoding=settings.encoding)}
    tables = {part: sources[part] for part in PARTS if sources.get(part) is not None}
    read, column_notes = _read_all(tables, settings)
    train, others = read["train"], {part: table for part, table in read.items() if part != "train"}
    train, more, filled_notes = with_filled_tags(train, others.get("unlabeled"), sources, settings)
    weak, summary = train.weak, None
    if settings.rules is not None:
        weak, summary = rule_tags(train, rules_of(settings, sources), train.scheme)
    is_weak = settings.is_weak
    name_notes: list[str] = []
    if settings.classes:
        from drift.tasks.tokens.names import with_names

        weak, name_notes = with_names(train, [None] * len(train) if weak is None else list(weak), settings)
    learned = [*(weak if is_weak else train.labels), *(() if more is None else more.labels)]
    classes = _classes(train, learned, "weak tag" if is_weak else "tag")
    gold_tags = train.labels
    if is_weak:  # gold tags only measure; a type without weak tags cannot be learned
        gold_tags = [tags and [tag if tag in classes else None for tag in tags] for tags in train.labels]
    gold, weak_codes = _codes(train, gold_tags, classes), _codes(train, weak, classes) if is_weak else None
    sentences, notes = train, [*settings.recognition_notes(), *column_notes, *train.notes, *filled_notes, *name_notes]
    kept = some_rows(len(train), settings.train_rows, seed=seed)
    if kept is not None:
        words = words_of(sizes_of(train), kept)
        sentences, gold = train.select(kept), gold[words]
        weak_codes = None if weak_codes is None else weak_codes[words]
    if settings.labeled_rows is not None and not is_weak:
        gold = _keep_sentences(gold, sizes_of(sentences), settings.labeled_rows, seed)
    train_words = len(gold)
    if more is not None:
        sentences = _joined(sentences, more)
        codes = _codes(more, more.labels, classes)  # none but those that were filled in
        gold = np.concatenate([gold, codes])
        weak_codes = None if weak_codes is None else np.concatenate([weak_codes, codes])
    dev = tagged_sentences(others["dev"], classes, settings.dev_rows, seed) if "dev" in others else None
    test = None
    if "test" in others:  # dev selects the model, so its tags must be right; test also measures what training lacks
        test = tagged_sentences(others["test"], classes, settings.test_rows, seed, refuse=False)
        notes += test.notes
    notes += _overlaps(sentences, {"dev": dev, "test": test})
    return TokenData(classes, train.scheme != "IO", sentences, gold, weak_codes, train_words, dev, test, notes, summary)


def sizes_of(sentences: Sentences) -> np.ndarray:
    """Number of words of each sentence."""
    return np.array([len(words) for words in sentences.tokens], dtype=np.int64)


def words_of(sizes: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Numbers of the words of these sentences, counted through all sentences."""
    return ranges((np.cumsum(sizes) - sizes)[rows], sizes[rows])


def _read_all(tables: Mapping[str, Any], settings: TokenDataSettings) -> tuple[dict[str, Sentences], list[str]]:
    """All tables by part, and notes about columns that have other names in some of them."""

    @cache
    def elsewhere() -> set[str]:
        return {name for source in tables.values() for name in sentence_columns(source, settings.encoding)}

    read, notes = {}, []
    for part, source in tables.items():
        label, weak = settings.label, settings.weak or ""
        if part != "train" and not _has_both(sentence_columns(source, settings.encoding), label, weak, settings):
            weak = ""
        if part == "unlabeled" or (part == "train" and weak and _is_of_held_out(label, weak, tables, settings)):
            label = ""
        wanted = Wanted(settings.tokens, label, weak)
        chosen, part_notes = adapted(wanted, source, elsewhere, settings.encoding)
        notes += part_notes
        read[part] = read_sentences(
            source,
            tokens=chosen.tokens,
            label=chosen.label,
            weak=chosen.weak,
            encoding=settings.encoding,
            scheme=settings.scheme,
        )
    if not settings.is_weak and any(read["train"].labels):
        names = sentence_columns(tables["train"], settings.encoding)
        notes += [
            f"column {name!r} is ignored, as there are gold tags; --weak {name} uses it instead"
            for name in names
            if name in settings.weak_names and name != settings.label
        ]
    return read, notes


def _has_both(names: Sequence[str], label: str | None, weak: str, settings: TokenDataSettings) -> bool:
    """Whether a table has these weak tags beside gold ones, so that they can be scored."""
    labels = [label] if label else settings.label_names
    return weak in names and any(name in names for name in labels if name != weak)


def _is_of_held_out(label: str | None, weak: str, tables: Mapping[str, Any], settings: TokenDataSettings) -> bool:
    """Whether a label column was named that only dev and test have: in train it is missing, or holds the weak tags."""
    if not label or not {"dev", "test"}.intersection(tables):
        return False
    return label == weak or label not in sentence_columns(tables["train"], settings.encoding)


def rules_of(settings: TokenDataSettings, sources: Mapping[str, Any]) -> Any:
    """The rules of a run as a TokenRuleSet; None without rules."""
    rules = settings.rules if sources.get("rules") is None else sources["rules"]
    if rules is None:
        return None
    from drift.weak.arguments import as_rules
    from drift.weak.token_rules import TokenRuleSet

    return as_rules(rules, TokenRuleSet)


def rule_tags(sentences: Sentences, rules: Any, scheme: str) -> "tuple[list[list[str | None] | None], TokenSummary]":
    """The tags that rules give to sentences, and diagnostics of the rules. rules: a file or a TokenRuleSet."""
    from drift.weak.token_labeling import label_tokens

    gold = sentences.labels if scheme == "IOB2" else None  # plain slots have no spans to score
    result = label_tokens(sentences.tokens, rules, gold=gold, texts=sentences.texts)
    if scheme == "IOB2":
        return list(result.tags), result.summary
    return [[split_tag(tag, "IOB2")[1] or tag for tag in tags] for tags in result.tags], result.summary


def _classes(train: Sentences, tags: Iterable[Sequence[str | None] | None], tag_name: str) -> list[str]:
    """All possible tags."""
    types = {split_tag(tag, train.scheme)[1] for sentence in tags for tag in sentence or ()} - {""}
    if not types:
        raise LabelError(
            f"{train.name}: no word has a {tag_name} other than {OUTSIDE}; name their column with --label or --weak,"
            " or give rules that find some"
        )
    return tag_set(types, train.scheme)


def _codes(part: Sentences, tags: Sequence[Sequence[str | None] | None], classes: list[str]) -> np.ndarray:
    code_of = {tag: code for code, tag in enumerate(classes)}
    codes = np.full(int(sizes_of(part).sum()), UNLABELED, dtype=np.int64)
    first = 0
    for row, (words, sentence) in enumerate(zip(part.tokens, tags, strict=True)):
        for word, tag in enumerate(sentence or ()):
            if tag is None:
                continue
            if tag not in code_of:
                raise LabelError(
                    f"{part.name}, sentence {row + 1}: tag {tag!r} of {words[word]!r} is not among the training tags"
                    f" ({', '.join(classes)}); add training words or a rule with this tag, or take it out"
                )
            codes[first + word] = code_of[tag]
        first += len(words)
    return codes


def _keep_sentences(gold: np.ndarray, sizes: np.ndarray, wanted: int, seed: int) -> np.ndarray:
    """Keep the tags of `wanted` sentences, drawn by seed, and remove all others."""
    labeled = np.flatnonzero(np.add.reduceat(gold != UNLABELED, np.cumsum(sizes) - sizes))
    if wanted > len(labeled):
        raise ConfigError(f"data.labeled_rows={wanted}, but {len(labeled)} sentences have tags; ask for fewer")
    words = words_of(sizes, np.random.default_rng(seed).permutation(labeled)[:wanted])
    kept = np.full_like(gold, UNLABELED)
    kept[words] = gold[words]
    return kept


def tagged_sentences(
    part: Sentences, classes: list[str], rows: int | None = None, seed: int = 0, *, refuse: bool = True
) -> TaggedSentences:
    """The sentences with tags, to score on; each of their words must have one.

    rows: use at most this many. refuse: raise LabelError for a tag that training lacks; otherwise it is counted.
    """
    labeled = np.array([row for row, tags in enumerate(part.labels) if tags is not None], dtype=np.int64)
    if not len(labeled):
        raise LabelError(f"{part.name}: none of the {len(part)} sentences has tags to score against; name their column")
    for row in labeled:
        if (tags := part.labels[row]) is not None and None in tags:
            raise LabelError(
                f"{part.name}, sentence {row + 1}: {part.tokens[row][tags.index(None)]!r} has no tag; to score against,"
                f" every word needs one, {OUTSIDE} if it is in no entity"
            )
    chosen = some_rows(len(labeled), rows, seed=seed)
    if refuse:
        _codes(part, part.labels, classes)
    part = part.select(labeled if chosen is None else labeled[chosen])
    flat = [tag for tags in part.labels for tag in tags or ()]
    known = known_labels(flat, classes, part.name, refuse=refuse, unit="words", neutral=OUTSIDE)
    return TaggedSentences(part, known.codes, known.unknown, known.notes)


def _joined(first: Sentences, second: Sentences) -> Sentences:
    """Both, without tags or raw text: the tags of the first are codes by now."""
    tokens = [*first.tokens, *second.tokens]
    return replace(
        first, tokens=tokens, labels=[None] * len(tokens), weak=[None] * len(tokens), texts=None, offsets=None
    )


def _overlaps(train: Sentences, held_out: dict[str, TaggedSentences | None]) -> list[str]:
    """A warning for each held-out table that shares sentences with train."""
    seen = {tuple(words) for words in train.tokens}
    notes = []
    for name, part in held_out.items():
        if part is not None and (shared := sum(tuple(words) in seen for words in part.sentences.tokens)):
            notes.append(f"warning: {shared:,} {name} sentences are in train too, word for word; scores are too good")
    return notes
