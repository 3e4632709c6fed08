"""What the bench does so that its tables are fair: published settings, the paper's α, marks, corrected p-values."""

from pathlib import Path
from typing import Any

import pytest

from drift.methods import METHODS
from drift.paper.bench.catalogue import find_exhibit
from drift.paper.bench.cells import Job
from drift.paper.bench.collecting import table_of
from drift.paper.bench.planning import jobs_of, part_of
from drift.paper.bench.running import Result
from drift.paper.presets import published
from drift.paper.self_training import DETACHED, LEE
from drift.runs.comparing.statistics import holm, paired_t
from drift.runs.comparing.tables import Cell, ScoreTable


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFT_DATA", str(tmp_path))


def methods_of(name: str, profile: str, cell: str, **parts: Any) -> dict[str, dict[str, Any]]:
    """The method settings of each row of one cell."""
    jobs = jobs_of(part_of(find_exhibit(name), [cell], **parts), profile, 1)
    return {job.row: dict(job.config["method"]) for job in jobs}


def test_temperature_and_weights_of_drift_do_not_reach_other_methods() -> None:
    for profile in ("paper", "laptop"):
        of = methods_of("semi", profile, "agnews-30", models=["finetuned" if profile == "paper" else "frozen"])
        assert (of["UDA"]["tau"], of["MixText"]["tau"]) == (0.85, 0.5)
        assert of["DRIFT"]["tau"] == of[DETACHED]["tau"] == (0.6 if profile == "paper" else 0.5)
        others = [name for name in of if not name.startswith(("DRIFT", "Soft"))]
        assert {of[name]["unlabeled_weight"] for name in others if "unlabeled_weight" in of[name]} == {1.0}


def test_the_papers_profile_has_published_periods_and_sizes() -> None:
    of = methods_of("weak", "paper", "conll03-weak")
    assert of["BOND"]["teacher_every"] == 450
    assert methods_of("weak", "paper", "wikigold-weak")["BOND"]["teacher_every"] == 700
    assert [of["UAST"][name] for name in ("passes", "sample", "chosen")] == [30, 16384, 4096]
    assert methods_of("weak", "paper", "agnews-weak")["COSINE"]["teacher_every"] == 250
    semi = methods_of("semi", "paper", "agnews-30")
    assert semi["MixText"]["ramp_steps"] == 4000  # all of training
    assert semi["SoftMatch"]["momentum"] == 0.999
    assert methods_of("semi", "laptop", "agnews-30", models=["frozen"])["SoftMatch"]["momentum"] == 0.99


def test_graph_methods_have_their_authors_weights_for_each_graph() -> None:
    for profile in ("paper", "laptop"):
        of = {cell: methods_of("graphs", profile, cell) for cell in ("cora-10", "citeseer-10", "pubmed-10")}
        assert [of[cell]["GraphVAT"]["graph_weight"] for cell in of] == [1.0, 0.5, 1.0]
        assert [of[cell]["GraphMix"]["unlabeled_weight"] for cell in of] == [10.0, 10.0, 1.0]
        mix = of["cora-10"]["GraphMix"]
        assert (mix["ramp_start"], mix["ramp_steps"]) == (75, 75)  # a quarter to half of 300 steps


def test_published_settings_exist_and_are_valid() -> None:
    for name, method in METHODS.items():
        settings = method.settings_type.read(published(name, "wikigold", 1000)).model_dump()
        assert published(name, "none", 1000).keys() <= settings.keys()


def test_the_paper_balances_all_classes_of_words() -> None:
    for profile, expected in (("paper", None), ("laptop", 0)):
        assert methods_of("weak", profile, "conll03-weak")["DRIFT"]["unbalanced_class"] == expected


