"""From a user's sentences to what a run learns from: tags, labelled and unlabelled words, dev and test."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from drift.data.batches import ranges
from drift.data.labels import UNLABELED
from drift.data.sentences import Sentences, read_sentences
from drift.data.splits import some_rows
from drift.data.tags import OUTSIDE, split_tag, tag_set
from drift.errors import ConfigError, LabelError
from drift.runs.config import TokenDataSettings

if TYPE_CHECKING:
    from drift.weak.token_diagnostics import TokenSummary


@dataclass(frozen=True)
class TaggedSentences:
    """Sentences with a tag for every word. codes: of all words, one sentence after another `(words,)`."""

    sentences: Sentences
    codes: np.ndarray

    @property
    def sizes(self) -> np.ndarray:
        return sizes_of(self.sentences)


@dataclass(frozen=True)
class TokenData:
    """sentences: train rows, then those of the unlabelled table. gold, weak: tags of all words, -1 for none.

    train_words: how many of these are of train, where weak tags were looked for. entities: whether tags are B- and I-,
    or plain names of slots. rules: how they do, for the report.
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


def read_token_data(settings: TokenDataSettings, sources: Mapping[str, Any], *, seed: int) -> TokenData:
    """Read all tables. sources: what train, unlabeled, dev and test are, paths or objects."""
    train = _read(sources["train"], settings, label=settings.label, weak=settings.weak or "")
    others = {
        kind: _read(source, settings, label="" if kind == "unlabeled" else settings.label)
        for kind, source in sources.items()
        if kind != "train" and source is not None
    }
    weak, summary = train.weak, None
    if settings.rules is not None:
        weak, summary = rule_tags(train, settings.rules, train.scheme)
    is_weak = settings.is_weak
    learned = weak if is_weak else train.labels
    classes = _classes(train, learned, "weak tag" if is_weak else "tag")
    gold_tags = train.labels
    if is_weak:  # gold tags are there to measure with, and a tag that no weak one names cannot be learned
        gold_tags = [tags and [tag if tag in classes else None for tag in tags] for tags in train.labels]
    gold, weak_codes = _codes(train, gold_tags, classes), _codes(train, weak, classes) if is_weak else None
    sentences, notes = train, list(train.notes)
    kept = some_rows(len(train), settings.train_rows, seed=seed)
    if kept is not None:
        words = words_of(sizes_of(train), kept)
        sentences, gold = train.select(kept), gold[words]
        weak_codes = None if weak_codes is None else weak_codes[words]
    if settings.labeled_rows is not None and not is_weak:
        gold = _forget(gold, sizes_of(sentences), settings.labeled_rows, seed)
    train_words = len(gold)
    if "unlabeled" in others:
        more = others["unlabeled"]
        sentences = _joined(sentences, more)
        blank = np.full(int(sizes_of(more).sum()), UNLABELED)
        gold = np.concatenate([gold, blank])
        weak_codes = None if weak_codes is None else np.concatenate([weak_codes, blank])
    dev = tagged_sentences(others["dev"], classes, settings.dev_rows, seed) if "dev" in others else None
    test = tagged_sentences(others["test"], classes, settings.test_rows, seed) if "test" in others else None
    notes += _overlaps(sentences, {"dev": dev, "test": test})
    return TokenData(classes, train.scheme != "IO", sentences, gold, weak_codes, train_words, dev, test, notes, summary)


def sizes_of(sentences: Sentences) -> np.ndarray:
    """Words of each sentence."""
    return np.array([len(words) for words in sentences.tokens], dtype=np.int64)


