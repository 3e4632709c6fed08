"""A journal of drift annotate that somebody else wrote: every value may be of another type, and is one line."""

from pathlib import Path
from typing import Any

import pytest

from drift.annotate.events import EVENTS, check_events
from drift.annotate.state import State
from drift.errors import DriftError, FileError
from tests.hostile.test_tampered_runs import OTHERS

TEXTS = 5
ROUND = {"do": "round", "labels": 1, "accuracy": None, "low": 0.0, "high": 1.0, "changed": None}
SOUND: tuple[dict[str, Any], ...] = (
    {"do": "classes", "names": ["a", "b"], "at": 1.5},
    {"do": "label", "rows": [0, 4], "class": 0, "by": "list", "guesses": [None, 1]},
    {"do": "skip", "row": 1, "by": "policy"},
    {"do": "flag", "rows": [2], "on": True},
    {"do": "note", "row": 3, "text": "x"},
    {"do": "add", "name": "c", "guideline": "what belongs into it"},
    {"do": "rename", "class": 2, "name": "d"},
    {"do": "merge", "class": 2, "into": 0},
    {"do": "guideline", "class": 0, "text": "y"},
    ROUND,
    {"do": "accept", "rows": [3], "answers": [1], "by": "list", "guesses": [1]},
    {"do": "label", "rows": [0], "class": None, "by": "audit"},
    {"do": "undo"},
)


def replay(events: list[dict[str, Any]]) -> State:
    check_events(events, TEXTS, Path("labels.journal"))
    state = State()
    for event in events:
        state.apply(event)
    return state


def test_every_event_of_the_schema_is_known_to_the_state_and_here() -> None:
    assert {event["do"] for event in SOUND} == set(EVENTS) == {name[4:] for name in dir(State) if name[:4] == "_do_"}
    assert sorted(replay(list(SOUND)).marks) == [0, 3, 4]


@pytest.mark.parametrize("place", range(len(SOUND)))
def test_another_value_is_one_line_that_names_the_line(place: int) -> None:
    refused: list[DriftError] = []
    for key in SOUND[place]:
        for other in (*OTHERS, TEXTS, ...):
            changed = {name: value for name, value in SOUND[place].items() if (name, other) != (key, ...)}
            if other is not ...:
                changed[key] = other
            try:
                replay([*SOUND[:place], changed, *SOUND[place + 1 :]])
            except DriftError as error:
                refused.append(error)
    assert refused
    assert all("\n" not in str(error) for error in refused)
    damaged = [str(error) for error in refused if isinstance(error, FileError)]
    assert all(f"labels.journal:{place + 2} is damaged (" in line for line in damaged)
