"""Why DRIFT gains on conventional self-training: one step at a time, on fixed vectors of texts and on graphs.

    DRIFT_DATA=... DRIFT_MODELS=... python benchmarks/why.py embed agnews imdb
    DRIFT_DATA=... DRIFT_MODELS=... python benchmarks/why.py run [CELL ...] [--minutes 9]
    python benchmarks/why.py page                        write docs/results/why.md and its figures

Lines are added to docs/results/why.jsonl; those that exist are not run again. Ten seeds are trained at once. A seed has
its own training texts and labels, or labelled and test nodes; the test texts are the same for all. Every run of a cell
has the same data, the same trained start and the same batches. There is no dev set: the last student is scored.
"""

import argparse
import copy
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from coupling import Every
from drift.core import Game
from drift.methods import METHODS
from drift.methods.method import Context, Method
from drift.methods.self_training import SelfTraining
from drift.methods.supervised import Supervised
from drift.paper.self_training import DETACHED, FORMS, Form
from drift.tasks.scoring import mean_and_spread
from drift.training.callbacks import Callback, TrainingState
from drift.training.loop import Phase
from drift.training.optimizers import make_optimizer
from recorded import RESULTS, add_line, read_lines
from why_cells import CELLS, SEEDS, SGD_RATE, Cell, Drawn, embed

LINES = RESULTS / "why.jsonl"
ALPHAS = (0.0, 0.3, 0.5, 0.7, 0.9, 0.99)
SCALES = (0.0, 0.1, 0.3, 1.0)  # of the interaction, at the cell's α
DAMPED_AT = (0.5, 0.9)  # values of α at which DRIFT is compared with a damped leader, with SGD
MEASURED_AT = (1, 5, 10, 25, 50, 100, 200, 300, 400)  # steps
AVERAGED = "Hard labels, averaged teacher"


class ScaledGame(Game):
    """A game whose interaction is multiplied by `scale` in place of 1 - α."""

    scale = 1.0

    def _merge(self) -> None:
        self._merger.merge(self.scale)
        self._unmerged = False


@dataclass(frozen=True)
class Variant:
    """A run of a cell. name: its key in the lines. form: the method; α and τ of the cell are its defaults.

    scale: of the interaction; None: 1 - α. sgd: with plain SGD in place of Adam.
    """

    name: str
    form: Form
    scale: float | None = None
    sgd: bool = False
    settings: dict[str, Any] = field(default_factory=dict)


def variants(cell: Cell) -> Iterator[Variant]:
    """Every run of a cell."""
    drift = Form("drift", {"coupling": "differentiable"})
    for title, form in (*FORMS.items(), ("DRIFT", drift)):
        yield Variant(title, form)
    yield Variant(AVERAGED, Form("hard-self-training", {"alpha": cell.alpha}))
    for alpha in ALPHAS:
        for title, form in ((DETACHED, FORMS[DETACHED]), ("DRIFT", drift)):
            yield Variant(f"{title}, α {alpha}", form, settings={"alpha": alpha})
    for scale in SCALES:
        yield Variant(f"scale {scale}", drift, scale=scale)
    for alpha in DAMPED_AT:
        yield Variant(f"SGD, {DETACHED}, α {alpha}", FORMS[DETACHED], sgd=True, settings={"alpha": alpha})
        yield Variant(f"SGD, DRIFT, α {alpha}", drift, sgd=True, settings={"alpha": alpha})
        damped = {"alpha": alpha, "unlabeled_weight": alpha}
        yield Variant(f"SGD, damped, α {alpha}", FORMS[DETACHED], sgd=True, settings=damped)


class Measure(Callback):
    """Norms of leader and interaction, and the cosine between them, at some steps; over all seeds together."""

    def __init__(self) -> None:
        self.lines: list[dict[str, float]] = []

    def on_backward_end(self, state: TrainingState) -> None:
        if state.step in MEASURED_AT and isinstance(state.method, SelfTraining):
            measured = state.method.game.diagnostics()
            if measured.angle is not None:
                ratio = measured.interaction_norm / measured.leader_norm
                angle = {"ratio": ratio, "angle": measured.angle, "omega": measured.mean_omega}
                self.lines.append({"step": state.step, **angle})


