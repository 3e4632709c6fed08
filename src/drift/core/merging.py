"""Completing the student's gradient with the interaction term, and telling the two apart again afterwards."""

from drift.core.diagnostics import stamp
from drift.core.teacher import Follower, Gradients, add_interaction


class Merger:
    """Adds (1 - α) ∂L/∂θT to the student's gradient (Eq. 4), and keeps the term while it is in there.

    interaction: ∂L/∂θT of what was merged, as the student's gradients hold it now; scale: how much of it they hold.
    """

    def __init__(self, follower: Follower) -> None:
        self.follower = follower
        self.parameters = follower.student_parameters
        self.forget()

    def forget(self) -> None:
        self.interaction: Gradients = {}
        self.scale = 0.0
        self._merged = False  # whether the student's gradients are the whole gradient of the last loss
        self._stamp: tuple[int | None, ...] | None = None  # of those gradients as the last backward left them

    def begin(self) -> None:
        """A new loss is on its way: let go of terms that are in student.grad no more, as after zero_grad()."""
        self._merged = False
        if self._stamp != stamp(self.parameters):
            self.interaction = {}

    def merge(self, scale: float) -> None:
        """Take ∂L/∂θT from the teacher and add `scale` of it to the student's gradient."""
        interaction = self.follower.take_gradients()
        add_interaction(interaction, scale)
        for parameter, earlier in self.interaction.items():  # of micro-batches merged one by one
            interaction[parameter] = interaction[parameter] + earlier if parameter in interaction else earlier
        self.interaction, self.scale, self._merged = interaction, scale, True

    def note(self) -> None:
        """Remember the student's gradients as they are, to know when somebody has touched them."""
        self._stamp = stamp(self.parameters)

    @property
    def untouched(self) -> bool:
        """Whether the student's gradients are complete, and neither clipped nor cleared since."""
        return self._merged and self._stamp == stamp(self.parameters)
