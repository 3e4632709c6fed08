"""Word counts of the texts of a corpus."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from drift.data.word_tokens import FIRST_WORD, WordTokenizer

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

TOO_COMMON = 0.2  # a word in a larger share of the texts does not indicate a class


@dataclass(frozen=True)
class WordCounts:
    """Word counts of a corpus.

    words: the vocabulary. counts: `(texts, V)`. lengths: words per text, including unknown ones.
    """

    words: tuple[str, ...]
    counts: "csr_matrix"
    lengths: np.ndarray

    @classmethod
    def of(cls, texts: Sequence[str], tokenizer: WordTokenizer) -> "WordCounts":
        """Count the words of texts. tokenizer: splits them and has the vocabulary."""
        from scipy.sparse import csr_matrix

        rows = tokenizer(texts)["input_ids"]
        lengths = np.array([len(row) for row in rows])
        starts = np.concatenate([[0], np.cumsum(lengths)])
        ids = np.concatenate([np.array(row) for row in rows])
        counts = csr_matrix((np.ones(len(ids)), ids, starts), (len(rows), len(tokenizer)))
        counts.sum_duplicates()
        return cls(tokenizer.words, counts[:, FIRST_WORD:], lengths)

    def totals(self) -> np.ndarray:
        """Number of occurrences of each word in all texts, `(V,)`."""
        return np.asarray(self.counts.sum(0)).ravel()

    def telling(self) -> np.ndarray:
        """Which words may indicate a class, `(V,)`: those that contain a letter and are not in too many texts."""
        in_texts = np.bincount(self.counts.indices, minlength=len(self.words))
        has_letter = np.array([any(map(str.isalpha, word)) for word in self.words])
        return has_letter & (in_texts <= TOO_COMMON * len(self.lengths))
