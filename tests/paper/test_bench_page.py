"""The page of a bench and its figures: they show what the runs wrote. Two moons are run once."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy import stats

import drift
from drift.errors import ConfigError
from drift.paper.bench import bench as bench_module
from drift.paper.bench import figures
from drift.paper.bench.bench import Bench, bench
from drift.paper.bench.catalogue import ALPHAS, TAUS, find_exhibit
from drift.paper.bench.cells import Job
from drift.paper.bench.collecting import table_of
from drift.paper.bench.figures import ablation, curves, sensitivity
from drift.paper.bench.page import PageContent, verdicts, write_bench_page
from drift.paper.bench.planning import jobs_of, part_of
from drift.paper.bench.running import FAILURE, RESULT, RUN, Failure, Result, cell_folder, result_of
from drift.paper.demos import moons_demo
from drift.paper.demos.moons import MoonsConfig
from drift.paper.self_training import COPIED, DETACHED, LEE
from drift.report.figures import save
from drift.runs.comparing.statistics import holm
from drift.training.run_folder import TRACE
from tests.report.browser import CHROMIUM, Browser
from tests.report.test_page import HOSTILE, Reader

BUDGET = {"train": 70, "dev": 500, "total": 570}
PHONE = 375  # pixels
DevScores = Mapping[int, Sequence[float]]  # of all seeds, by step


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder for data; nothing is read from it, because every run is finished."""
    monkeypatch.setenv("DRIFT_DATA", str(tmp_path / "data"))


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "bench"


def jobs(name: str, group: str, *, profile: str = "laptop", seeds: int | None = None, **parts: Any) -> list[Job]:
    return [job for job in jobs_of(part_of(find_exhibit(name), **parts), profile, seeds) if job.group == group]


def finish(out: Path, job: Job, scores: Sequence[float], dev: DevScores, *, by_seed: bool = True) -> Result:
    """Write a finished run: its result, and a trace of both phases. dev: dev scores of the second phase."""
    result = Result(dict(enumerate(scores, job.config["training"]["seed"])), BUDGET, 60.0)
    (cell_folder(out, job) / RUN).mkdir(parents=True)
    (cell_folder(out, job) / RESULT).write_text(json.dumps(result.__dict__), encoding="utf-8")
    entries: list[dict[str, Any]] = [{"phase": "start", "step": 5, "dev": {"accuracy": 0.01, "macro_f1": 0.0}}]
    for step, shares in dev.items():
        entries.append({"phase": "game", "step": step, "loss": 1.0})
        entry: dict[str, Any] = {"phase": "game", "step": step, "dev": {"accuracy": np.mean(shares), "macro_f1": 0.5}}
        if by_seed and job.config["seeds"] > 1:
            entry["dev_by_seed"] = {"accuracy": list(shares), "macro_f1": [0.5] * len(shares)}
        entries.append(entry)
    lines = "".join(f"{json.dumps(entry)}\n" for entry in entries)
    (cell_folder(out, job) / RUN / TRACE).write_text(lines, encoding="utf-8")
    return result


def words(page: Reader) -> str:
    """Headings, paragraphs and commands."""
    return "\n".join(text for tag in ("h2", "p", "pre") for text in page.texts.get(tag, ()))


CELLS, METHODS = ["cora-10", "citeseer-10"], ["self-training-lee", "drift-gcn", "drift-grand"]
SCORES = {LEE: [0.70, 0.72, 0.71], "DRIFT+GCN": [0.80, 0.81, 0.82], "DRIFT+GRAND": [0.70, 0.73, 0.70]}


@pytest.fixture
def done(out: Path) -> Bench:
    """A bench whose runs are all finished."""
    for job in jobs("graphs", "graph", seeds=3, cells=CELLS, methods=METHODS):
        finish(out, job, SCORES[job.row], {0: [0.5] * 3, 10: [0.6] * 3})
    return bench("graphs", out, seeds=3, cells=CELLS, methods=METHODS, quiet=True)


