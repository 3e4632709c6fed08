"""What a bench draws for a run: pools of texts, small dev sets, columns without dev; and searches of settings."""

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from drift.errors import ConfigError, DataError
from drift.paper.bench import drawing
from drift.paper.bench.catalogue import find_exhibit
from drift.paper.bench.cells import Job
from drift.paper.bench.configs import DEVS, cell_of, dataset_of
from drift.paper.bench.drawing import AUGMENTED, Draw, GraphDraw
from drift.paper.bench.planning import jobs_of, part_of, with_devs
from tests.runs.small_graphs import small_graph

ROWS = {"train": 200, "dev": 60, "test": 40}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The tables of a dataset of two classes."""
    monkeypatch.setenv("DRIFT_DATA", str(tmp_path / "data"))
    folder = tmp_path / "data" / "agnews"
    folder.mkdir(parents=True)
    for part, rows in ROWS.items():
        with gzip.open(folder / f"{part}.jsonl.gz", "wt", encoding="utf-8") as file:
            for row in range(rows):
                text, label = f"{part} text {row} of words {row % 7} {row % 5}", ("goal", "fund")[row % 2]
                file.write(json.dumps({"text": text, "label": label, "weak": None}) + "\n")
    return folder


def rows_of(file: str) -> list[dict[str, Any]]:
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def texts(files: dict[str, str], part: str) -> list[str]:
    return [row["text"] for row in rows_of(files[part])]


def test_seeds_draw_other_rows_of_the_same_pool_and_share_test(folder: Path, tmp_path: Path) -> None:
    first, second = (Draw(folder, seed, pool=100).tables(tmp_path / "draws") for seed in (0, 1))
    own, others = set(texts(first, "train")), set(texts(second, "train"))
    assert len(own) == len(others) == 75
    assert own != others
    assert len(own | others) <= 100
    assert own | others <= {row["text"] for row in rows_of(str(folder / "train.jsonl.gz"))}
    assert texts(first, "test") == texts(second, "test")
    assert Draw(folder, 0, pool=100).tables(tmp_path / "draws") == first  # the same files, not written again
    again = Draw(folder, 0, pool=100).tables(tmp_path / "elsewhere")
    assert [texts(again, part) for part in ROWS] == [texts(first, part) for part in ROWS]


def test_a_text_of_the_pool_has_the_same_augmented_form_for_every_seed(folder: Path, tmp_path: Path) -> None:
    views = [
        {row["text"]: row[AUGMENTED] for row in rows_of(Draw(folder, seed, pool=100).tables(tmp_path)["train"])}
        for seed in (0, 1)
    ]
    shared = views[0].keys() & views[1].keys()
    assert shared
    assert all(views[0][text] == views[1][text] for text in shared)
    assert any(view != text for text, view in views[0].items())


def test_a_small_dev_set_has_so_many_rows_of_each_class(folder: Path, tmp_path: Path) -> None:
    files = Draw(folder, 3, dev_per_class=5).tables(tmp_path)
    labels = [row["label"] for row in rows_of(files["dev"])]
    assert sorted(labels) == ["fund"] * 5 + ["goal"] * 5
    assert files["train"] == str(folder / "train.jsonl.gz")
    assert texts(files, "dev") != texts(Draw(folder, 4, dev_per_class=5).tables(tmp_path), "dev")
    with pytest.raises(DataError, match="dev of agnews has 30 rows of a class, and 31 are needed"):
        Draw(folder, 3, dev_per_class=31).tables(tmp_path)


def test_a_small_dev_set_is_part_of_the_dev_set_of_the_same_seed(folder: Path, tmp_path: Path) -> None:
    whole, small = Draw(folder, 0, pool=100).tables(tmp_path), Draw(folder, 0, 100, 5).tables(tmp_path)
    assert set(texts(small, "dev")) <= set(texts(whole, "dev"))
    assert small["train"] == whole["train"]


def jobs(*devs: str, methods: tuple[str, ...] = ("start", "drift"), **options: Any) -> list[Job]:
    exhibit = part_of(find_exhibit("semi"), ["agnews-30"], methods, ["frozen"])
    return jobs_of(with_devs(exhibit, devs or None), "laptop", 2, **options)


def test_every_dev_set_is_a_column() -> None:
    made = jobs(*DEVS, pool=100)
    columns = list(dict.fromkeys(job.cell for job in made))
    assert columns == ["agnews-30", "agnews-30, dev 5 per class", "agnews-30, no dev"]
    assert [cell_of(column) for column in columns] == [("agnews-30", dev) for dev in DEVS]
    assert {dataset_of(column) for column in columns} == {"agnews"}
    per_class = {job.cell: job.draw.dev_per_class for job in made if job.draw}
    assert list(per_class.values()) == [None, 5, None]
    assert [job.config["data"]["dev"] is None for job in made if job.draw and job.draw.seed == 0] == [
        *[False] * 4,
        *[True] * 2,
    ]
    assert len({job.key for job in made}) == len(made) == 12
    with pytest.raises(ConfigError, match="'tiny' is not a dev set; choose from full, small, none"):
        jobs("tiny")


def test_words_have_the_full_dev_set_only() -> None:
    exhibit = with_devs(part_of(find_exhibit("weak"), ["agnews-weak", "mitr-weak"]), ["small", "none"])
    assert exhibit.cells == ["agnews-weak, dev 5 per class", "agnews-weak, no dev", "mitr-weak"]


def test_a_graph_has_some_of_its_dev_nodes_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = small_graph(90)
    monkeypatch.setattr(drawing, "read_graph", lambda name: graph)
    small, none = GraphDraw("small", 0, 3).graph(), GraphDraw("small", 0, 0).graph()
    assert np.bincount(graph.labels[small.splits["dev"]]).tolist() == [3, 3, 3]
    assert set(small.splits["dev"]) <= set(graph.splits["dev"])
    assert not len(none.splits["dev"])
    for drawn in (small, none):
        assert all(np.array_equal(drawn.splits[part], graph.splits[part]) for part in ("train", "test"))


def test_columns_of_a_graph() -> None:
    exhibit = with_devs(part_of(find_exhibit("graphs"), ["cora-10"], ["drift-gcn"]), list(DEVS))
    made = jobs_of(exhibit, "laptop")
    assert [job.draw for job in made] == [None, GraphDraw("Cora", 0, 5), GraphDraw("Cora", 0, 0)]
    assert [job.config["data"]["dev_nodes"] for job in made] == [500, 0, 0]
    assert len({job.key for job in made}) == 3


def test_training_on_dev_needs_one() -> None:
    made = jobs(*DEVS, methods=("train-on-dev",))
    assert {cell_of(job.cell)[1] for job in made} == {"full", "small"}


def test_without_options_a_run_has_the_key_of_before() -> None:
    (job, *_) = jobs()
    assert (job.draw, job.trials) == (None, 0)
    assert replace(job, draw=Draw(job.folders[0], 0, 100)).key != job.key
    assert replace(job, trials=5).key != job.key


def test_methods_with_augmentation_read_it_from_the_pool() -> None:
    made = {job.row: job.config for job in jobs(methods=("drift", "fixmatch", "mixtext"), pool=100)}
    assert made["FixMatch"]["method"]["column"] == made["MixText"]["method"]["column"] == [AUGMENTED]
    assert made["FixMatch"]["method"]["augment"] == "column"
    assert "column" not in made["DRIFT"]["method"]
    assert {made[row]["data"]["train_rows"] for row in made} == {None}


def test_every_method_is_searched_with_the_same_number_of_trials() -> None:
    made = jobs("full", "none", methods=("start", "train-on-dev", "drift", "DRIFT at the paper's α"), trials=7)
    trials = {(job.row, cell_of(job.cell)[1]): job.trials for job in made}
    assert trials == {
        ("Start", "full"): 7,
        ("DRIFT", "full"): 7,
        ("Train on dev", "full"): 0,
        ("DRIFT at the paper's α", "full"): 0,
        ("Start", "none"): 0,
        ("DRIFT", "none"): 0,
        ("DRIFT at the paper's α", "none"): 0,
    }
