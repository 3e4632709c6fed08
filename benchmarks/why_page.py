"""The page docs/results/why.md and its figures, from the lines of `why.py`. All numbers in it are computed."""

import math
import textwrap
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from drift.paper.bench.catalogue import paper_figure
from drift.paper.self_training import COPIED, DETACHED, FORMS, LEE
from drift.report.figures import CLASS_COLOURS, MARKERS, save, style
from drift.runs.comparing.statistics import TTest, paired_t
from drift.tasks.scoring import mean_and_spread
from recorded import RESULTS, read_lines, table
from why import ALPHAS, AVERAGED, DAMPED_AT, LINES, SCALES
from why_cells import CELLS, SGD_RATE

PAGE, FIGURES = RESULTS / "why.md", RESULTS / "figures"
ROWS = [*list(FORMS)[:3], AVERAGED, *list(FORMS)[3:], "DRIFT"]
STEPS = {  # each is one change: what it adds, the row with it, and the row without
    "averaging the teacher": (AVERAGED, LEE),
    "soft labels": ("Soft labels", AVERAGED),
    "class mass": ("Soft labels + class mass", "Soft labels"),
    "weights": ("Soft labels + weights", "Soft labels"),
    "class mass, with weights": (DETACHED, "Soft labels + weights"),
    "weights, with class mass": (DETACHED, "Soft labels + class mass"),
    "the coupling": ("DRIFT", DETACHED),
    "all of it, from Lee": ("DRIFT", LEE),
    "all of it, from copies": ("DRIFT", COPIED),
}
WHOLE = [title for title in STEPS if title.startswith("all")]
IN_PAPER = {"agnews-rules": ("weak", "agnews-weak"), "imdb-rules": ("weak", "imdb-weak")}
IN_PAPER |= {"agnews-30": ("semi", "agnews-30"), "cora-10": ("graphs", "cora-10")}
IN_PAPER |= {"citeseer-10": ("graphs", "citeseer-10")}

SIGNIFICANT = " \\*"
Lines = dict[str, dict[str, dict]]  # by cell and variant
INTRODUCTION = f"""# Results: why DRIFT gains on conventional self-training

Written by `python benchmarks/why.py page`; every run is a line of [why.jsonl](why.jsonl), made by
`python benchmarks/why.py run`.

Conventional self-training labels unlabelled rows with the most likely class of the student itself
("{LEE}"; Lee, 2013) or of a copy of the student that is renewed every 100 or 250 steps. DRIFT differs in five ways:
labels are soft, divided by class mass, and weighted by their certainty; the teacher is a moving average; and the
student's gradient goes through the teacher (the coupling). Here these steps are taken one at a time. "{DETACHED}" is
DRIFT without the coupling.

Texts: linear heads on fixed vectors of bge-small-en-v1.5. Graphs: a GCN. Ten seeds; each has its own training texts
and labels, or its own labelled and test nodes (test texts are the same for all seeds). Runs of a cell have the same
data, the same start and the same batches. There is no dev set: steps, learning rates, α and τ are those of the presets,
λ is 1, and the last student is scored. A game has 400 steps on texts and 300 on graphs, so a copy that is renewed every
100 steps changes three or two times. Accuracy in %, mean ± standard deviation over seeds; differences in points
± standard error, by paired t-tests;{SIGNIFICANT} marks p < 0.05, without correction."""


def write_page() -> None:
    lines: Lines = {}
    for line in read_lines(LINES):
        lines.setdefault(line["cell"], {})[line["variant"]] = line
    lines = {name: lines[name] for name in CELLS if name in lines}
    parts = [*INTRODUCTION.split("\n\n"), *_missing(lines), *_short(lines)]
    for part in (_steps, _coupling, _interaction, _scales, _damped, _paper):
        parts += part(lines)
    wrapped = (part if part.startswith(("#", "|", "!", "- ")) else textwrap.fill(part, 120) for part in parts)
    PAGE.write_text("\n\n".join(wrapped) + "\n", encoding="utf-8")
    print(PAGE.read_text(encoding="utf-8"))


def _missing(lines: Lines) -> list[str]:
    left = [cell.title for name, cell in CELLS.items() if name not in lines]
    return [f"Not run yet: {', '.join(left)}."] if left else []


