"""Parts of a bench: the paper's numbers, the catalogue, the keys of runs, estimates and tables."""

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from drift.errors import ConfigError, FileError
from drift.methods import METHODS
from drift.paper.bench.catalogue import (
    ALPHAS,
    EXHIBITS,
    TAUS,
    find_exhibit,
    paper_figure,
    paper_notes,
    paper_numbers,
)
from drift.paper.bench.cells import Job
from drift.paper.bench.collecting import not_run, plan_lines, table_of
from drift.paper.bench.estimates import correction, estimated_seconds
from drift.paper.bench.planning import command_names, jobs_of, part_of
from drift.paper.bench.running import Result
from drift.paper.presets import PROFILES, base_settings, preset_names
from drift.paper.self_training import COPIED, DETACHED, FORMS, LEE
from drift.runs.spec import read_stored
from drift.tasks import TASKS

TABLES = ("weak", "semi", "textcnn", "ablation", "graphs")


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of data; nothing is run."""
    monkeypatch.setenv("DRIFT_DATA", str(tmp_path / "data"))
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


def jobs(name: str, profile: str = "laptop", seeds: int | None = None, **parts: Any) -> list[Job]:
    return jobs_of(part_of(find_exhibit(name), **parts), profile, seeds)


def result(*scores: float, seconds: float = 60.0) -> Result:
    return Result(dict(enumerate(scores)), {"train": 120, "dev": 500, "total": 620}, seconds)


def test_some_kinds_of_model_can_be_chosen() -> None:
    all_jobs, frozen = jobs("weak"), jobs("weak", models=["frozen"])
    assert {job.group for job in all_jobs} == {"frozen", "finetuned"}
    assert [job.title for job in frozen] == [job.title for job in all_jobs if job.group == "frozen"]
    with pytest.raises(ConfigError, match="'frosen' is not a kind of model of weak; did you mean 'frozen'"):
        jobs("weak", models=["frosen"])


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("name", [name for name, exhibit in EXHIBITS.items() if exhibit.cells])
def test_published_tables_have_fixed_numbers_of_steps(name: str, profile: str) -> None:
    """Whatever the defaults of a task are: those of presets are their own."""
    for job in jobs_of(find_exhibit(name), profile) if find_exhibit(name).groups[profile] else []:
        training = job.config["training"]
        assert (training["until"], training["minutes"]) == ("steps", None)
        assert set(base_settings(job.config["task"], job.kind, weak=False)["training"]) <= set(training)


def test_settings_of_presets_do_not_follow_the_defaults_of_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    before = [job.config for name in TABLES for job in jobs(name)]
    for task in TASKS.values():
        monkeypatch.setattr(task, "defaults", classmethod(lambda cls, kind, *, weak: {"training": {"steps": 1}}))
    assert [job.config for name in TABLES for job in jobs(name)] == before
    gcn = next(job for job in jobs("graphs", cells=["cora-10"], methods=["drift"]) if job.kind == "gcn")
    assert (gcn.config["training"]["initial_steps"], gcn.config["training"]["steps"]) == (200, 300)


# The paper's numbers.


@pytest.mark.parametrize(
    ("exhibit", "row", "cell", "printed"),
    [
        ("weak", "DRIFT", "imdb-weak", 91.56),
        ("weak", "BOND", "wikigold-weak", 60.07),
        ("weak", "RoBERTa-Full", "bc5cdr-weak", 85.15),
        ("semi", "MixText", "agnews-30", 88.50),
        ("semi", "UDA", "amazon-30", None),
        ("semi", "DRIFT", "amazon-1000", 94.28),
        ("textcnn", "UAST", "imdb-50", 68.70),
        ("ablation", "w/o DrW", "imdb-weak", 90.24),
        ("graphs", "DRIFT+GRAND", "pubmed-100", 86.8),
        ("graphs", "GRAND", "citeseer-10", 62.8),
        ("semi", None, "agnews-30", None),
        ("rings", "DRIFT", "imdb-weak", None),
    ],
)
def test_the_papers_figures(exhibit: str, row: str | None, cell: str, printed: float | None) -> None:
    assert paper_figure(exhibit, row, cell) == printed


def test_every_number_of_the_papers_tables_is_there() -> None:
    counts = {}
    for name in TABLES:
        table = paper_numbers()[name]
        assert all(len(row) == len(table["columns"]) for row in table["rows"].values())
        flat = [each for row in table["rows"].values() for figure in row for each in _numbers(figure)]
        assert all(50 < figure < 100 or figure == 49.17 for figure in flat)
        counts[name] = len(flat)
    # Table 1: seven rows of four single figures and four triples, but WeSTClass has three figures. Table 2: twelve per
    # row, but four for VAMPIRE and eight for UDA and MixText.
    assert counts == {"weak": 6 * 16 + 3, "semi": 4 * 12 + 4 + 2 * 8, "textcnn": 40, "ablation": 24, "graphs": 84}
    assert len(paper_numbers()["datasets"]) == 9
    assert len(paper_numbers()["graph_datasets"]) == 3


def _numbers(figure: float | list[float] | None) -> list[float]:
    return [] if figure is None else figure if isinstance(figure, list) else [figure]


def test_f1_of_entities_is_between_its_precision_and_recall() -> None:
    for row in paper_numbers()["weak"]["rows"].values():
        for f1, precision, recall in (figure for figure in row if isinstance(figure, list)):
            assert 2 * precision * recall / (precision + recall) == pytest.approx(f1, abs=0.2)


def test_the_likely_misprint_is_noted() -> None:
    rows = paper_numbers()["weak"]["rows"]["Self-training"]
    columns = paper_numbers()["weak"]["columns"]
    assert rows[columns.index("webpage-weak")] == rows[columns.index("wikigold-weak")]
    assert "misprint" in " ".join(paper_notes("weak"))
    table = table_of(EXHIBITS["weak"], "laptop", "frozen", [], {})
    assert any("misprint" in note for note in table.notes)


# The catalogue.


@pytest.mark.parametrize(
    ("name", "expected"), [("weak", "weak"), ("table1", "weak"), ("Figure-3", "sensitivity"), ("figure2", "moons")]
)
def test_exhibits_by_name_and_by_number(name: str, expected: str) -> None:
    assert find_exhibit(name).name == expected


@pytest.mark.parametrize(("name", "hint"), [("wek", "did you mean 'weak'"), ("table7", "drift datasets")])
def test_other_names_are_refused(name: str, hint: str) -> None:
    with pytest.raises(ConfigError, match=hint):
        find_exhibit(name)


def test_every_table_and_figure_of_the_paper_is_in_the_catalogue() -> None:
    references = {exhibit.reference for exhibit in EXHIBITS.values()}
    assert references == {*(f"table {n}" for n in range(1, 6)), "figures 1 and 2", "figure 3", "figure 4", "figure 5"}


@pytest.mark.parametrize("exhibit", [e for e in EXHIBITS.values() if e.cells], ids=lambda e: e.name)
def test_rows_and_cells_are_the_papers(exhibit: Any) -> None:
    assert {cell.rpartition("-")[0] for cell in exhibit.cells} <= set(preset_names())
    if exhibit.name in TABLES:
        assert list(exhibit.cells) == paper_numbers()[exhibit.name]["columns"]
        assert set(paper_numbers()[exhibit.name]["rows"]) <= {row.paper for row in exhibit.rows}
    assert len({row.title for row in exhibit.rows}) == len(exhibit.rows)


@pytest.mark.parametrize("profile", PROFILES)
def test_every_job_has_a_complete_configuration(profile: str) -> None:
    for name in ("textcnn", "rings", "tsne"):
        for job in jobs(name, profile, 1):
            again = read_stored(job.config, "here").model_dump(mode="json")
            assert again == job.config
            assert job.config["method"]["name"] in METHODS
            assert job.config["training"]["trackers"] == []


def test_the_papers_settings_are_the_presets() -> None:
    (job,) = jobs("weak", "paper", 1, cells=["imdb-weak"], methods=["drift"])
    assert job.config["model"]["name"] == "roberta-base"
    assert (job.config["training"]["initial_steps"], job.config["training"]["steps"]) == (160, 2500)
    assert job.config["method"]["alpha"] == 0.9
    assert job.config["data"]["train_rows"] is None
    assert not job.left_out


def test_gold_has_the_steps_of_both_phases_and_no_weak_label() -> None:
    gold, start = jobs("weak", "paper", 1, cells=["imdb-weak"], methods=["supervised"])
    assert gold.config["training"]["initial_steps"] == 160 + 2500
    assert gold.config["data"]["weak"] is None
    assert gold.config["data"]["labels_per_class"] is None
    assert start.config["data"]["weak"] == "weak"


def test_seeds_are_trained_together_if_the_model_allows_it() -> None:
    on_graph = jobs("graphs", cells=["cora-10"], methods=["drift"])
    assert [(job.kind, job.config["seeds"], job.config["training"]["seed"]) for job in on_graph] == [
        ("gcn", 10, 0),
        ("grand", 10, 0),
        *(("factory", 1, seed) for seed in range(3)),
    ]
    text = jobs("weak", cells=["imdb-weak"], methods=["drift"])
    assert [(job.kind, job.config["seeds"], job.config["training"]["seed"]) for job in text] == [
        ("frozen", 10, 0),
        *(("finetuned", 1, seed) for seed in range(3)),
    ]


def test_a_laptop_fine_tunes_start_and_game_in_three_cells() -> None:
    texts = [job for name in ("weak", "semi") for job in jobs(name, seeds=1)]
    run = {(job.cell, job.row) for job in texts if job.group == "finetuned" and not job.left_out}
    cells, rows = ("agnews-30", "agnews-weak", "imdb-weak"), ("Start", COPIED, DETACHED, "DRIFT")
    rows += tuple(f"{title} at the paper's α" for title in (DETACHED, "DRIFT"))
    assert run == set(product(cells, rows))
    assert all(job.kind == "frozen" or job.left_out for job in jobs("ablation", seeds=1, cells=["agnews-30"]))
    (line,) = not_run(find_exhibit("semi"), jobs("semi"), {})
    assert "(rest of agnews-30, agnews-50, " in line


def test_cells_and_models_given_together_are_run_even_if_the_profile_leaves_them_out() -> None:
    left_out = jobs("ablation", seeds=1, models=["finetuned"])
    named = jobs("ablation", seeds=1, models=["finetuned"], cells=["imdb-30"])
    assert all(job.left_out for job in left_out)
    assert named
    assert not any(job.left_out for job in named)
    assert {job.key for job in named} < {job.key for job in left_out}


def test_the_ablation_switches_are_those_of_the_papers_footnote() -> None:
    switches = {
        job.row: tuple(
            job.config["method"][name] for name in ("differentiate_labels", "differentiate_weights", "reweight")
        )
        for job in jobs("ablation", cells=["agnews-30"], methods=["drift"], seeds=1)
    }
    assert switches == {
        "DRIFT": (True, True, True),
        "w/o DrPL": (False, True, True),
        "w/o DrW": (True, False, True),
        "w/o SR": (True, True, False),
    }


def test_sensitivity_shares_the_run_with_the_default_α_and_τ() -> None:
    frozen = [
        job for job in jobs("sensitivity", cells=["agnews-30"], methods=["drift"], seeds=1) if job.group == "frozen"
    ]
    assert len(frozen) == len(ALPHAS) + len(TAUS)
    assert len({job.key for job in frozen}) == len(frozen) - 1  # α = 0.9 and τ = 0.5 are the defaults


@pytest.mark.parametrize("parts", [{"cells": ["agnews-31"]}, {"methods": ["drfit"]}])
def test_cells_and_methods_that_do_not_exist_are_refused(parts: Any) -> None:
    with pytest.raises(ConfigError, match="did you mean"):
        jobs("semi", **parts)


def test_profiles_that_do_not_exist_are_refused() -> None:
    with pytest.raises(ConfigError, match="no profile 'phone'"):
        jobs("semi", "phone")


def test_without_a_data_folder_the_error_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DRIFT_DATA")
    with pytest.raises(FileError, match="DRIFT_DATA is not set"):
        jobs("graphs", cells=["cora-10"])


@pytest.mark.parametrize("name", ["weak", "semi", "textcnn", "ablation", "graphs", "rings"])
def test_every_form_of_self_training_is_in_tables_and_figures(name: str) -> None:
    rows = {row.title: row for row in find_exhibit(name).rows}
    assert set(FORMS) <= set(rows)
    assert [title for title in FORMS if rows[title].paper] == [LEE]
    assert find_exhibit(name).baseline == ("DRIFT" if name == "ablation" else LEE)


def test_the_forms_differ_in_one_step_at_a_time() -> None:
    of = {job.row: job.config["method"] for job in jobs("weak", cells=["agnews-weak"], models=["frozen"], seeds=1)}
    assert {of[title]["name"] for title in FORMS if title.startswith("Self-training")} == {"hard-self-training"}
    assert (of[LEE]["alpha"], of[LEE]["copy_every"]) == (0, None)  # whatever the preset's α is
    assert [of[f"Self-training (copy {steps})"]["copy_every"] for steps in (100, 250)] == [100, 250]
    detached = of[DETACHED]
    assert {key: of["DRIFT"][key] for key in detached if key != "name"} == {
        key: value for key, value in detached.items() if key != "name"
    }
    for title, switched in (
        ("Soft labels", (False, False)),
        ("+ class mass", (True, False)),
        ("+ weights", (False, True)),
    ):
        of_form = next(method for name, method in of.items() if name.endswith(title))
        switches = dict(zip(("class_mass", "reweight"), switched, strict=True))
        assert of_form == {**detached, **switches}


def test_a_row_is_chosen_by_its_title_or_by_its_name() -> None:
    for chosen in (DETACHED, "drift-detached"):
        assert {job.row for job in jobs("weak", methods=[chosen], seeds=1)} == {DETACHED}
    assert command_names(find_exhibit("weak"), [DETACHED, "drift"]) == ["drift-detached", "drift"]
    assert command_names(find_exhibit("weak"), None) is None


# The key of a run.


def test_a_key_depends_on_settings_and_data_but_not_on_the_location_of_the_data(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def key(seeds: int = 2, method: str = "drift") -> str:
        return jobs("weak", seeds=seeds, cells=["bc5cdr-weak"], methods=[method])[0].key

    (data / "bc5cdr").mkdir()
    (data / "bc5cdr" / "train.jsonl.gz").write_bytes(b"one")
    first = key()
    assert key() == first
    assert len({first, key(seeds=3), key(method="self-training")}) == 3
    (data / "bc5cdr" / "train.jsonl.gz").write_bytes(b"two")
    changed = key()
    assert changed != first
    data.rename(tmp_path / "moved")
    monkeypatch.setenv("DRIFT_DATA", str(tmp_path / "moved"))
    assert key() == changed


# Estimates.


def test_estimates_grow_with_steps_and_are_corrected_by_finished_runs() -> None:
    (job,) = jobs("weak", "paper", 1, cells=["imdb-weak"], methods=["drift"])
    training = {**job.config["training"], "initial_steps": 320, "steps": 5000}
    double = replace(job, config={**job.config, "training": training})
    assert estimated_seconds(double) == pytest.approx(2 * estimated_seconds(job))
    assert correction({}) == 1
    assert correction({job: 3 * estimated_seconds(job)}) == pytest.approx(3)


# Tables.


def test_a_table_has_our_scores_and_the_papers_and_lists_what_was_not_run() -> None:
    exhibit = part_of(find_exhibit("semi"), ["agnews-30", "agnews-50"], [LEE, "drift"])
    all_jobs = jobs_of(exhibit, "laptop")
    of = {(job.group, job.row, job.cell): job for job in all_jobs}
    results = {
        of["frozen", "DRIFT", "agnews-30"]: result(0.9, 0.8),
        of["frozen", LEE, "agnews-30"]: result(0.7, 0.7),
    }
    table = table_of(exhibit, "laptop", "frozen", all_jobs, results)
    cell = table.rows["DRIFT"]["agnews-30"]
    assert (cell.scores, cell.paper) == ({0: 0.9, 1: 0.8}, 89.46)
    missing = table.rows["DRIFT"]["agnews-50"]
    assert not missing.scores
    assert missing.hours is not None
    assert table.budgets == {"agnews-30": "120 + 500 dev"}
    test = table.test("DRIFT", "agnews-30")
    assert test is not None
    assert test.pairs == 2
    (line,) = not_run(exhibit, all_jobs, results)
    assert "finetuned, 9 runs" in line  # with DRIFT on agnews-30, the profile fine-tunes another form of self-training
    assert "(rest of agnews-30, agnews-50)" in line
    lines = plan_lines(all_jobs, results)
    assert "frozen  agnews-30  DRIFT  finished" in lines
    assert lines[-1].startswith("to run: 5 runs")  # two frozen, and three seeds of one method fine-tuned


@pytest.mark.parametrize("profile", ["paper", "laptop"])
@pytest.mark.parametrize("name", [name for name, exhibit in EXHIBITS.items() if exhibit.cells])
def test_every_run_of_the_catalogue_has_a_model_that_its_method_trains(name: str, profile: str) -> None:
    for job in jobs(name, profile, 1):
        method = METHODS[job.config["method"]["name"]]
        assert method.model in (None, job.config["model"]["name"]), job.title
        assert method.serves(TASKS[job.config["task"]].offers)
        assert np.isfinite(estimated_seconds(job))


def test_a_failed_run_is_not_shown_as_not_run() -> None:
    exhibit = part_of(find_exhibit("weak"), ["agnews-weak"], ["bond", "drift"], ["frozen"])
    all_jobs = jobs_of(exhibit, "laptop", 1)
    failed = [job.key for job in all_jobs if job.row == "BOND"]
    rows = table_of(exhibit, "laptop", "frozen", all_jobs, {}, failed).rows
    assert rows["BOND"]["agnews-weak"].text() == "failed"
    assert rows["DRIFT"]["agnews-weak"].text().startswith("not run (about")


def test_a_failed_run_of_two_rows_is_shown_in_both() -> None:
    exhibit = part_of(find_exhibit("sensitivity"), ["agnews-30"], ["α = 0.9", "τ = 0.5"])
    all_jobs = [job for job in jobs_of(exhibit, "laptop") if job.group == "frozen"]
    rows = table_of(exhibit, "laptop", "frozen", all_jobs, {}, {all_jobs[0].key}).rows
    assert [cells["agnews-30"].text() for cells in rows.values()] == ["failed", "failed"]


def test_runs_on_other_rows_are_tested_without_pairs_and_upper_bounds_are_never_best() -> None:
    exhibit = part_of(find_exhibit("semi"), ["agnews-30"], models=["frozen"])
    all_jobs = jobs_of(exhibit, "laptop", 3)
    scores = {LEE: (0.8, 0.81, 0.83), "DRIFT": (0.81, 0.82, 0.84), "Train on dev": (0.9, 0.91, 0.92)}
    results = {job: result(*scores[job.row]) for job in all_jobs if job.row in scores}
    for seed, job in enumerate(
        job for job in all_jobs if job.row == "VAMPIRE"
    ):  # one run per seed, on rows of that seed
        results[job] = Result({seed: 0.7 + seed / 100}, {"train": 120, "dev": 500, "total": 620}, 1.0)
    table = table_of(exhibit, "laptop", "frozen", all_jobs, results)
    pairs = {row: test.pairs for row in table.rows if (test := table.test(row, "agnews-30"))}
    assert pairs == {"VAMPIRE": 0, "DRIFT": 3, "Train on dev": 3}
    assert [row for row in table.rows if table.is_best(row, "agnews-30")] == ["DRIFT"]
    assert any("Holm" in note for note in table.notes)


def test_the_location_of_the_data_does_not_change_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = []
    for name in ("plain", "wärme"):
        (tmp_path / name).mkdir()
        monkeypatch.setenv("DRIFT_DATA", str(tmp_path / name))
        keys.append([job.key for job in jobs("weak", models=["frozen"])])
    assert keys[0] == keys[1]