def words_of(sizes: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Which words these sentences have, counted through all sentences."""
    return ranges((np.cumsum(sizes) - sizes)[rows], sizes[rows])


def _read(source: Any, settings: TokenDataSettings, *, label: str | None, weak: str = "") -> Sentences:
    return read_sentences(
        source,
        tokens=settings.tokens,
        label=label,
        weak=weak,
        encoding=settings.encoding,
        scheme=settings.scheme,
    )


def rule_tags(sentences: Sentences, rules: str, scheme: str) -> "tuple[list[list[str | None] | None], TokenSummary]":
    """What the rules in a file say of sentences, and how they do."""
    from drift.weak.token_labeling import label_tokens

    gold = sentences.labels if scheme == "IOB2" else None  # plain slots have no spans to be right about
    found = label_tokens(sentences.tokens, rules, gold=gold, texts=sentences.texts)
    if scheme == "IOB2":
        return list(found.tags), found.summary
    return [[split_tag(tag, "IOB2")[1] or tag for tag in tags] for tags in found.tags], found.summary


def _classes(train: Sentences, tags: Iterable[Sequence[str | None] | None], kind: str) -> list[str]:
    """All tags there can be."""
    types = {split_tag(tag, train.scheme)[1] for sentence in tags for tag in sentence or ()} - {""}
    if not types:
        raise LabelError(
            f"{train.name}: no word has a {kind} other than {OUTSIDE}; name their column with --label or --weak,"
            " or give rules that find some"
        )
    return tag_set(types, train.scheme)


def _codes(part: Sentences, tags: Sequence[Sequence[str | None] | None], classes: list[str]) -> np.ndarray:
    place = {tag: code for code, tag in enumerate(classes)}
    codes = np.full(int(sizes_of(part).sum()), UNLABELED, dtype=np.int64)
    first = 0
    for row, (words, sentence) in enumerate(zip(part.tokens, tags, strict=True)):
        for word, tag in enumerate(sentence or ()):
            if tag is None:
                continue
            if tag not in place:
                raise LabelError(
                    f"{part.name}, sentence {row + 1}: tag {tag!r} of {words[word]!r} is not among the training tags"
                    f" ({', '.join(classes)}); have some training words or a rule say so, or take it out"
                )
            codes[first + word] = place[tag]
        first += len(words)
    return codes


def _forget(gold: np.ndarray, sizes: np.ndarray, wanted: int, seed: int) -> np.ndarray:
    """The tags of so many sentences, and none of the others."""
    labeled = np.flatnonzero(np.add.reduceat(gold != UNLABELED, np.cumsum(sizes) - sizes))
    if wanted > len(labeled):
        raise ConfigError(f"data.labeled_rows={wanted}, but {len(labeled)} sentences have tags; ask for fewer")
    words = words_of(sizes, np.random.default_rng(seed).permutation(labeled)[:wanted])
    kept = np.full_like(gold, UNLABELED)
    kept[words] = gold[words]
    return kept


def tagged_sentences(part: Sentences, classes: list[str], rows: int | None = None, seed: int = 0) -> TaggedSentences:
    """Sentences to score on: those with tags, and every word of them must have one. rows: no more than these."""
    labeled = np.array([row for row, tags in enumerate(part.labels) if tags is not None], dtype=np.int64)
    if not len(labeled):
        raise LabelError(f"{part.name}: none of the {len(part)} sentences has tags to score against; name their column")
    for row in labeled:
        if (tags := part.labels[row]) is not None and None in tags:
            raise LabelError(
                f"{part.name}, sentence {row + 1}: {part.tokens[row][tags.index(None)]!r} has no tag; to score against,"
                f" every word needs one, {OUTSIDE} if it is in no entity"
            )
    codes = _codes(part, part.labels, classes)
    chosen = some_rows(len(labeled), rows, seed=seed)
    labeled = labeled if chosen is None else labeled[chosen]
    return TaggedSentences(part.select(labeled), codes[words_of(sizes_of(part), labeled)])


def _joined(first: Sentences, second: Sentences) -> Sentences:
    """Both, as sentences without tags or raw text: those of the first are codes by now."""
    tokens = [*first.tokens, *second.tokens]
    return replace(
        first, tokens=tokens, labels=[None] * len(tokens), weak=[None] * len(tokens), texts=None, offsets=None
    )


def _overlaps(train: Sentences, held_out: dict[str, TaggedSentences | None]) -> list[str]:
    """A warning for each held-out table that shares sentences with train."""
    seen = {tuple(words) for words in train.tokens}
    found = []
    for name, part in held_out.items():
        if part is not None and (shared := sum(tuple(words) in seen for words in part.sentences.tokens)):
            found.append(f"warning: {shared:,} {name} sentences are in train too, word for word; scores are too good")
    return found
