"""The forms of self-training that the paper's tables and figures compare with DRIFT.

The paper calls one of its rows "Self-training" and cites Lee (2013) and Rosenberg et al. (2005). It does not say how
that row was trained. Conventional self-training has hard labels: of the student itself (Lee), or of a copy of the
student that is renewed every so many steps. DRIFT changes five things at once: labels are soft, balanced by class mass
and weighted, the teacher is an average, and the student's gradient goes through it. The forms here take these steps one
at a time; the last one, with all but the coupling, is DRIFT with a detached teacher.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Form:
    """A form of self-training. method: its name in `METHODS`. settings: override those of a preset."""

    method: str
    settings: Mapping[str, Any] = field(default_factory=dict)


def _soft(*, class_mass: bool, reweight: bool) -> Form:
    return Form("self-training", {"class_mass": class_mass, "reweight": reweight})


LEE, DETACHED = "Self-training (Lee)", "DRIFT, detached"
COPIED = "Self-training (copy 100)"  # the one that is run where there is time for one only
FORMS: Mapping[str, Form] = {
    LEE: Form("hard-self-training"),
    COPIED: Form("hard-self-training", {"copy_every": 100}),
    "Self-training (copy 250)": Form("hard-self-training", {"copy_every": 250}),
    "Soft labels": _soft(class_mass=False, reweight=False),
    "Soft labels + class mass": _soft(class_mass=True, reweight=False),
    "Soft labels + weights": _soft(class_mass=False, reweight=True),
    DETACHED: Form("self-training"),
}
"""By title, in the order of the tables."""
