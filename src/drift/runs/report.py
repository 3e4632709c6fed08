"""The page a person reads after a run, made of what its folder holds and nothing else."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from pydantic import TypeAdapter

from drift.errors import FileError
from drift.report import figures
from drift.report.page import Picture, Section, Table, write_page
from drift.runs.report_rings import ring_sections
from drift.runs.report_use import how_to_use, where_it_came_from
from drift.runs.result import REPORT
from drift.tasks.nodes.report import MOST_CLASSES_DRAWN, graph_sections
from drift.tasks.scoring import mean_and_spread
from drift.tasks.tokens.report import token_sections, weak_tags
from drift.training.run_folder import METRICS, TRACE, RunFolder
from drift.training.trace import read_trace
from drift.weak import Summary
from drift.weak.diagnostics import Share, table

CONFUSIONS = 5
WARNING = "warning: "


def write_report(run: str | Path) -> Path:
    """Write `report.html` into the folder of a finished run, over the one that is there; returns its path."""
    folder = RunFolder(run)
    metrics, config = folder.read_json(METRICS), folder.config()
    trace = folder.path / TRACE
    entries = read_trace(trace) if trace.exists() else []
    path = folder.path / REPORT
    with TemporaryDirectory() as pictures:
        try:
            title = f"{folder.path.resolve().name}: {metrics['method']} on {Path(config['data']['train']).name}"
            page = _Page(metrics, Path(pictures))
            sections = [
                page.score(),
                *page.curves(entries),
                *(token_sections(metrics) if metrics["task"] == "tokens" else page.classes()),
                *graph_sections(metrics, page.where, page.draw),
                *page.calibration(),
                *page.weak_labels(),
                *page.game(entries),
                *ring_sections(folder.path, metrics, page.kept, page.draw),
                *page.changes(),
                *page.mistakes(),
                *page.notes(),
                *how_to_use(folder, metrics, config),
                *where_it_came_from(folder),
            ]
        except KeyError as error:
            raise FileError(f"{folder.path} is a run of another version of drift: it lacks {error}") from error
        except (TypeError, ValueError, AttributeError, IndexError, StopIteration) as error:
            raise FileError(f"{folder.path} is damaged ({type(error).__name__}: {error}); copy it again") from error
        return write_page(path, title, sections)


def spread(scores: Sequence[Mapping[str, float]], name: str) -> str:
    """One of the scores that each seed has, over seeds: "74.11 ± 6.70"."""
    return mean_and_spread([seed[name] for seed in scores])


class _Page:
    """The sections of the page; a list where there may be nothing to say."""

    def __init__(self, metrics: dict[str, Any], pictures: Path) -> None:
        self.metrics, self.pictures = metrics, pictures
        self.seeds = len(metrics["seeds"])
        self.kept = metrics["seeds"].index(metrics["kept_seed"])
        self.where = next((name for name in ("test", "dev") if name in metrics), None)
        self.chosen, self.name = next(iter(metrics["measures"].items()))  # the score that was chosen by

    def score(self) -> Section:
        metrics, budget = self.metrics, self.metrics["label_budget"]
        told = [self._headline()]
        told += [note for note in metrics["notes"] if note.startswith(WARNING)]
        gold = (
            f"{budget['total']:,} gold labels: {budget['train']:,} to train and {budget['dev']:,} of dev to choose by"
        )
        trained = f"{metrics['training_rows']:,} {metrics['unit']} were trained on, with or without label"
        told.append(f"What it cost: {gold}. {trained}.")
        if self.seeds > 1:
            kept = f"Kept is seed {metrics['kept_seed']} of {self.seeds} ({metrics['kept_because']})"
            if self.where is not None:
                kept += f"; over all seeds, {self.name} is {spread(metrics[self.where]['scores'], self.chosen)} %"
            told.append(f"{kept}.")
        rows: list[list[str]] = []
        for name, part, scores in (
            ("dev, after the start", "dev", metrics["start_on_dev"]),
            ("dev, at the end", "dev", metrics.get("dev", {}).get("scores")),
            ("test, at the end", "test", metrics.get("test", {}).get("scores")),
        ):
            if scores:
                measured = [spread(scores, each) for each in metrics["measures"]]
                if self.seeds > 1:
                    measured.append(f"{100 * scores[self.kept][self.chosen]:.2f}")
                rows.append([name, f"{metrics[part]['rows']:,}", *measured])
        headings = ["scores in %", metrics["unit"], *metrics["measures"].values()]
        headings += [f"{self.name}, kept"] if self.seeds > 1 else []
        caption = f"Mean ± standard deviation of {self.seeds} seeds" if self.seeds > 1 else "One seed"
        return Section("How good it is", told, [Table(headings, rows, caption)] if rows else [])

    def _headline(self) -> str:
        if self.where is None:
            return (
                "Not known: there was no dev and no test set, so nothing was measured, and nothing below says how often"
                " this classifier is right. Label some rows that it has not seen and score it with drift evaluate."
            )
        measured = self.metrics[self.where]
        score, rows = 100 * measured["scores"][self.kept][self.chosen], f"{measured['rows']:,} {self.where}"
        if self.chosen == "accuracy":
            found = f"The classifier is right on {score:.2f} % of {rows} {self.metrics['unit']}"
        else:
            found = f"The {self.name} is {score:.2f} % on {rows} {self.metrics['unit']}"
        if self.where == "dev":
            return (
                f"{found}. There was no test set: these rows also chose the step and the seed, so other rows will"
                " likely do worse."
            )
        return f"{found}, which were scored once, at the end."

    def curves(self, entries: list[dict[str, Any]]) -> list[Section]:
        if not entries:
            return []
        ends = [entry["dev"][self.chosen] for entry in entries if "dev" in entry]
        alt = f" Mean dev {self.name} goes from {100 * ends[0]:.1f} to {100 * ends[-1]:.1f} %." if ends else ""
        told = f"{self.metrics['steps']:,} steps in {self.metrics['seconds']:,} seconds."
        if ends:
            told += " What is kept of each seed is its best step on dev, not the last."
        picture = self.draw(
            figures.training_curves(entries, score=self.chosen, name=self.name),
            "curves",
            f"Loss{' and dev score' if ends else ''} by step.{alt}",
        )
        return [Section("Learning curves", [told], pictures=[picture])]

    def classes(self) -> list[Section]:
        if self.where is None:
            return []
        names, counts = self.metrics["classes"], np.array(self.metrics["confusion"])
        right, true, predicted = counts.diagonal(), counts.sum(1), counts.sum(0)
        rows = [
            [
                name,
                f"{true[c]:,}",
                str(Share(right[c], predicted[c])),
                str(Share(right[c], true[c])),
                f"{200 * right[c] / max(1, true[c] + predicted[c]):.1f}",
            ]
            for c, name in enumerate(names)
        ]
        tables = [Table(["class", "rows", "precision", "recall", "F1 (%)"], rows, f"On {self.where}, by true class")]
        wrong = counts - np.diag(right)
        pairs = [np.unravel_index(place, wrong.shape) for place in np.argsort(-wrong, axis=None)[:CONFUSIONS]]
        swaps = [[names[t], names[p], f"{wrong[t, p]:,} of {true[t]:,}"] for t, p in pairs if wrong[t, p]]
        if swaps:
            tables.append(Table(["true class", "taken for", "rows"], swaps, "Where it errs most often"))
        pictures = []
        if len(names) <= MOST_CLASSES_DRAWN:
            drawn = figures.confusion(counts, names)
            caption = "Rows of each true class by predicted class, in the order of the table."
            pictures = [self.draw(drawn, "confusion", "Confusion matrix.", caption)]
        return [Section("Class by class", tables=tables, pictures=pictures)]

    def calibration(self) -> list[Section]:
        if self.where is None:
            return []
        found = self.metrics["calibration"]
        before, after = (f"{100 * found[f'error_{when}']:.1f}" for when in ("before", "after"))
        where = f"on {self.metrics[self.where]['rows']:,} {self.where} {self.metrics['unit']}"
        if "dev" in self.metrics:
            told = (
                f"Confidence and accuracy were {before} points apart (expected calibration error {where}); with a"
                f" temperature of {found['temperature']:.2f}, found on dev, {after}."
            )
            if self.where == "dev":
                told += " The same rows gave the temperature, so other rows will be somewhat further apart."
            bins = {"as trained": found["bins_before"], "with temperature": found["bins_after"]}
        else:
            told = (
                f"Confidence and accuracy are {before} points apart (expected calibration error {where}). Without a dev"
                " set there was nothing to find a temperature with."
            )
            bins = {"as trained": found["bins_before"]}
        caption = "A dot for each bin of confidence; on the diagonal, confidence is what it says."
        picture = self.draw(figures.reliability(bins), "reliability", f"Reliability diagram. {told}", caption)
        return [Section("Can its confidence be believed", [told], pictures=[picture])]

    def weak_labels(self) -> list[Section]:
        found = self.metrics.get("weak_labels")
        if found is None:
            return []
        labeled = Share(**found["labeled"])
        told = [f"{labeled} {self.metrics['unit']} have one. They made the start, and were then thrown away."]
        if self.metrics["task"] == "tokens":
            return [weak_tags(self.metrics, told)]
        accuracy = Share(**found["accuracy"])
        if accuracy.of:
            told.append(f"Right: {accuracy} that also have a gold label. Nothing was chosen by this.")
        tables = []
        if "rules" in self.metrics:
            summary = TypeAdapter(Summary).validate_python(self.metrics["rules"])
            caption = f"Coverage, overlap and conflict are shares of {summary.coverage.of:,} texts"
            tables = [Table(*table(summary), caption)]
        return [Section("The weak labels", told, tables)]

    def game(self, entries: list[dict[str, Any]]) -> list[Section]:
        looks = [entry for entry in entries if "leader_norm" in entry]
        if not looks:
            return []
        last = looks[-1]
        told = [
            f"When last looked at, after {last['step']:,} steps, the mean weight ω of a pseudo-label was"
            f" {last['mean_omega']:.3f}."
        ]
        if interacts := figures.interaction(looks):
            told.insert(
                0,
                "The student's gradient has two parts: its own (leader), and what it expects its teacher to change"
                " because of it (interaction); conventional self-training has the first alone. They last measured"
                f" {last['leader_norm']:.2g} and {last['interaction_norm']:.2g}.",
            )
        if "pseudo_label_accuracy" in last:
            told.append(
                f"Of the pseudo-labels on a fixed sample, {100 * last['pseudo_label_accuracy']:.1f} % of those with a"
                " known gold label were right. Nothing was chosen by this."
            )
        sample = f"Changes are counted on the same {last['probe_size']:,} pseudo-labels each time."
        picture = self.draw(figures.game_curves(looks), "game", "The game's diagnostics by step.", sample)
        title = "Student and teacher" if interacts else "Weights and pseudo-labels"
        return [Section(title, told, pictures=[picture])]

    def changes(self) -> list[Section]:
        found = self.metrics.get("changes")
        if not found or not found["changed"]:
            return []
        told = [
            f"Of {found['watched']:,} unlabelled {self.metrics['unit']} that were watched, {found['changed']:,} are in"
            " another class at the end than the start put them in."
        ]
        if found["known"]:
            told.append(
                f"The true class of {found['known']:,} of these is known: {found['right_before']:,} were right at the"
                f" start, {found['right_after']:,} are at the end. Nothing was chosen by this."
            )
        headings = [self.metrics["unit"].removesuffix("s"), "at the start", "at the end"]
        rows = [[each["text"], each["before"], each["after"]] for each in found["examples"]]
        if any(each["label"] for each in found["examples"]):
            headings.append("true class")
            rows = [[*row, each["label"] or ""] for row, each in zip(rows, found["examples"], strict=True)]
        return [Section("Pseudo-labels that changed", told, [Table(headings, rows)])]

    def mistakes(self) -> list[Section]:
        found = self.metrics.get("mistakes")
        if not found:
            return []
        told = f"The {len(found)} {self.where} rows it was surest of and wrong on. Some may be labelled wrongly."
        rows = [[each["text"], each["label"], each["predicted"], f"{100 * each['confidence']:.0f} %"] for each in found]
        return [Section("Some mistakes", [told], [Table(["text", "true class", "taken for", "confidence"], rows)])]

    def notes(self) -> list[Section]:
        told = [note for note in self.metrics["notes"] if not note.startswith(WARNING)]
        return [Section("Notes", told)] if told else []

    def draw(self, figure: Figure, name: str, alt: str, caption: str = "") -> Picture:
        path = self.pictures / f"{name}.png"  # alone: drawing takes time, and nobody would see another format
        figure.savefig(path, dpi=160)
        return Picture(path, alt, caption)