def test_the_page_is_complete(done: Bench, out: Path) -> None:
    assert done.files[-2:] == [
        out / "figures" / "graphs-laptop-graph-part-curves.png",
        out / "graphs-laptop-part.html",
    ]
    page = Reader(done.files[-1].read_text(encoding="utf-8"))
    for text in (
        "table 5 of the paper",
        "Profile laptop is sized for two cores",
        "graph (3 seeds)",
        "cora-10, citeseer-10",
        "All choices were made on dev; test was scored once",
        "6 of 6 runs are finished",
        "DRIFT+GCN against Self-training (Lee): ahead in 2 (cora-10, citeseer-10); tie in 0; behind in 0.",
        "DRIFT+GRAND against Self-training (Lee): ahead in 0; tie in 2 (cora-10, citeseer-10); behind in 0. The two"
        " also use different models.",
        "drift bench graphs --profile laptop --seeds 3 --cells cora-10,citeseer-10"
        f" --methods {','.join(METHODS)} --out {out}",
    ):
        assert text in words(page), text
    cells = page.texts["td"]
    corrected = 4 * stats.ttest_rel(SCORES["DRIFT+GCN"], SCORES[LEE]).pvalue  # the smallest of four, by Holm
    for text in ("★ 81.00 ± 1.00", "71.00 ± 1.00", "+10.00 ± 0.58", f"p = {corrected:.3f}, 3 pairs", "70 + 500 dev"):
        assert text in cells, text
    assert "74.40" in cells  # the paper's Self-training on cora-10
    assert cells.count("60 seconds") == 6
    assert "4 minutes" in cells  # four runs of the GCN
    for job in jobs("graphs", "graph", seeds=3, cells=CELLS, methods=METHODS):
        assert f"cells/{job.key}/run" in cells
    headings = [heading.strip() for heading in page.texts["th"]]
    # Headings repeat the method, for screen readers.
    for text in ("DRIFT+GCN − Self-training (Lee)", "DRIFT+GCN: p, pairs", "DRIFT+GCN in the paper"):
        assert text in headings, text
    assert [tag for tag, _ in page.elements].count("img") == 1


def test_time_is_summed_by_kind_of_model_and_a_shared_run_is_counted_once(out: Path) -> None:
    exhibit = part_of(find_exhibit("sensitivity"), ["agnews-30"], ["α = 0.9", "τ = 0.5"])
    frozen = [job for job in jobs_of(exhibit, "laptop") if job.group == "frozen"]
    assert len(frozen) == 2
    results = {job: Result({0: 0.5}, BUDGET, 3600.0) for job in frozen}
    content = page_content("sensitivity", "frozen", results, ["agnews-30"])
    page = Reader(write_bench_page(out / "page.html", content).read_text(encoding="utf-8"))
    assert "60 minutes" in page.texts["td"]
    assert "2 hours" not in page.texts["td"]
    assert "Wins, ties and losses" not in words(page)  # there is nothing to test against


def test_missing_runs_are_listed(out: Path) -> None:
    content = page_content("rings", "frozen", {}, ["imdb-weak"], not_run=["not run in this profile: finetuned, 6 runs"])
    page = Reader(write_bench_page(out / "page.html", content).read_text(encoding="utf-8"))
    assert "Not run in this profile: finetuned, 6 runs." in words(page)
    assert "8 runs of this profile have no result yet" in words(page)
    assert (
        "DRIFT against Self-training (Lee): ahead in 0; tie in 0; behind in 0; not compared in 1 (imdb-weak)."
        in words(page)
    )
    assert "Runs and their time" not in words(page)


def page_content(
    name: str, group: str, results: Mapping[Job, Result], cells: list[str], not_run: Sequence[str] = ()
) -> PageContent:
    exhibit = part_of(find_exhibit(name), cells)
    others = [job for job in jobs_of(exhibit, "laptop") if job.key not in {done.key for done in results}]
    all_jobs = [*results, *others]
    table = table_of(exhibit, "laptop", group, all_jobs, results)
    return PageContent(exhibit, "laptop", all_jobs, results, [], not_run, "drift bench", {group: table})


def hostile_content() -> PageContent:
    """Hostile text wherever text goes, and as many columns as the widest table has."""
    exhibit = replace(find_exhibit("semi"), summary=HOSTILE[0])
    all_jobs = [job for job in jobs_of(exhibit, "laptop") if job.group == "frozen"]
    results = {job: Result({0: 0.5, 1: 0.625}, BUDGET, 3.0) for job in all_jobs}
    table = replace(table_of(exhibit, "laptop", "frozen", all_jobs, results), notes=HOSTILE)
    renamed = {replace(job, row=HOSTILE[2], cell=HOSTILE[5]): result for job, result in list(results.items())[:3]}
    failures = [Failure(replace(all_jobs[0], row=HOSTILE[1]), f"{text} {'x' * 200}") for text in HOSTILE]
    command = f"drift bench semi --out {HOSTILE[4]}"
    tables = {HOSTILE[3]: table}
    return PageContent(exhibit, "laptop", all_jobs, renamed | results, failures, HOSTILE, command, tables)