def make_method(cell: Cell, variant: Variant, student: nn.Module) -> Method:
    kind = METHODS[variant.form.method]
    if variant.scale is not None:
        game = type("Scaled", (ScaledGame,), {"scale": variant.scale})
        kind = type("Scaled", (Every,), {"game_type": game})
    of_cell = {"alpha": cell.alpha, "tau": cell.tau, "prior": "uniform"} if issubclass(kind, SelfTraining) else {}
    settings = kind.settings_type.read({**of_cell, **variant.form.settings, **variant.settings})
    return kind(student, settings, Context(stacked=True, single_process=True))


def started(cell: Cell, drawn: Drawn) -> nn.Module:
    """The student after the first phase."""
    torch.manual_seed(0)
    method = Supervised(drawn.student, Supervised.settings_type(), Context(stacked=True, single_process=True))
    optimizer = make_optimizer(drawn.student, cell.training, initial=True)
    Phase(method, drawn.batches(initial=True), optimizer, initial=True).run(range(cell.training.initial_steps))
    return drawn.student


@torch.no_grad()
def accuracies(student: nn.Module, drawn: Drawn) -> list[float]:
    """Test accuracy of every seed."""
    student.eval()
    predicted = student(drawn.test_examples.inputs(drawn.test)).argmax(-1)
    return [float(right) for right in (predicted == drawn.gold).double().mean(-1)]


def flat(student: nn.Module) -> Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in student.parameters()])


def run(name: str, minutes: float) -> None:
    """Every run of a cell that is not on record."""
    began = time.monotonic()
    cell, done = CELLS[name], {line["variant"] for line in read_lines(LINES) if line["cell"] == name}
    left = [variant for variant in variants(cell) if variant.name not in done]
    if not left:
        return
    torch.set_num_threads(1)
    drawn = cell.draw()
    start = started(cell, drawn)
    before = {"cell": name, "seeds": len(SEEDS), "start": accuracies(start, drawn)}
    print(name, "start", mean_and_spread(before["start"]), flush=True)
    ends: dict[str, Tensor] = {}
    for variant in left:
        if time.monotonic() - began > 60 * minutes and not variant.sgd:  # those are compared with each other
            return
        student = copy.deepcopy(start)
        torch.manual_seed(0)
        method, measure = make_method(cell, variant, student), Measure()
        training = cell.training
        if variant.sgd:
            plain = {"optimizer": "sgd", "learning_rate": SGD_RATE, "weight_decay": 0.0, "momentum": 0.0}
            training = training.model_copy(update=plain)
        method.start()
        optimizer = make_optimizer(student, training, initial=False)
        Phase(method, drawn.batches(initial=False), optimizer).run(range(1, training.steps + 1), [measure])
        line = {**before, "variant": variant.name, "accuracy": accuracies(student, drawn), "measured": measure.lines}
        if variant.sgd:
            ends[variant.name] = flat(student) - flat(start)
            line |= distances(ends, variant.name)
        add_line(LINES, line)
        print(name, variant.name, mean_and_spread(line["accuracy"]), flush=True)


def distances(moved: dict[str, Tensor], name: str) -> dict[str, float]:
    """For a damped run: how far it and the detached run end from DRIFT, relative to how far DRIFT went from the start.

    moved: changes of all weights since the start, by run; those of the same α come in the order of `variants`.
    """
    drift, plain = (moved.get(name.replace("damped", each)) for each in ("DRIFT", DETACHED))
    if "damped" not in name or drift is None or plain is None:
        return {}
    way = drift.norm()
    return {"to_damped": float((moved[name] - drift).norm() / way), "to_detached": float((plain - drift).norm() / way)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("embed", "run", "page"))
    parser.add_argument("names", nargs="*", help="datasets to embed, or cells to run (all)")
    parser.add_argument("--minutes", type=float, default=9.0, help="run: start no run of a cell after this many")
    options = parser.parse_args()
    if options.command == "embed":
        for dataset in options.names or ("agnews", "imdb"):
            embed(dataset)
    elif options.command == "run":
        for name in options.names or CELLS:
            run(name, options.minutes)
    else:
        from why_page import write_page  # beside this file

        write_page()


if __name__ == "__main__":
    main()
