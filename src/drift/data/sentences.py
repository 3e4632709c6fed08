"""Tagged sentences, from whatever a user has, for models that answer for every token."""

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
    """Sentences as tokens, with gold and weak tags where there are some.

    name: of the source, for messages. labels, weak: of each sentence, None where no token of it has a tag; a None
    inside: this token has none. scheme: of the tags, IOB2, or IO where they are plain names. texts, offsets: the raw
    texts and where their tokens begin and end, where the source had texts. notes: what to tell of the source.
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
        """These sentences, in this order."""
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
    """Read tagged sentences; their tags come as IOB2, plain names as they are.

    source: one of
    - a file of CoNLL columns (.conll, .bio, .iob or .txt, also with .gz): a token a line, columns between tabs or
      spaces, `_` where there is no tag, a blank line after each sentence; -DOCSTART- lines are passed over;
    - a table (see `drift.data.tables`) with a list of tokens a row, and lists of tags beside them;
    - a table with a text a row, and lists of {"start": 0, "end": 5, "label": "LOC"} or [0, 5, "LOC"] in characters,
      which begin and end where the tokens of `word_offsets` do. What no weak span covers has no weak tag: it is not O.
    tokens, label, weak: columns by name, or by number from 1 in CoNLL columns, where by default the first has tokens
    and the last labels. In tables they may be called tokens, words or text; labels, ner_tags, tags, spans or entities;
    weak or weak_spans. label: "" says that there is none.
    scheme: of gold and weak tags alike, one of `drift.data.tags.SCHEMES`; guessed from the tags if not given.
    A sentence without tokens is left out, and `notes` says how many were.
    """
    wanted, name = Wanted(tokens, label, weak), source_name(source)
    found = list(conll_rows(source, wanted, encoding) if is_conll(source) else table_rows(source, wanted, encoding))
    rows = [row for row in found if row.tokens]
    if not rows:
        raise DataError(f"{name} has no tokens in it; give a file with at least one sentence")
    notes = []
    if left_out := len(found) - len(rows):
        notes.append(f"{name}: {left_out} of {len(found)} sentences have no tokens and are left out")
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
    return [tags for tags in (row.labels, row.weak) if tags is not None]


def _misplaced(rows: list[SentenceRow], scheme: str) -> list[str]:
    """The tags that stand where the scheme does not allow them; tags that it does not know are refused."""
    found = []
    for row in rows:
        for tags in _tagged(row):
            for token, fault in faults(tags, scheme).items():
                found.append(f"{row.place(token)}: {fault}")
                if tag_fault(tags[token], scheme):
                    raise LabelError(found[-1])
    return found


def _stored(tags: Tags | None, scheme: str) -> Tags | None:
    if tags is None or all(tag is None for tag in tags):
        return None
    if scheme == "IO":
        return [split_tag(tag, scheme)[1] or tag for tag in tags]
    return to_iob2(tags, scheme)