def test_hostile_text_stays_text(out: Path) -> None:
    page = Reader(write_bench_page(out / "page.html", hostile_content()).read_text(encoding="utf-8"))
    tags = [tag for tag, _ in page.elements]
    assert not {"script", "img", "iframe"} & set(tags)
    assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]
    assert all(str(attributes["href"]).startswith("#") for tag, attributes in page.elements if tag == "a")
    for text in HOSTILE:
        assert any(text in cell for cell in page.texts["td"])  # reasons of failures
        assert any(text[1:] in paragraph for paragraph in page.texts["p"])  # notes; their first letter is capitalised
    assert HOSTILE[0] in page.texts["h1"][0]
    assert f"Scores: {HOSTILE[3]}" in page.texts["h2"]
    assert any(HOSTILE[3] in caption for caption in page.texts["p"])
    assert HOSTILE[5] in page.texts["th"]
    assert HOSTILE[2] in page.texts["td"]
    assert HOSTILE[4] in page.texts["pre"][-1]


def test_wins_ties_and_losses_are_those_of_scipy(out: Path) -> None:
    exhibit, draw = find_exhibit("graphs"), np.random.default_rng(0)
    shifts = {LEE: 0.0, "DRIFT+GCN": 0.02, "DRIFT+GRAND": -0.02}
    results, expected = {}, {row: {"win": [], "tie": [], "loss": []} for row in shifts if row != LEE}
    by_position = {(job.row, job.cell): job for job in jobs("graphs", "graph")}
    tests = {}
    for cell in exhibit.cells:
        scores = {row: 0.7 + shift * draw.random() + 0.02 * draw.random(10) for row, shift in shifts.items()}
        for row, of_seeds in scores.items():
            results[by_position[row, cell]] = Result(dict(enumerate(of_seeds.tolist())), BUDGET, 1.0)
        tests |= {(row, cell): stats.ttest_rel(scores[row], scores[LEE]) for row in expected}
    for ((row, cell), test), p in zip(tests.items(), holm([test.pvalue for test in tests.values()]), strict=True):
        expected[row]["tie" if p >= 0.05 else "win" if test.statistic > 0 else "loss"].append(cell)
    assert expected["DRIFT+GCN"]["win"]
    assert expected["DRIFT+GCN"]["tie"]
    assert expected["DRIFT+GRAND"]["loss"]
    content = page_content("graphs", "graph", results, list(exhibit.cells))
    page = Reader(write_bench_page(out / "page.html", content).read_text(encoding="utf-8"))
    for row, verdict in expected.items():
        assert verdicts(content.tables["graph"], row) == {**verdict, "not compared": []}
        assert f"{row} against Self-training (Lee): ahead in {len(verdict['win'])}" in words(page)
    assert verdicts(content.tables["graph"], "GRAND")["not compared"] == list(exhibit.cells)
    assert "over all comparisons of a table (24 here)" in words(page)


