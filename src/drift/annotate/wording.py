"""Sentences for the person at the page."""

from collections.abc import Sequence

from drift.annotate.policy import DISAGREE, NOVEL, RANDOM, TYPICAL, UNSURE, WAITING

CHOSEN = "chosen"  # the person opened the text
SENTENCES = {
    RANDOM: "Random audit: drawn by chance, to measure accuracy",
    DISAGREE: "The heads disagree",
    UNSURE: "The model is unsure",
    NOVEL: "Unlike anything labelled so far",
    TYPICAL: "Typical of many others",
    WAITING: "Drawn by chance while the model starts",
    CHOSEN: "Chosen by you",
}


def why(reason: str, chances: Sequence[tuple[str, float]]) -> str:
    """Why a text was chosen. reason: a key of `SENTENCES`. chances: classes with probabilities, the best first."""
    if reason in (DISAGREE, UNSURE) and len(chances) > 1:
        (first, p), (second, q) = chances[:2]
        return f"{SENTENCES[reason]}: {first} {100 * p:.0f} %, {second} {100 * q:.0f} %"
    return SENTENCES[reason]
