"""Tagged sentences for token classification, read from CoNLL files and tables."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from drift.data.sentence_formats import (
    Offsets,
    SentenceRow,
    Tags,
    Wanted,
    conll_rows,
    is_conll,
    table_rows,
    word_offsets,
)
from drift.data.tables import source_name
from drift.data.tags import faults, guess_scheme, split_tag, tag_fault, to_iob2
from drift.errors import DataError, LabelError

__all__ = ["Sentences", "read_sentences", "word_offsets"]


@dataclass(frozen=True)
class Sentences:
    """Sentences as tokens, with optional gold and weak tags.

    name: of the source, for messages. tokens: the words of each sentence. labels, weak: gold and weak tags of each
    sentence; None if none of its tokens has a tag. A tag of None means that this token has none. texts, offsets: the
    raw texts and the character range of each token, if the source has texts. scheme: of the tags, IOB2, or IO if they
    are plain names. notes: messages for the user.
    """

    name: str
    tokens: list[list[str]]
    labels: list[Tags | None]
    weak: list[Tags | None]
    texts: list[str] | None = None
    offsets: list[Offsets] | None = None
    scheme: str = "IOB2"
    notes: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.tokens)

    def select(self, rows: Iterable[int]) -> "Sentences":
        """The sentences with these numbers, in this order."""
        rows = list(rows)
        return replace(
            self,
            tokens=[self.tokens[row] for row in rows],
            labels=[self.labels[row] for row in rows],
            weak=[self.weak[row] for row in rows],
            texts=None if self.texts is None else [self.texts[row] for row in rows],
            offsets=None if self.offsets is None else [self.offsets[row] for row in rows],
        )


def read_sentences(
    source: Any,
    *,
    tokens: str | None = None,
    label: str | None = None,
    weak: str | None = None,
    encoding: str = "utf-8",
    scheme: str | None = None,
) -> Sentences:
    """Read tagged sentences. Tags are converted to IOB2; plain names stay.

    source: one of
    - a file of CoNLL columns (.conll, .bio, .iob or .txt, also with .gz): one token per line, columns separated by tabs
      or spaces, `_` for no tag, a blank line after each sentence; -DOCSTART- lines are skipped;
    - a table (see `drift.data.tables`) with a list of tokens per row, and lists of tags in other columns;
    - a table with one text per row, and lists of character spans, {"start": 0, "end": 5, "label": "LOC"} or
      [0, 5, "LOC"], which begin and end at the token boundaries of `word_offsets`. A token outside all weak spans has
      no weak tag: it is not O.
    tokens, label, weak: columns by name, or by number from 1 in CoNLL files. Defaults in CoNLL files: tokens in the
        first column, labels in the last. Defaults in tables: tokens, words or text; labels, ner_tags, tags, spans or
        entities; weak or weak_spans. label="" means that there are no labels.
    encoding: of text files.
    scheme: of gold and weak tags, one of `drift.data.tags.SCHEMES`; guessed from the tags by default.

    Sentences without tokens are left out; `notes` says how many.
    """
    wanted, name = Wanted(tokens, label, weak), source_name(source)
    all_rows = list(conll_rows(source, wanted, encoding) if is_conll(source) else table_rows(source, wanted, encoding))
    rows = [row for row in all_rows if row.tokens]
    if not rows:
        raise DataError(f"{name} has no tokens in it; give a file with at least one sentence")
    notes = []
    if left_out := len(all_rows) - len(rows):
        notes.append(f"{name}: {left_out} of {len(all_rows)} sentences have no tokens and are left out")
    raw = rows[0].offsets is not None
    scheme = "IOB2" if raw else scheme or guess_scheme(chain.from_iterable(map(_tagged, rows)))
    if misplaced := _misplaced(rows, scheme):
        notes.append(f"{name}: {len(misplaced)} tags are kept as they are, but {misplaced[0]}")
    return Sentences(
        name,
        [row.tokens for row in rows],
        [_stored(row.labels, scheme) for row in rows],
        [_stored(row.weak, scheme) for row in rows],
        [row.text or "" for row in rows] if raw else None,
        [row.offsets or [] for row in rows] if raw else None,
        "IO" if scheme == "IO" else "IOB2",
        notes,
    )


def _tagged(row: SentenceRow) -> list[Tags]:
    """The gold and the weak tags of a sentence, if it has them."""
    return [tags for tags in (row.labels, row.weak) if tags is not None]


def _misplaced(rows: list[SentenceRow], scheme: str) -> list[str]:
    """Messages about tags at positions that the scheme does not allow; LabelError for a tag that it does not know."""
    messages = []
    for row in rows:
        for tags in _tagged(row):
            for token, fault in faults(tags, scheme).items():
                messages.append(f"{row.place(token)}: {fault}")
                if tag_fault(tags[token], scheme):
                    raise LabelError(messages[-1])
    return messages


def _stored(tags: Tags | None, scheme: str) -> Tags | None:
    """The tags of a sentence in IOB2, or plain names for IO; None if no token has a tag."""
    if tags is None or all(tag is None for tag in tags):
        return None
    if scheme == "IO":
        return [split_tag(tag, scheme)[1] or tag for tag in tags]
    return to_iob2(tags, scheme)
