"""Texts as word ids, for models that read words: called as a Hugging Face tokenizer is, and kept as JSON."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from drift.data.cache import content_key
from drift.errors import DataError, FileError

FORMAT = "drift-words/1"
PADDING, UNKNOWN = 0, 1
FIRST_WORD = 2
WORD = re.compile(r"\w+|[^\w\s]")


def split_words(text: str) -> list[str]:
    """Lower-cased words, each punctuation mark one of its own."""
    return WORD.findall(text.lower())


class WordTokenizer:
    """Ids for the words of a vocabulary, in its order, after 0 for padding and 1 for any other word."""

    pad_token_id = PADDING

    def __init__(self, words: Sequence[str]) -> None:
        self.words = tuple(words)
        self.ids = {word: number for number, word in enumerate(self.words, FIRST_WORD)}
        self.key = content_key(self.words, FORMAT, WORD.pattern)

    @classmethod
    def from_texts(cls, texts: Iterable[str], *, min_count: int = 2) -> "WordTokenizer":
        """The words that occur `min_count` times or more, the most frequent first."""
        counts: Counter[str] = Counter()
        for text in texts:
            counts.update(split_words(text))
        words = [word for word, count in counts.items() if count >= min_count]
        if not words:
            raise DataError(f"none of {len(counts)} words occurs {min_count} times; lower min_count or give more texts")
        return cls(sorted(words, key=lambda word: (-counts[word], word)))

    def __len__(self) -> int:
        """How many ids there are, padding and unknown included."""
        return FIRST_WORD + len(self.words)

    def __call__(
        self, texts: Sequence[str], *, truncation: bool = False, max_length: int | None = None
    ) -> dict[str, list[list[int]]]:
        """`{"input_ids": [...]}`, a list of ids for each text, cut at `max_length` where `truncation`; never empty."""
        most = max_length if truncation else None
        rows = ([self.ids.get(word, UNKNOWN) for word in split_words(text)[:most]] for text in texts)
        return {"input_ids": [row or [UNKNOWN] for row in rows]}

    def to_json(self) -> str:
        return json.dumps({"format": FORMAT, "words": self.words})

    @classmethod
    def from_json(cls, text: str) -> "WordTokenizer":
        try:
            content = json.loads(text)
            form, words = content["format"], content["words"]
            if form != FORMAT or type(words) is not list or not all(isinstance(word, str) for word in words):
                raise ValueError(f"format {form!r}, words {type(words).__name__}")
        except (ValueError, KeyError, TypeError) as error:
            raise FileError(f"not a vocabulary written as {FORMAT} ({type(error).__name__}: {error})") from error
        return cls(words)
