"""Find spans in a sentence of tokens: by patterns over the text, patterns over a token, or functions."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import index
from typing import Any

from drift.data.tags import OUTSIDE, Span, tags_of
from drift.errors import DataError, LabelError
from drift.settings import nearest
from drift.weak.python_rule import PythonRule
from drift.weak.schema import compile_pattern


@dataclass(frozen=True)
class Sentence:
    """A sentence.

    tokens: its tokens. text: the text that they were split from; None: the tokens joined by spaces. number: its number
    in error messages, from 1.
    """

    tokens: Sequence[str]
    text: str | None = None
    number: int = 1

    @cached_property
    def in_bytes(self) -> tuple[bytes, list[int], list[int]]:
        """The text, and the starts and ends of its tokens, in bytes as re2 counts them."""
        # Half a surrogate pair cannot be encoded in UTF-8, and no pattern can contain one either.
        tokens = [token.encode(errors="replace") for token in self.tokens]
        text = b" ".join(tokens) if self.text is None else self.text.encode(errors="replace")
        starts: list[int] = []
        ends: list[int] = []
        for token in tokens:
            after = ends[-1] if ends else 0
            start = text.find(token, after)
            if start < 0:
                raise DataError(
                    f"sentence {self.number}: the text does not have the token {token.decode()!r} where it should be"
                    f" ({text[after:].decode()[:20]!r}); give the text that was split into these tokens, or none"
                )
            starts.append(start)
            ends.append(start + len(token))
        return text, starts, ends


Finder = Callable[[Sentence], list[Span]]


def text_pattern(pattern: str, entity_type: str) -> Finder:
    """A finder of one span per match in the text. Matches that begin or end inside a token are ignored."""
    compiled = compile_pattern(pattern, case_sensitive=True)

    def find(sentence: Sentence) -> list[Span]:
        text, starts, ends = sentence.in_bytes
        spans = []
        for match in compiled.finditer(text):
            first, end = bisect_left(starts, match.start()), bisect_right(ends, match.end())
            cuts_first = first > 0 and ends[first - 1] > match.start()
            cuts_last = end < len(starts) and starts[end] < match.end()
            if first < end and not cuts_first and not cuts_last:
                spans.append(Span(first, end, entity_type))
        return spans

    return find


def token_pattern(pattern: str, entity_type: str) -> Finder:
    """A finder of one span per token that contains a match."""
    compiled = compile_pattern(pattern, case_sensitive=True)

    def find(sentence: Sentence) -> list[Span]:
        return [
            Span(position, position + 1, entity_type)
            for position, token in enumerate(sentence.tokens)
            if compiled.search(token.encode(errors="replace"))
        ]

    return find


def function_spans(rule: PythonRule, types: Collection[str]) -> Finder:
    """A finder that calls a function with the tokens, and checks that it returns spans that fit the sentence."""
    function: Any = rule.function

    def find(sentence: Sentence) -> list[Span]:
        prefix = f"sentence {sentence.number}: rule {rule.name!r}"
        try:
            answers = function(list(sentence.tokens)) or ()
            spans = [Span(index(start), index(end), entity_type) for start, end, entity_type in answers]
        except Exception as error:
            raise DataError(
                f"{prefix} failed ({type(error).__name__}: {error}); it must return a list of (start, end, type)"
            ) from error
        for span in spans:
            if span.type != OUTSIDE and span.type not in types:
                raise LabelError(f"{prefix} voted {span.type!r}{nearest(str(span.type), [*types, OUTSIDE])}")
        try:
            tags_of(spans, len(sentence.tokens))
        except LabelError as error:
            raise DataError(f"{prefix}: {error}") from error
        return spans

    return find
