"""A word tokenizer with the interface of a Hugging Face tokenizer, saved as JSON."""

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
    """The lower-cased words of a text; each punctuation mark is a word."""
    return WORD.findall(text.lower())


class WordTokenizer:
    """Maps words to ids: 0 for padding, 1 for unknown words, then the vocabulary in order.

    words: the vocabulary. key: changes if the ids of a text would (see `drift.data.tokenized.Tokenizer`).
    """

    pad_token_id = PADDING

    def __init__(self, words: Sequence[str]) -> None:
        self.words = tuple(words)
        self.ids = {word: number for number, word in enumerate(self.words, FIRST_WORD)}
        self.key = content_key(self.words, FORMAT, WORD.pattern)

    @classmethod
    def from_texts(cls, texts: Iterable[str], *, min_count: int = 2) -> "WordTokenizer":
        """A tokenizer for the words that occur at least `min_count` times in the texts, the most frequent first."""
        counts: Counter[str] = Counter()
        for text in texts:
            counts.update(split_words(text))
        words = [word for word, count in counts.items() if count >= min_count]
        if not words:
            raise DataError(f"none of {len(counts)} words occurs {min_count} times; lower min_count or give more texts")
        return cls(sorted(words, key=lambda word: (-counts[word], word)))

    def __len__(self) -> int:
        """Number of ids, including padding and unknown."""
        return FIRST_WORD + len(self.words)

    def __call__(
        self, texts: Sequence[str], *, truncation: bool = False, max_length: int | None = None
    ) -> dict[str, list[list[int]]]:
        """`{"input_ids": [...]}`: one non-empty list of ids per text.

        truncation: whether to cut texts after `max_length` words.
        """
        most = max_length if truncation else None
        rows = ([self.ids.get(word, UNKNOWN) for word in split_words(text)[:most]] for text in texts)
        return {"input_ids": [row or [UNKNOWN] for row in rows]}

    def to_json(self) -> str:
        """The vocabulary as JSON, for `from_json`."""
        return json.dumps({"format": FORMAT, "words": self.words})

    @classmethod
    def from_json(cls, text: str) -> "WordTokenizer":
        """A tokenizer from the JSON of `to_json`; FileError if it is something else."""
        try:
            content = json.loads(text)
            form, words = content["format"], content["words"]
            if form != FORMAT or type(words) is not list or not all(isinstance(word, str) for word in words):
                raise ValueError(f"format {form!r}, words {type(words).__name__}")
        except (ValueError, KeyError, TypeError) as error:
            raise FileError(f"not a vocabulary written as {FORMAT} ({type(error).__name__}: {error})") from error
        return cls(words)
