"""The demonstration of two moons with few short trials: it shows what was measured."""

from functools import partial
from itertools import product

import pytest

from drift.paper.demos import DemoResult, moons_demo
from drift.paper.demos.moons import MoonsConfig, compare
from drift.paper.demos.moons_demo import BASELINES
from drift.runs.comparing.statistics import paired_t
from drift.training.progress import progress

SHORT = {"initial_epochs": 5, "epochs": 3}


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> DemoResult:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(moons_demo, "MoonsConfig", partial(MoonsConfig, **SHORT))
        patch.setattr(moons_demo, "PAPER_TRIALS", 3)
        patch.setattr(moons_demo, "TRIALS", 5)
        patch.setattr(moons_demo, "EPOCHS_SHOWN", (1, 3))
        return moons_demo.demo(tmp_path_factory.mktemp("demo") / "out", progress)


def test_page_and_figures_are_written(result: DemoResult) -> None:
    written = sorted(path.name for path in result.page.parent.iterdir())
    stems = ("moons-learning", "moons-regions")
    assert written == sorted(["report.html", *(f"{stem}.{kind}" for stem in stems for kind in ("png", "svg"))])


def test_the_table_holds_the_scores_of_compare(result: DemoResult) -> None:
    results = compare(MoonsConfig(**SHORT), range(5))
    ours = results["DRIFT"].accuracy
    rows = {row[0]: row[1:] for row in result.tables[0].rows}
    expected = {"Supervised start": ours[:, 0], **{name: each.accuracy[:, -1] for name, each in results.items()}}
    for name, scores in expected.items():
        for cell, trials in zip(rows[name], (3, 5), strict=False):
            part = 100 * scores[:trials]
            assert cell == f"{part.mean():.2f} ± {part.std(ddof=1):.2f}"
    compared = product(BASELINES, (3, 5))
    for (name, trials), finding in zip(compared, result.findings, strict=True):
        test = paired_t(ours[:trials, -1], results[name].accuracy[:trials, -1])
        assert f"Over {trials} trials, DRIFT minus {name}" in finding
        assert f"{test.gap()} points" in finding
        assert f"p = {test.p:.2g}" in finding


def test_the_page_has_table_findings_and_both_figures(result: DemoResult) -> None:
    page = result.page.read_text(encoding="utf-8")
    assert all(finding in page for finding in result.findings)
    assert all(f">{cell}<" in page for row in result.tables[0].rows for cell in row if cell)
    assert page.count("data:image/png;base64,") == 2
    assert f"{SHORT['epochs']} of self-training" in page


def test_the_default_settings_are_consistent() -> None:
    assert max(moons_demo.EPOCHS_SHOWN) <= MoonsConfig().epochs
    assert moons_demo.PAPER_TRIALS <= moons_demo.TRIALS
