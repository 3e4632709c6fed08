"""What a person says, by class number: the class of a text, or the entities of a sentence."""

from collections.abc import Callable, Mapping
from typing import Any

Entity = tuple[int, int, int]  # the words [start, end), and a class number
Answer = int | tuple[Entity, ...]
OUTSIDE = -1  # in place of a class number: a word in no entity


def read_answer(event: Mapping[str, Any], resolve: Callable[[int], int]) -> Answer | None:
    """The answer of an event; None if it removes one. resolve: the class that a class is now."""
    if event.get("spans") is not None:
        return resolved(entities(event["spans"]), resolve)
    return None if event.get("class") is None else resolve(event["class"])


def written(answer: Answer | None) -> dict[str, Any]:
    """An answer as a part of an event."""
    return {"spans": [list(each) for each in answer]} if isinstance(answer, tuple) else {"class": answer}


def entities(spans: Any) -> tuple[Entity, ...]:
    """Entities in order, from lists of start, end and class number."""
    return tuple(sorted((int(start), int(end), int(number)) for start, end, number in spans))


def guessed(value: Any) -> Answer | None:
    """An answer that was stored as JSON."""
    return entities(value) if isinstance(value, (list, tuple)) else value


def resolved(answer: Answer, resolve: Callable[[int], int]) -> Answer:
    """The answer with the classes as they are now."""
    if isinstance(answer, tuple):
        return tuple((start, end, resolve(number)) for start, end, number in answer)
    return resolve(answer)


def classes_of(answer: Answer) -> list[int]:
    """The class numbers in an answer: one for a text, one per entity of a sentence."""
    return [number for _, _, number in answer] if isinstance(answer, tuple) else [answer]
