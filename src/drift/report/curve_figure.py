"""The picture of a curve: accuracy against the number of labels, measured and extrapolated."""

from collections.abc import Sequence
from pathlib import Path

from drift.data.files import atomic_file

Cells = Sequence[tuple[int, float, float, float, bool]]  # labels, accuracy, low, high, measured


def write_curve(path: Path, points: Cells, line: Sequence[tuple[float, float]], title: str) -> Path:
    """Draw points with their intervals, and the fitted law as a line. path: its suffix is the format."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(6.4, 4), constrained_layout=True)
    axis.plot(
        [labels for labels, _ in line], [100 * value for _, value in line], color="#999999", lw=1, label="power law"
    )
    for measured, color, name in ((True, "#0072b2", "measured, cross-fitted"), (False, "#d55e00", "extrapolated")):
        chosen = [point for point in points if point[4] is measured]
        values = [100 * point[1] for point in chosen]
        # A bootstrap interval need not contain the estimate.
        below = [max(0.0, 100 * (point[1] - point[2])) for point in chosen]
        above = [max(0.0, 100 * (point[3] - point[1])) for point in chosen]
        labels = [point[0] for point in chosen]
        axis.errorbar(labels, values, [below, above], fmt="o", color=color, capsize=3, label=name)
    axis.set(xscale="log", xlabel="labels", ylabel="accuracy, %", title=title)
    axis.grid(alpha=0.3)
    axis.legend()
    with atomic_file(path) as aside:
        figure.savefig(aside, dpi=130, format=path.suffix.lstrip("."))
    plt.close(figure)
    return path
