"""Runs side by side: which are one line, when tests are paired, and what is warned of."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from scipy import stats

import drift
from drift.errors import ConfigError, DataError, FileError
from drift.runs.comparing.compare import compare
from drift.runs.comparing.statistics import holm
from tests.runs.small_graphs import small_graph, small_node_fit, write_npz
from tests.runs.test_report import metrics

COLUMN = "test accuracy"


def written(folder: Path, scores: list[float], *, seed: int = 0, **changes: Any) -> Path:
    """A folder as a finished run leaves it, with these test scores of the seeds from `seed` on."""
    data = {"dev": "dev.csv", "test": "test.csv", "dev_rows": None, "test_rows": None, **changes.pop("data", {})}
    config = {"task": "text", "data": data, "model": {}, "method": {"name": changes.get("method", "drift")}}
    config |= {"training": {"seed": seed}, "seeds": len(scores)}
    part = {"rows": 40, "scores": [{"accuracy": score, "macro_f1": score} for score in scores]}
    record = metrics("dev", "test", dev={**part, "rows": 16}, test=part)
    record |= {"label_budget": {"train": 8, "dev": 16, "total": 24}}
    record |= {"seeds": list(range(seed, seed + len(scores))), "kept_seed": seed}
    record |= {"start_on_dev": None, "best_steps": [5] * len(scores)}
    if changes.get("task") == "tokens":
        del record["confusion"], record["mistakes"]
        record |= {"kind": "frozen", "entities": True, "sentences": 9, "by_type": {}, "errors": {}}
    fingerprint = changes.pop("fingerprint", "one")
    record |= changes
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    kept = {name: value for name, value in record.items() if value is not None or name == "start_on_dev"}
    (folder / "metrics.json").write_text(json.dumps(kept))
    (folder / "data.json").write_text(json.dumps({"fingerprint": fingerprint}))
    return folder


TUNING = {
    **{"trials": 12, "pruned": 0, "diverged": 0, "steps": 120, "dev_looks": 24, "dev_labels": 16},
    **{"settings": {"method.alpha": 0.9}, "dev": 0.5, "tried": []},
}
OURS, THEIRS = [0.90, 0.91, 0.89], [0.87, 0.90, 0.88]


def test_runs_of_the_same_seeds_and_rows_are_tested_in_pairs(tmp_path: Path) -> None:
    theirs = written(tmp_path / "plain", THEIRS, method="self-training")
    ours = written(tmp_path / "ours", OURS)
    table = compare([theirs, ours])
    assert list(table.rows) == [f"{theirs}: self-training", f"{ours}: drift"]
    assert table.columns == ["dev accuracy", "dev macro-F1", COLUMN, "test macro-F1"]
    found = table.test(f"{ours}: drift", COLUMN)
    assert found is not None
    assert found.pairs == 3
    assert found.p == pytest.approx(stats.ttest_rel(OURS, THEIRS).pvalue)
    assert table.is_best(f"{ours}: drift", COLUMN)
    assert not [note for note in table.notes if note.startswith("warning")]
    assert "gold labels: 8 to train + 16 dev" in table.notes
    assert table.test(f"{ours}: drift", "dev accuracy") is None  # what chose is not tested by


@pytest.mark.parametrize(
    "changes",
    [
        {"seed": 7},
        {"fingerprint": "two", "data": {"test": "others.csv"}},
        {"fingerprint": "two", "data": {"test_rows": 40}},
        {"fingerprint": "two", "test": {"rows": 41, "scores": [{"accuracy": s, "macro_f1": s} for s in OURS]}},
    ],
    ids=["other seeds", "another table", "a part of it", "other number of rows"],
)
def test_what_cannot_be_paired_gets_welchs_test_and_says_so(tmp_path: Path, changes: dict[str, Any]) -> None:
    theirs = written(tmp_path / "plain", THEIRS, method="self-training")
    ours = written(tmp_path / "ours", OURS, **changes)
    table = compare([theirs, ours])
    found = table.test(f"{ours}: drift", COLUMN)
    assert found is not None
    assert found.pairs == 0
    assert found.p == pytest.approx(stats.ttest_ind(OURS, THEIRS, equal_var=False).pvalue)
    assert [note for note in table.notes if note.endswith("so the test is Welch's, unpaired")]
    with pytest.raises(ConfigError, match=r"no two seeds in common .*; leave out --paired-t for an unpaired test"):
        compare([theirs, ours], paired_t=True)


def test_other_training_rows_and_the_same_test_file_are_paired_with_a_warning(tmp_path: Path) -> None:
    theirs = written(tmp_path / "plain", THEIRS, method="self-training")
    ours = written(tmp_path / "ours", OURS, fingerprint="two", label_budget={"train": 80, "dev": 16, "total": 96})
    table = compare([theirs, ours])
    found = table.test(f"{ours}: drift", COLUMN)
    assert found is not None
    assert found.pairs == 3
    told = [note for note in table.notes if note.startswith("warning")]
    assert len(told) == 2
    assert "saw other data (fingerprints differ)" in told[0]
    assert "other numbers of gold labels" in told[1]


def test_tables_in_memory_are_the_same_only_by_their_fingerprint(tmp_path: Path) -> None:
    frame = {"dev": "the DataFrame", "test": "the DataFrame"}
    theirs = written(tmp_path / "plain", THEIRS, data=frame)
    same = written(tmp_path / "same", OURS, data=frame)
    other = written(tmp_path / "other", OURS, data=frame, fingerprint="two")
    table = compare([theirs, same, other])
    tests = [table.test(f"{path}: drift", COLUMN) for path in (same, other)]
    assert [test.pairs for test in tests if test] == [3, 0]


def test_a_file_whose_name_begins_like_a_table_in_memory_is_a_file(tmp_path: Path) -> None:
    file = {"test": "the test.csv"}
    other = written(tmp_path / "other", OURS, data=file, fingerprint="two")
    found = compare([written(tmp_path / "plain", THEIRS, data=file), other]).test(f"{other}: drift", COLUMN)
    assert found is not None
    assert found.pairs == 3


def test_runs_that_differ_in_seeds_alone_are_one_line_and_repetitions_are_not(tmp_path: Path) -> None:
    plain = [written(tmp_path / f"plain-{seed}", [THEIRS[seed]], seed=seed, method="uda") for seed in range(3)]
    ours = [written(tmp_path / f"ours-{seed}", [OURS[seed]], seed=seed) for seed in range(3)]
    again = written(tmp_path / "again", [0.5], seed=0)
    table = compare([*plain, *ours, again])
    lines = {name: cells[COLUMN].scores for name, cells in table.rows.items()}
    assert lines == {
        f"{plain[0]} and 2 more: uda": dict(enumerate(THEIRS)),
        f"{ours[0]} and 2 more: drift": dict(enumerate(OURS)),
        f"{again}: drift": {0: 0.5},
    }
    found = table.test(f"{ours[0]} and 2 more: drift", COLUMN)
    assert found is not None
    assert found.pairs == 3
    assert f"{again}: drift: not tested, because a test needs two seeds on each side" in table.notes


def test_the_baseline_comes_first_and_several_tests_are_corrected(tmp_path: Path) -> None:
    runs = [written(tmp_path / name, scores) for name, scores in {"a": OURS, "b": THEIRS, "c": [0.8, 0.9, 0.7]}.items()]
    table = compare(runs, baseline=runs[1])
    assert next(iter(table.rows)) == table.baseline == f"{runs[1]}: drift"
    raw = [stats.ttest_rel(scores, THEIRS).pvalue for scores in (OURS, [0.8, 0.9, 0.7])]
    found = [table.test(f"{path}: drift", COLUMN) for path in (runs[0], runs[2])]
    assert [test.p for test in found if test] == pytest.approx(holm(raw))
    assert any("corrected for 2 tests (Holm)" in note for note in table.notes)
    assert list(compare([runs[0]], baseline=runs[1]).rows) == [f"{runs[1]}: drift", f"{runs[0]}: drift"]


def test_without_a_test_set_dev_is_tested_and_warned_of(tmp_path: Path) -> None:
    runs = [written(tmp_path / name, scores, test=None) for name, scores in (("a", OURS), ("b", THEIRS))]
    table = compare(runs)
    assert table.test(f"{runs[1]}: drift", "dev accuracy") is not None
    assert any(" has no test scores; dev chose the steps too" in note for note in table.notes)


def test_runs_of_one_line_on_other_data_are_warned_of(tmp_path: Path) -> None:
    theirs = written(tmp_path / "plain", THEIRS, method="self-training")
    ours = [written(tmp_path / name, OURS, seed=seed, fingerprint=name) for seed, name in ((0, "one"), (3, "two"))]
    notes = compare([theirs, *ours]).notes
    assert any(note.startswith(f"warning: runs of {ours[0]} and 1 more: drift saw other data") for note in notes)
    cut = [written(tmp_path / f"cut {k}", OURS, seed=k, fingerprint=str(k), data={"test_rows": 40}) for k in (0, 3)]
    assert not any("runs of" in note for note in compare(cut).notes)  # rows are drawn by the seed


def test_every_pair_of_runs_is_looked_at(tmp_path: Path) -> None:
    theirs = [written(tmp_path / f"a{k}", THEIRS[k : k + 1], seed=k, method="self-training") for k in (0, 1)]
    ours = [written(tmp_path / f"b{k}", OURS[k : k + 1], seed=k, fingerprint=("one", "two")[k]) for k in (0, 1)]
    notes = compare([*theirs, *ours]).notes
    assert any("drift and " in note and "saw other data" in note for note in notes)


def test_why_there_is_no_test_is_told_as_it_is(tmp_path: Path) -> None:
    theirs, ours = written(tmp_path / "a", THEIRS), written(tmp_path / "b", OURS, test=None, method="uda")
    assert f"{ours}: uda: not tested, because {ours}: uda has no test scores" in compare([theirs, ours]).notes


def test_a_tuned_run_beside_one_that_was_not_is_warned_of(tmp_path: Path) -> None:
    runs = [written(tmp_path / "a", OURS), written(tmp_path / "b", THEIRS, tuning=TUNING)]
    assert any(f"{runs[1]}: drift was tuned on dev in 12 trials" in note for note in compare(runs).notes)


def test_folders_that_are_no_runs_or_have_no_scores_are_told_in_one_line(tmp_path: Path) -> None:
    good = written(tmp_path / "good", OURS)
    (tmp_path / "empty").mkdir()
    unfinished = written(tmp_path / "unfinished", OURS)
    (unfinished / "metrics.json").unlink()
    old = written(tmp_path / "old", OURS, label_budget=None)
    unscored = written(tmp_path / "unscored", OURS, test=None, dev=None)
    words = written(tmp_path / "words", OURS, task="tokens", measures={"f1": "F1"}, test=None, dev=None)
    for folder, kind, message in (
        (tmp_path / "empty", FileError, "is not a run's folder: config.yaml cannot be read"),
        (tmp_path / "missing", FileError, "missing is not there; give the folder of a run"),
        (unfinished, FileError, "is .*unfinished a finished run"),
        (old, FileError, "metrics.json is damaged: label_budget: field required; copy the run's folder again"),
        (unscored, DataError, "has no scores, because it had no dev and no test set; train it with --dev or --test"),
        (words, DataError, "has no scores"),
    ):
        with pytest.raises(kind, match=message) as error:
            compare([good, folder])
        assert "\n" not in str(error.value)
    with pytest.raises(ConfigError, match="name the folders of some"):
        compare([])


def test_several_runs_may_still_be_given_one_by_one(tmp_path: Path) -> None:
    runs = [written(tmp_path / name, scores) for name, scores in (("a", OURS), ("b", THEIRS))]
    with pytest.warns(FutureWarning, match=r"compare takes a list of runs; give compare\(\[run, run\]\)"):
        table = compare(*runs)
    assert table == compare(runs)
    with pytest.warns(FutureWarning, match="compare takes a list of runs"):
        assert compare(str(runs[0])).rows == compare([runs[0]]).rows


SCORES = [{"accuracy": score, "macro_f1": score} for score in OURS]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"measures": {}}, "measures: dictionary should have at least 1 item"),
        ({"seeds": [0, 1]}, "dev.scores: 3 entries for 2 seeds"),
        ({"test": {"rows": 40, "scores": SCORES[:2]}}, "test.scores: 2 entries for 3 seeds"),
        ({"test": {"rows": 40, "scores": [*SCORES[:2], {"accuracy": 1}]}}, "test.scores: a seed has no macro_f1"),
        (
            {"test": {"rows": 40, "scores": [*SCORES[:2], {"accuracy": None}]}},
            "test.scores.2.accuracy: input should be",
        ),
        ({"test": [0.5]}, "test: input should be a valid dictionary"),
        ({"label_budget": {"dev": 3, "total": 3}}, "label_budget.train: field required"),
        ({"label_budget": 3}, "label_budget: input should be a valid dictionary"),
        ({"tuning": {"trials": 12}}, "tuning.pruned: field required"),
        ({"method": None}, "method: field required"),
    ],
    ids=str,
)
def test_damaged_metrics_are_one_line(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    damaged = written(tmp_path / "run", OURS)
    record = json.loads((damaged / "metrics.json").read_text()) | change
    record = {name: value for name, value in record.items() if value is not None or name == "start_on_dev"}
    (damaged / "metrics.json").write_text(json.dumps(record))
    with pytest.raises(FileError, match=r"metrics\.json is damaged: ") as error:
        compare([damaged])
    assert f"metrics.json is damaged: {message}" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("metrics.json", "[]", "metrics.json is not the record of a run"),
        ("data.json", "[]", "data.json is damaged: it has no fingerprint"),
        ("data.json", '{"fingerprint": 3}', "data.json is damaged: it has no fingerprint"),
        ("data.json", "{", "data.json cannot be read"),
        ("config.yaml", "- a\n", "config.yaml cannot be read"),
        ("config.yaml", "[]\n", "config.yaml cannot be read (it holds list, not settings by name)"),
        ("config.yaml", "{}\n", "config.yaml is damaged: it has no data; copy the run's folder again"),
        ("config.yaml", {"training": None}, "config.yaml is damaged: it has no training"),
        ("config.yaml", {"training": 3}, "config.yaml: training=3: input should be a valid dictionary"),
        ("config.yaml", {"training": {"seed": "first"}}, "training.seed='first': input should be a valid integer"),
        ("config.yaml", {"data": ["test.csv"]}, "config.yaml: data=['test.csv']: input should be a valid dictionary"),
    ],
)
def test_other_damaged_files_are_one_line(tmp_path: Path, name: str, content: Any, message: str) -> None:
    damaged = written(tmp_path / "run", OURS)
    if isinstance(content, dict):
        config = yaml.safe_load((damaged / name).read_text()) | content
        content = yaml.safe_dump({group: value for group, value in config.items() if value is not None})
    (damaged / name).write_text(content)
    with pytest.raises(FileError) as error:
        compare([damaged])
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_runs_of_two_tasks_are_refused(tmp_path: Path) -> None:
    part = {"rows": 4, "scores": [{"f1": score} for score in OURS]}
    words = written(tmp_path / "words", OURS, task="tokens", measures={"f1": "F1"}, test=part, dev=part)
    with pytest.raises(ConfigError, match=r"words is of tokens, .*text is of text; compare runs of one task"):
        compare([written(tmp_path / "text is", OURS), words])
    slots = written(tmp_path / "slots", OURS, task="tokens", measures={"f1": "token F1"}, test=part, dev=part)
    with pytest.raises(ConfigError, match=r"slots is scored by token F1, .*words by F1; compare runs with one score"):
        compare([words, slots])


def test_real_runs_are_compared_by_what_they_wrote(tmp_path: Path) -> None:
    graph = write_npz(tmp_path / "graph.npz", small_graph(45))
    runs = {
        method: small_node_fit(graph, method=method, seeds=3, out=tmp_path / method)
        for method in ("supervised", "self-training", "drift")
    }
    table = drift.compare([tmp_path / method for method in runs], out=tmp_path / "table.md")
    for method, run in runs.items():
        scores = [trial["accuracy"] for trial in run.metrics["test"]["scores"]]
        assert list(table.rows[f"{tmp_path / method}: {method}"][COLUMN].scores.values()) == scores
    assert not [note for note in table.notes if note.startswith("warning")]
    assert table.test(f"{tmp_path / 'drift'}: drift", COLUMN) is not None
    assert "test accuracy" in (tmp_path / "table.md").read_text(encoding="utf-8")


def test_what_differs_is_told(tmp_path: Path) -> None:
    first, same = written(tmp_path / "first", THEIRS), written(tmp_path / "same", OURS)
    other = written(tmp_path / "other", OURS, method="uda", data={"dev_rows": 9, "test_rows": 8, "dev": "d.csv"})
    notes = compare([first, same, other]).notes
    assert not [note for note in notes if note.startswith(f"{same}: drift differs")]
    (told,) = [note for note in notes if note.startswith(f"{other}: uda differs from {first}: drift:")]
    assert "data.dev_rows is 9, there None" in told
    assert told.endswith(", and 1 more")