def _test(lines: Lines, cell: str, one: str, other: str) -> TTest | None:
    both = [lines[cell].get(name) for name in (one, other)]
    return None if None in both else paired_t(*(line["accuracy"] for line in both))


def _gap(test: TTest | None) -> str:
    if test is None:
        return ""
    return test.gap() + (SIGNIFICANT if test.p < 0.05 else "")


def _table(lines: Lines, heading: str, rows: Iterable[tuple[str, Callable[[str], str]]]) -> str:
    """A row per title, a column per cell. rows: the title of each, and the text for a cell."""
    headings = [heading, *(CELLS[cell].title for cell in lines)]
    return "\n".join(table(headings, [[title, *(text(cell) for cell in lines)] for title, text in rows]))


def _scores(lines: Lines, name: str) -> Callable[[str], str]:
    return lambda cell: mean_and_spread(lines[cell][name]["accuracy"]) if name in lines[cell] else ""


def _start(lines: Lines) -> Callable[[str], str]:
    return lambda cell: mean_and_spread(next(iter(lines[cell].values()))["start"])


def _counted(tests: Sequence[TTest | None]) -> str:
    """In how many cells a step is ahead, tied or behind, in words."""
    known = [test for test in tests if test is not None]
    verdicts = [test.verdict() for test in known]
    gaps = [100 * test.difference for test in known]
    counts = ", ".join(
        f"{verdicts.count(v)} {word}" for v, word in (("win", "ahead"), ("tie", "tie"), ("loss", "behind"))
    )
    return f"{min(gaps):+.1f} to {max(gaps):+.1f} points, mean {np.mean(gaps):+.1f} ({counts})" if gaps else "not run"


def _short(lines: Lines) -> list[str]:
    """What was found, in sentences."""
    tests = _step_tests(lines)
    means = {title: _mean(of_step) for title, of_step in tests.items() if title not in WHOLE}
    order = sorted(((mean, title) for title, mean in means.items() if mean is not None), reverse=True)
    largest = ", ".join(f"{title} {mean:+.1f}" for mean, title in order)
    sizes = ", ".join(f"{_over_cells(lines, alpha, _ratio):.2f} at α {alpha}" for alpha in ALPHAS)
    cosines = [_over_cells(lines, alpha, _cosine) for alpha in ALPHAS]
    by_alpha = [
        f"  - α {alpha}: {_counted([_test(lines, c, f'DRIFT, α {alpha}', f'{DETACHED}, α {alpha}') for c in lines])}"
        for alpha in ALPHAS
    ]
    freed = [
        f"  - c = {scale}: {_counted([_test(lines, cell, f'scale {scale}', 'scale 0.0') for cell in lines])}"
        for scale in SCALES
        if scale
    ]
    points = [
        f"- **DRIFT against conventional self-training**: {_counted(tests[WHOLE[0]])} against hard labels of the"
        f" student itself; {_counted(tests[WHOLE[1]])} against hard labels of a copy that is renewed every 100 steps.",
        f"- **Where it comes from**, as means over the cells, largest first: {largest}.",
        f"- **The interaction** has a norm relative to the leader's of {sizes} (means over steps and cells), which is"
        f" about 1 - α, and points against it: the mean cosine is {min(cosines):+.2f} to {max(cosines):+.2f}.",
        "- **The coupling**, DRIFT minus its detached form with the same α:",
        *by_alpha,
        "- **The coupling with a scale c of its own**, against c = 0:",
        *freed,
    ]
    indented = [textwrap.fill(point, 120, subsequent_indent="  " if point[0] == "-" else "    ") for point in points]
    return ["## In short", "\n".join(indented)]


def _step_tests(lines: Lines) -> dict[str, list[TTest | None]]:
    return {title: [_test(lines, cell, *pair) for cell in lines] for title, pair in STEPS.items()}


def _mean(tests: Sequence[TTest | None]) -> float | None:
    """Mean difference in points over the cells that have it."""
    gaps = [100 * test.difference for test in tests if test is not None]
    return float(np.mean(gaps)) if gaps else None


def _ratio(measured: dict[str, float]) -> float:
    return measured["ratio"]


def _cosine(measured: dict[str, float]) -> float:
    return math.cos(math.radians(measured["angle"]))


def _over_cells(lines: Lines, alpha: float, value: Callable[[dict[str, float]], float]) -> float:
    """Mean over cells of the mean over steps."""
    by_cell = [np.mean([value(each) for each in _measured(lines, cell, alpha)] or [math.nan]) for cell in lines]
    return float(np.nanmean(by_cell))


