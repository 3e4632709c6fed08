"""Texts with a subject that need no download: first paragraphs of docstrings, by the module they are from.

Source files are parsed, never imported. The subject is the folder of the file, so that some texts do not show it.
"""

import re
from collections import Counter
from typing import NamedTuple

import numpy as np

from drift.errors import DataError
from drift.paper.demos.docstrings import MASK, package_texts

WHOLE = (".",)  # all folders of a package

# By subject: packages and their parts. Of the standard library and of packages that this one requires.
TOPICS: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "statistics": (("scipy", ("stats",)), ("torch", ("distributions",))),
    "optimization": (("scipy", ("optimize",)), ("torch", ("optim",))),
    "signal processing": (("scipy", ("signal", "fft")), ("numpy", ("fft",)), ("torch", ("signal",))),
    "neural networks": (("torch", ("nn",)),),
    "plotting": (("matplotlib", WHOLE),),
    "email and web": (("email", WHOLE), ("http", WHOLE), ("urllib", WHOLE)),
}

_NAMED = re.compile(r"\bmatplotlib\b|\bmpl\b", re.IGNORECASE)  # the others are masked when they are read


class Texts(NamedTuple):
    """Texts with their subjects."""

    text: list[str]
    topic: list[str]


def topic_texts(train: int, test: int, *, seed: int) -> tuple[Texts, Texts]:
    """Random texts of each subject, for training and for testing.

    train, test: number of texts per subject. The same seed and versions of the packages give the same texts. A text
    that two subjects have is left out.
    """
    found = {topic: list(dict.fromkeys(_texts(topic))) for topic in TOPICS}
    counts = Counter(text for texts in found.values() for text in texts)
    generator = np.random.default_rng(seed)
    parts = Texts([], []), Texts([], [])
    for topic, texts in found.items():
        unique = [text for text in texts if counts[text] == 1]
        if len(unique) < train + test:
            raise DataError(
                f"{topic}: {len(unique)} docstrings in the installed sources, {train + test} are needed; install scipy,"
                " torch and matplotlib with their sources"
            )
        rows = generator.permutation(len(unique))[: train + test]
        for part, chosen in zip(parts, (rows[:train], rows[train:]), strict=True):
            part.text.extend(unique[row] for row in chosen)
            part.topic.extend([topic] * len(chosen))
    return parts


def _texts(topic: str) -> list[str]:
    return [_NAMED.sub(MASK, text) for package, parts in TOPICS[topic] for text in package_texts(package, parts)]
