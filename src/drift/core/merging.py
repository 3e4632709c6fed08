"""Adds the interaction term to the student's gradient, and keeps track of it for diagnostics."""

from drift.core.diagnostics import stamp, terms
from drift.core.shared import SharedJacobian
from drift.core.teacher import Follower, Gradients, add_interaction


class Merger:
    """Adds (1 - α) ∂L/∂θT to the student's gradient (Eq. 4), and remembers the term as long as student.grad holds it.

    interaction: the ∂L/∂θT that student.grad currently contains. scale: the factor it was added with, 1 - α.
    shared: the terms that the student's own backward has added, with `coupling="shared"`.
    """

    def __init__(self, follower: Follower) -> None:
        self.follower = follower
        self.parameters = follower.student_parameters
        self.shared = SharedJacobian(follower.student)
        self.forget()

    def forget(self) -> None:
        """Discard everything remembered about earlier gradients."""
        self.interaction: Gradients = {}
        self.scale = 0.0
        self.shared.forget()
        self._merged = False  # whether student.grad holds the complete gradient of the last loss
        self._stamp: tuple[int | None, ...] | None = None  # fingerprint of student.grad after the last backward

    def begin(self) -> None:
        """Prepare for a new loss: drop the terms that student.grad no longer holds, for example after zero_grad()."""
        self._merged = False
        if self._stamp != stamp(self.parameters):
            self.interaction = {}
            self.shared.forget()

    def merge(self, scale: float) -> None:
        """Take ∂L/∂θT from the teacher and add `scale` of it to the student's gradient."""
        interaction = self.follower.take_gradients()
        add_interaction(interaction, scale)
        for parameter, earlier in self.interaction.items():  # of micro-batches that were merged one by one
            interaction[parameter] = interaction[parameter] + earlier if parameter in interaction else earlier
        self.interaction, self.scale, self._merged = interaction, scale, True

    def note(self) -> None:
        """Record the current gradients of the student, to detect later changes."""
        self._stamp = stamp(self.parameters)

    @property
    def untouched(self) -> bool:
        """Whether the student's gradients are complete, and neither clipped nor cleared since the last backward."""
        return self._merged and self._stamp == stamp(self.parameters)

    def terms(self) -> tuple[float, float, float | None]:
        """The norms of leader and interaction, and the angle between them; see `drift.core.diagnostics.terms`."""
        if self.shared.sent:
            return terms(self.parameters, self.shared.interaction(), 1.0)  # it contains the factor 1 - α
        return terms(self.parameters, self.interaction, self.scale)