# Learning curves.


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The figures that are saved."""
    saved: list[Figure] = []

    def keep(figure: Figure, folder: Path, name: str) -> Path:
        saved.append(figure)
        return save(figure, folder, name)

    monkeypatch.setattr(figures, "save", keep)
    return saved


def edges(band: Any) -> dict[float, tuple[float, float]]:
    """The lower and upper edge of a band by step."""
    corners = band.get_paths()[0].vertices
    steps = sorted(set(corners[:, 0]))
    return {x: (corners[corners[:, 0] == x, 1].min(), corners[corners[:, 0] == x, 1].max()) for x in steps}


def test_curves_are_the_numbers_of_the_traces(out: Path, drawn: list[Figure]) -> None:
    draw = np.random.default_rng(0)
    dev = {row: {step: draw.random(10).tolist() for step in (0, 50, 100)} for row in (LEE, "DRIFT")}
    rows = jobs("semi", "frozen", cells=["agnews-30"], methods=["uast", "self-training-lee", "drift"])
    results = {job: finish(out, job, [0.5] * 10, dev.get(job.row, {0: [0.1] * 10})) for job in rows}
    (picture,) = curves(find_exhibit("semi"), "frozen", results, out / "figures" / "stem", out)
    path = picture.path
    assert path == out / "figures" / "stem-curves.png"
    assert path.exists()
    assert path.with_suffix(".svg").exists()
    (axes,) = drawn[0].axes
    assert axes.get_title() == "agnews-30"
    assert [line.get_label() for line in axes.lines] == list(dev)
    for line, band, shares in zip(axes.lines, axes.collections, dev.values(), strict=True):
        assert list(line.get_xdata()) == [0, 50, 100]
        for step, mean in zip(shares, np.asarray(line.get_ydata()), strict=True):
            spread = np.std(shares[step], ddof=1)
            assert mean == pytest.approx(100 * np.mean(shares[step]))
            expected = (100 * (np.mean(shares[step]) - spread), 100 * (np.mean(shares[step]) + spread))
            assert edges(band)[step] == pytest.approx(expected)


def test_runs_of_single_seeds_are_joined_at_the_steps_they_share(out: Path, drawn: list[Figure]) -> None:
    seeds = jobs("weak", "finetuned", cells=["agnews-weak"], methods=["drift"])
    shares = [0.6, 0.7, 0.9]
    results = {
        job: finish(out, job, [0.5], {step: [share + step / 1000] for step in (0, 20, 40)[: 3 - (share == 0.7)]})
        for job, share in zip(seeds, shares, strict=True)
    }
    curves(find_exhibit("weak"), "finetuned", results, out / "stem", out)
    (line,), (band,) = drawn[0].axes[0].lines, drawn[0].axes[0].collections
    assert list(line.get_xdata()) == [0, 20]  # the second ended before 40
    assert np.asarray(line.get_ydata()) == pytest.approx([100 * np.mean(shares), 100 * np.mean(shares) + 2])
    low, high = edges(band)[20]
    assert (high - low) / 2 == pytest.approx(100 * np.std(shares, ddof=1))


def test_a_trace_with_only_means_has_a_line_and_no_band(out: Path, drawn: list[Figure]) -> None:
    rows = jobs("ablation", "frozen", cells=["agnews-30"])
    results = {job: finish(out, job, [0.5], {0: [0.6, 0.8], 50: [0.7, 0.9]}, by_seed=False) for job in rows}
    curves(find_exhibit("ablation"), "frozen", results, out / "stem", out)
    (axes,) = drawn[0].axes
    of_drift = ["DRIFT", "w/o DrPL", "w/o DrW", "w/o SR"]
    assert [line.get_label() for line in axes.lines] == [LEE, COPIED, DETACHED, *of_drift]
    assert all(np.asarray(line.get_ydata()) == pytest.approx([70, 80]) for line in axes.lines)
    assert not axes.collections


def test_there_are_four_panels_per_row_and_no_figure_without_data(out: Path, drawn: list[Figure]) -> None:
    rows = jobs("graphs", "graph", methods=["drift"])
    some = [job for job in rows if job.row == "DRIFT+GCN"][:6]
    results = {job: finish(out, job, [0.5], {0: [0.6, 0.8], 50: [0.7, 0.9]}) for job in some}
    curves(find_exhibit("graphs"), "graph", results, out / "stem", out)
    assert [axes.get_title() for axes in drawn[0].axes] == [job.cell for job in some]
    assert len({axes.get_position().x0 for axes in drawn[0].axes}) == 4
    empty = finish(out, rows[1], [0.5], {})
    without_trace = {rows[3]: Result({0: 0.5}, BUDGET, 1.0)}
    assert curves(find_exhibit("graphs"), "graph", {rows[1]: empty, **without_trace}, out / "none" / "stem", out) == []
    assert not (out / "none").exists()


# The other figures.


def test_bars_have_the_heights_of_the_means_and_every_row_is_in_the_legend(out: Path, drawn: list[Figure]) -> None:
    draw = np.random.default_rng(0)
    rows = jobs("ablation", "frozen", cells=["agnews-30", "imdb-30"])
    results = {job: Result(dict(enumerate(draw.random(4).tolist())), BUDGET, 1.0) for job in rows}
    results = {job: result for job, result in results.items() if (job.row, job.cell) != ("w/o SR", "agnews-30")}
    exhibit = part_of(find_exhibit("ablation"), ["agnews-30", "imdb-30"])
    (picture,) = ablation(exhibit, "frozen", results, out / "figures" / "stem", out)
    assert picture.path == out / "figures" / "stem.png"
    assert picture.path.with_suffix(".svg").exists()
    (axes,) = drawn[0].axes
    order = [row.title for row in exhibit.rows]
    expected = [
        (job.cell, 100 * np.mean([*result.scores.values()]), 100 * np.std([*result.scores.values()], ddof=1))
        for job, result in sorted(results.items(), key=lambda item: order.index(item[0].row))
    ]
    bars = [(round(bar.get_x() + bar.get_width() / 2), bar.get_height()) for bar in axes.patches]
    assert [exhibit.cells[column] for column, _ in bars] == [cell for cell, _, _ in expected]
    assert [height for _, height in bars] == pytest.approx([mean for _, mean, _ in expected])
    spreads = [np.ptp(bar.errorbar.lines[2][0].get_segments()[0][:, 1]) / 2 for bar in axes.containers[1::2]]
    assert spreads == pytest.approx([spread for _, _, spread in expected])
    assert [text.get_text() for text in drawn[0].legends[0].texts] == order
    looks = {(bar.get_facecolor(), bar.get_hatch()) for bar in axes.patches}
    assert len(looks) == len(order)
    assert ablation(exhibit, "frozen", {}, out / "none" / "stem", out) == []


def test_lines_of_α_and_τ_are_the_means_of_their_cells(out: Path, drawn: list[Figure]) -> None:
    exhibit = part_of(find_exhibit("sensitivity"), ["agnews-30", "agnews-weak"])
    draw = np.random.default_rng(0)
    frozen = [job for job in jobs_of(exhibit, "laptop", 2) if job.group == "frozen"]
    results = {job: Result(dict(enumerate(draw.random(2).tolist())), BUDGET, 1.0) for job in frozen}
    sensitivity(exhibit, "frozen", results, out / "stem", out)
    means = {(job.row, job.cell): 100 * np.mean([*result.scores.values()]) for job, result in results.items()}
    for axes, symbol, values in zip(drawn[0].axes, "ατ", (ALPHAS, TAUS), strict=True):
        assert axes.get_title() == f"{symbol} on agnews"
        lines = {line.get_label(): line for line in axes.lines}
        for cell, prefix in product(exhibit.cells, ("", f"{DETACHED}, ")):
            line = lines.pop(f"{cell}, detached" if prefix else cell)
            assert list(line.get_xdata()) == list(values)
            expected = [means[f"{prefix}{symbol} = {value}", cell] for value in values]
            assert list(line.get_ydata()) == pytest.approx(expected)
        levels = {label: line.get_ydata()[0] for label, line in lines.items()}
        conventional = product(exhibit.cells, (LEE, COPIED))
        assert levels == {f"{cell}, {row}": pytest.approx(means[row, cell]) for cell, row in conventional}
    assert sensitivity(exhibit, "frozen", {}, out / "none" / "stem", out) == []


# A second bench in the same folder.


def test_neither_a_part_nor_another_profile_overwrites_the_whole(out: Path) -> None:
    by_profile = {
        profile: jobs("graphs", "graph", profile=profile, cells=["cora-10"]) for profile in ("laptop", "paper")
    }
    for own_jobs in by_profile.values():
        for job in own_jobs:
            if not (cell_folder(out, job) / RESULT).exists():  # some are the same in both
                finish(out, job, [0.7] * 10, {0: [0.5] * 10})
    whole = bench("graphs", out, collect=True, quiet=True).files
    before = {file: file.read_bytes() for file in whole}
    for other in ({"cells": ["cora-10"]}, {"methods": ["drift"]}, {"profile": "paper"}):
        files = bench("graphs", out, collect=True, quiet=True, **other).files
        assert files
        assert not set(files) & set(whole)
    assert {file: file.read_bytes() for file in whole} == before


def test_collect_lists_failures_and_runs_nothing(out: Path) -> None:
    good, bad = jobs("graphs", "graph", cells=["cora-10"], methods=["self-training-lee", "GCN"])
    finish(out, good, [0.7] * 10, {0: [0.5] * 10})
    (cell_folder(out, bad)).mkdir(parents=True)
    traceback = "Traceback (most recent call last):\n  ...\ndrift.errors.DataError: graph.npz: damaged; get it again\n"
    (cell_folder(out, bad) / FAILURE).write_text(traceback, encoding="utf-8")
    done = bench("graphs", out, cells=["cora-10"], methods=["self-training-lee", "GCN"], collect=True, quiet=True)
    (failure,) = done.failures
    assert failure.reason == "DataError: graph.npz: damaged; get it again"
    assert done.tables[0].rows[bad.row]["cora-10"].text() == "failed"
    assert result_of(out, bad) is None
    assert bench("moons", out, collect=True).lines == ["moons: not run yet"]
    with pytest.raises(
        ConfigError, match="profile laptop leaves all of this out; to run it, give both --cells and --models"
    ):
        bench("ablation", out, models=["finetuned"], quiet=True)


def test_jobs_is_the_deprecated_name_of_n_jobs(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    received: list[int | None] = []

    def run_nothing(*_: Any, n_jobs: int | None, **__: Any) -> list[Failure]:
        received.append(n_jobs)
        return []

    monkeypatch.setattr(bench_module, "run_jobs", run_nothing)
    chosen: dict[str, Any] = {"cells": ["cora-10"], "methods": ["GCN"], "quiet": True}
    with pytest.warns(FutureWarning, match="^jobs is deprecated; use n_jobs$"):
        bench("graphs", out, jobs=3, **chosen)
    bench("graphs", out, n_jobs=2, **chosen)
    assert received == [3, 2]


# Two moons.


class RunAgainError(Exception):
    pass


def run_again(*_: Any) -> None:
    raise RunAgainError


def test_moons_are_run_once(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moons_demo, "MoonsConfig", partial(MoonsConfig, initial_epochs=5, epochs=2))
    for name, value in (("PAPER_TRIALS", 2), ("TRIALS", 3), ("EPOCHS_SHOWN", (1, 2))):
        monkeypatch.setattr(moons_demo, name, value)
    first = bench("moons", out, quiet=True)
    assert len(first.files) == 5
    assert all(file.exists() for file in first.files)
    assert "Over 3 trials" in first.lines[1]

    monkeypatch.setattr(moons_demo, "demo", run_again)
    assert bench("moons", out, quiet=True) == first
    for module, name, other in ((moons_demo, "MoonsConfig", MoonsConfig), (drift, "__version__", "another")):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, other)
            with pytest.raises(RunAgainError):
                bench("moons", out, quiet=True)
    assert bench("moons", out, quiet=True) == first
    first.files[-1].unlink()
    with pytest.raises(RunAgainError):
        bench("moons", out, quiet=True)
    first.files[-1].touch()
    (out / "moons" / RESULT).write_text("{ cut short", encoding="utf-8")
    with pytest.raises(RunAgainError):
        bench("moons", out, quiet=True)


# In a browser.


class Listening(Browser):
    """Also records what a page writes to its console."""

    def __init__(self, profile: Path) -> None:
        self.messages: list[Any] = []
        super().__init__(profile)
        self.ask("Log.enable")

    def _note(self, heard: dict[str, Any]) -> None:
        super()._note(heard)
        if heard.get("method") in ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown"):
            self.messages.append(heard["params"])


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Listening]:
    opened = Listening(tmp_path / "profile")
    yield opened
    opened.close()


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium is installed")
def test_a_page_fits_a_phone_and_makes_no_requests_or_console_messages(
    browser: Listening, done: Bench, out: Path
) -> None:
    for page in (done.files[-1], write_bench_page(out / "hostile.html", hostile_content())):
        for dark in (False, True):
            browser.open(page, width=PHONE, dark=dark)
            assert browser.run("document.documentElement.scrollWidth") <= PHONE
            assert browser.run("[...document.querySelectorAll('.wide')].some(e => e.scrollWidth > e.clientWidth)")
            assert browser.run("[...document.images].every(i => i.complete && i.naturalWidth > 0 && i.alt)")
            assert (browser.dialogs, browser.requests, browser.messages) == ([], [], [])
    browser.run("console.error('heard')")
    assert len(browser.messages) == 1  # otherwise the empty list above would prove nothing