def test_the_papers_alpha_stands_beside_the_profiles() -> None:
    of = methods_of("weak", "laptop", "webpage-weak", models=["frozen"])
    assert (of["DRIFT"]["alpha"], of["DRIFT at the paper's α"]["alpha"]) == (0.99, 0.95)
    assert of[f"{DETACHED} at the paper's α"]["alpha"] == 0.95
    graphs = methods_of("graphs", "laptop", "cora-10")
    assert {graphs[f"DRIFT+{model} at the paper's α"]["alpha"] for model in ("GCN", "GRAND")} == {0.99}
    assert "DRIFT at the paper's α" not in methods_of("weak", "paper", "webpage-weak")


def test_redrawn_seeds_are_runs_of_their_own() -> None:
    exhibit = part_of(find_exhibit("semi"), ["agnews-30"], ["drift"], ["frozen"])
    (together,) = jobs_of(exhibit, "laptop")
    apart = jobs_of(exhibit, "laptop", redraw=True)
    assert together.config["seeds"] == len(apart) == 10
    assert [(job.config["seeds"], job.config["training"]["seed"]) for job in apart] == [(1, seed) for seed in range(10)]
    results = {
        job: Result({job.config["training"]["seed"]: 0.8}, {"train": 1, "dev": 1, "total": 2}, 1.0) for job in apart
    }
    made = table_of(exhibit, "laptop", "frozen", apart, results)
    cell = made.rows["DRIFT"]["agnews-30"]
    assert (len(cell.scores), cell.wanted, cell.rows_by_seed) == (10, 10, True)
    assert any("own rows of train, dev and test" in note for note in made.notes)


def test_another_encoder_is_for_texts_with_a_fixed_one() -> None:
    jobs = jobs_of(part_of(find_exhibit("weak"), ["agnews-weak", "mitr-weak"], ["drift"]), "laptop", 1, encoder="E")
    models = {(job.cell, job.group): job.config["model"] for job in jobs}
    model = models["agnews-weak", "frozen"]
    assert (model["name"], model["pool"], model["max_length"]) == ("E", "auto", 256)
    assert "E" not in [model["name"] for place, model in models.items() if place != ("agnews-weak", "frozen")]


def table(kept: int = 0) -> ScoreTable:
    exhibit = part_of(find_exhibit("semi"), ["agnews-30"], [LEE, DETACHED, "DRIFT"], ["frozen"])
    jobs = jobs_of(exhibit, "laptop", 3)
    scores = {LEE: (0.80, 0.81, 0.83), DETACHED: (0.82, 0.83, 0.86), "DRIFT": (0.81, 0.83, 0.85)}

    def result(job: Job) -> Result:
        budget = {"train": 120, "dev": 500, "total": 620}
        return Result(dict(enumerate(scores[job.row])), budget, 1.0, kept if job.row == "DRIFT" else 0)

    return table_of(exhibit, "laptop", "frozen", jobs, {job: result(job) for job in jobs})


def test_cells_in_which_most_seeds_keep_the_start_are_marked() -> None:
    for kept, marked in ((0, False), (1, False), (2, True)):
        made = table(kept)
        assert made.rows["DRIFT"]["agnews-30"].text().endswith(" †") is marked
        assert not made.rows[LEE]["agnews-30"].text().endswith("†")
        assert any(note.startswith("† marks cells") for note in made.notes) is marked


def test_the_notes_say_which_alpha_was_used() -> None:
    assert "α of DRIFT: 0.9 (agnews-30)" in table().notes


def test_p_values_of_a_table_are_corrected_together() -> None:
    made = table()
    plain = [
        paired_t([*made.rows[row]["agnews-30"].scores.values()], [*made.rows[LEE]["agnews-30"].scores.values()])
        for row in (DETACHED, "DRIFT")
    ]
    corrected = [made.test(row, "agnews-30") for row in (DETACHED, "DRIFT")]
    assert [test.p for test in corrected if test] == pytest.approx(holm([test.p for test in plain]))
    assert [test.difference for test in corrected if test] == [test.difference for test in plain]
    alone = ScoreTable("", ["a"], {"x": {"a": Cell({0: 0.5, 1: 0.7})}, "y": {"a": Cell({0: 0.6, 1: 0.9})}}, "x")
    assert alone.test("y", "a") == paired_t([0.6, 0.9], [0.5, 0.7])
