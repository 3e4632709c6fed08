"""Sentences for the person at the page."""

from collections.abc import Sequence

from drift.annotate.policy import DISAGREE, NOVEL, RANDOM, TYPICAL, UNSURE

WAITING = "waiting"  # the first round of training is not done


def why(reason: str, chances: Sequence[tuple[str, float]]) -> str:
    """Why a text was chosen. reason: one of `policy.REASONS`. chances: classes with probabilities, the best first."""
    between = ""
    if len(chances) > 1:
        (first, p), (second, q) = chances[:2]
        between = f": {first} {100 * p:.0f} %, {second} {100 * q:.0f} %"
    match reason:
        case _ if reason == RANDOM:
            return "Random audit: drawn by chance, to measure accuracy"
        case _ if reason == DISAGREE:
            return f"The heads disagree{between}"
        case _ if reason == UNSURE:
            return f"The model is unsure{between}"
        case _ if reason == NOVEL:
            return "Unlike anything labelled so far"
        case _ if reason == TYPICAL:
            return "Typical of many texts"
        case "chosen":
            return "You chose this text"
    return "Drawn by chance while the model starts"