def _steps(lines: Lines) -> list[str]:
    rows = [("Start", _start(lines)), *((name, _scores(lines, name)) for name in ROWS)]
    gaps = [(title, lambda cell, pair=pair: _gap(_test(lines, cell, *pair))) for title, pair in STEPS.items()]
    return [
        "## Which step gives the gain",
        _table(lines, "form", rows),
        "What each step adds:",
        _table(lines, "step", gaps),
        *_figure(lines, "why-steps", _draw_steps, "What each step adds, by cell, with standard errors"),
    ]


def _coupling(lines: Lines) -> list[str]:
    def gap(alpha: float) -> Callable[[str], str]:
        return lambda cell: _gap(_test(lines, cell, f"DRIFT, α {alpha}", f"{DETACHED}, α {alpha}"))

    rows = [
        (f"{name}, α {alpha}", _scores(lines, f"{name}, α {alpha}")) for alpha in ALPHAS for name in (DETACHED, "DRIFT")
    ]
    return [
        "## The coupling at each α",
        "DRIFT minus its detached form with the same α. The interaction is multiplied by 1 - α.",
        _table(lines, "α", [(str(alpha), gap(alpha)) for alpha in ALPHAS]),
        "Their accuracies:",
        _table(lines, "form", rows),
    ]


def _measured(lines: Lines, cell: str, alpha: float) -> list[dict[str, float]]:
    return lines[cell].get(f"DRIFT, α {alpha}", {}).get("measured", [])


def _interaction(lines: Lines) -> list[str]:
    def mean(alpha: float) -> Callable[[str], str]:
        def text(cell: str) -> str:
            measured = _measured(lines, cell, alpha)
            if not measured:
                return ""
            first, ratios = measured[0], [each["ratio"] for each in measured]
            cosines = [math.cos(math.radians(each["angle"])) for each in measured]
            return f"{first['ratio']:.2f}, {cosines[0]:+.2f}; {np.mean(ratios):.2f}, {np.mean(cosines):+.2f}"

        return text

    return [
        "## Size and angle of the interaction",
        "The norm of the interaction, (1 - α) ∂L/∂θT, relative to that of the leader, ∂L/∂θS, and the cosine between"
        " both; all seeds together. At the first step; then the mean over steps 1 to 400 (300 on graphs) at which it"
        " was measured. A cosine of -1 is a pure brake: the interaction takes back a part of the leader's step.",
        _table(lines, "α", [(str(alpha), mean(alpha)) for alpha in ALPHAS]),
        *_figure(lines, "why-interaction", _draw_interaction, "Ratio and cosine over the steps, by α"),
    ]


def _scales(lines: Lines) -> list[str]:
    def text(scale: float) -> Callable[[str], str]:
        def of(cell: str) -> str:
            gap = "" if not scale else f" ({_gap(_test(lines, cell, f'scale {scale}', 'scale 0.0'))})"
            return f"{_scores(lines, f'scale {scale}')(cell)}{gap}" if f"scale {scale}" in lines[cell] else ""

        return of

    alphas = ", ".join(f"{CELLS[cell].title} {CELLS[cell].alpha}" for cell in lines)
    return [
        "## The scale of the coupling freed from the averaging",
        "In DRIFT one number, α, sets both how slowly the teacher follows and, as 1 - α, how much of the interaction is"
        f" added. Here α stays at its preset ({alphas}), and the interaction is multiplied by c. In brackets: the"
        " difference to c = 0.",
        _table(lines, "c", [(str(scale), text(scale)) for scale in SCALES]),
    ]


def _damped(lines: Lines) -> list[str]:
    names = ("DRIFT", DETACHED, "damped")
    rows = [(f"{name}, α {alpha}", _scores(lines, f"SGD, {name}, α {alpha}")) for alpha in DAMPED_AT for name in names]

    def distance(alpha: float) -> Callable[[str], str]:
        def text(cell: str) -> str:
            line = lines[cell].get(f"SGD, damped, α {alpha}", {})
            return f"{line['to_damped']:.2f}, {line['to_detached']:.2f}" if "to_damped" in line else ""

        return text

    damped = [lines[cell].get(f"SGD, damped, α {alpha}", {}) for cell in lines for alpha in DAMPED_AT]
    known = [line for line in damped if "to_damped" in line]
    nearer = sum(line["to_damped"] < line["to_detached"] for line in known)
    return [
        "## Is DRIFT a damped leader?",
        "If the interaction were exactly -(1 - α) times the self-training part of the leader, DRIFT would be its"
        " detached form with λ = α (damped). With Adam and no supervised term a constant factor cancels, so these runs"
        f" use plain SGD at a rate of {SGD_RATE}, without weight decay.",
        _table(lines, "plain SGD", rows),
        "How far damped and detached runs end from DRIFT's weights, relative to the way DRIFT went from the start"
        " (damped, detached); 0 would be the same weights. The damped run is the nearer one in"
        f" {nearer} of {len(known)}.",
        _table(lines, "α", [(str(alpha), distance(alpha)) for alpha in DAMPED_AT]),
    ]


def _paper(lines: Lines) -> list[str]:
    rows = []
    for name, (exhibit, cell) in IN_PAPER.items():
        drift = paper_figure(exhibit, "DRIFT+GCN" if exhibit == "graphs" else "DRIFT", cell)
        plain = paper_figure(exhibit, "Self-training", cell)
        if name in lines and drift is not None and plain is not None:
            ours = [_gap(_test(lines, name, "DRIFT", other)) for other in (LEE, COPIED, DETACHED)]
            rows.append([CELLS[name].title, f"{drift - plain:+.2f}", *ours])
    headings = [
        "",
        "paper: DRIFT minus Self-training",
        *(f"ours: DRIFT minus {name}" for name in (LEE, COPIED, DETACHED)),
    ]
    return [
        "## The paper's gaps",
        "The paper does not say how its row Self-training was trained. Ours are on other encoders (the paper fine-tunes"
        " RoBERTa-base), so only the sizes of the gaps can be compared: a gap that appears against hard labels and not"
        " against the detached form comes from the labels and not from the coupling.",
        "\n".join(table(headings, rows)),
    ]


def _figure(lines: Lines, name: str, draw: Callable[[Lines, Figure], None], caption: str) -> list[str]:
    with style():
        figure = Figure(figsize=(10, 3.0 + 2.2 * ((len(lines) - 1) // 3)), layout="constrained")
        draw(lines, figure)
        save(figure, FIGURES, name)
    return [f"![{caption}](figures/{name}.png)"]


def _panels(lines: Lines, figure: Figure) -> Iterable[tuple[str, Axes]]:
    columns = min(3, len(lines))
    panels = figure.subplots(-(-len(lines) // columns), columns, squeeze=False).flat
    for cell, axes in zip(lines, panels, strict=False):
        axes.set_title(CELLS[cell].title)
        yield cell, axes
    for axes in list(panels)[len(lines) :]:
        axes.remove()


def _draw_steps(lines: Lines, figure: Figure) -> None:
    for cell, axes in _panels(lines, figure):
        for place, (title, pair) in enumerate(reversed(STEPS.items())):
            if (test := _test(lines, cell, *pair)) is not None:
                colour = CLASS_COLOURS[0] if title in ("the coupling", *WHOLE) else CLASS_COLOURS[1]
                axes.barh(place, 100 * test.difference, xerr=100 * test.standard_error, color=colour, capsize=2)
        axes.set_yticks(range(len(STEPS)), list(reversed(STEPS)))
        axes.axvline(0, color="black", linewidth=0.8)
        axes.set_xlabel("points")


def _draw_interaction(lines: Lines, figure: Figure) -> None:
    for cell, axes in _panels(lines, figure):
        other = axes.twinx()
        for number, alpha in enumerate(ALPHAS):
            if measured := _measured(lines, cell, alpha):
                steps, colour = [each["step"] for each in measured], CLASS_COLOURS[number]
                marker = MARKERS[number % len(MARKERS)]
                axes.plot(steps, [each["ratio"] for each in measured], color=colour, marker=marker, label=f"α {alpha}")
                cosines = [math.cos(math.radians(each["angle"])) for each in measured]
                other.plot(steps, cosines, color=colour, linestyle=":")
        axes.set(xscale="log", xlabel="step", ylabel="norm of the interaction / leader")
        other.set(ylabel="cosine (dotted)", ylim=(-1.05, 1.05))
        other.grid(visible=False)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels))
