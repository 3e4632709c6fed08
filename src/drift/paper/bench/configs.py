"""From a cell of a table to the whole configuration of a run: data, preset, and what a laptop does with less."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from drift.data.planetoid import FOLDERS
from drift.methods import METHODS
from drift.paper.bench.cells import Job, data_root
from drift.paper.presets import preset_names
from drift.runs.config import merge, resolve
from drift.tasks.base import STACKED

Layer = Mapping[str, Any]

# Rows of a laptop's runs; dev and test are cut by seed, train where every row has to be embedded first. Of 4,000 of
# Amazon's fewer than 1,000 are negative.
TRAIN_ROWS = {"agnews": 15000, "imdb": 4000, "yelp": 4000, "amazon": 6000}
DEV_ROWS = {"frozen": 500, "finetuned": 300, "textcnn": 300}
TEST_ROWS = {"frozen": 4000, "finetuned": 2500, "textcnn": 4000}
REVIEW_TEST_ROWS = 2000  # reviews are long
SENTENCE_DEV_ROWS = 1000
# Encoders of a laptop's runs where it is not the default; that of words has to know upper case.
TEXT_ENCODER = "paraphrase-MiniLM-L3-v2"
TOKEN_ENCODER = "granite-embedding-30m-english"
ENTITIES = {"bc5cdr": ["Chemical", "Disease"]}  # weak labels from a dictionary beside the data


@cache
def task_of(dataset: str) -> str:
    return next(task for task in ("text", "tokens", "nodes") if dataset in preset_names(task))


def make_jobs(
    place: tuple[str, str, str],
    *,
    kind: str,
    profile: str,
    method: str,
    settings: Layer,
    gold: bool,
    seeds: int,
    left_out: bool,
) -> list[Job]:
    """The runs for a group, row and cell: one a seed, or one of all seeds. gold: learn from every label there is."""
    _, _, cell = place
    dataset, _, labels = cell.rpartition("-")
    task, weak, stacked = task_of(dataset), labels == "weak", kind in STACKED
    own = {"nodes": _graph, "text": _texts, "tokens": _sentences}[task](dataset, kind, profile, labels, gold)
    if (trained := METHODS[method].model) is not None:  # its own model, whatever that of the group is
        kind, own = trained, {**own, "model": {"name": trained}}
        stacked = kind in STACKED
    common = {"method": {"name": method}, "training": {"trackers": ()}, "seeds": seeds if stacked else 1}
    layers = [own, common, settings]
    config = resolve(task=task, kind=kind, weak=weak, preset_name=dataset, profile=profile, layers=layers).model_dump(
        mode="json"
    )
    if gold:  # as many steps as the others have in both phases
        config["training"]["initial_steps"] += config["training"]["steps"]
    folder = data_root() / "planetoid" / FOLDERS[dataset] if task == "nodes" else data_root() / dataset
    vectors = config["model"].get("vectors")
    folders = (folder, Path(vectors).parent) if vectors else (folder,)
    rules = _rules(dataset, folder) if dataset in ENTITIES and not gold else None
    return [
        Job(*place, kind, merge(config, {"training": {"seed": seed}}), folders, rules, left_out)
        for seed in range(1 if stacked else seeds)
    ]


def _graph(dataset: str, kind: str, profile: str, labels: str, gold: bool) -> Layer:
    return {"data": {"train": FOLDERS[dataset], "labels_per_class": int(labels)}, "model": {"name": kind}}


def _texts(dataset: str, kind: str, profile: str, labels: str, gold: bool) -> Layer:
    data = {**_tables(dataset), "text": "text", "label": "label"}
    if not gold:
        data |= {"weak": "weak"} if labels == "weak" else {"labels_per_class": int(labels)}
    model: dict[str, Any] = {}
    if kind == "textcnn":
        model = {"name": "textcnn", "vectors": _word_vectors()}
    if profile == "laptop":
        data |= {"dev_rows": DEV_ROWS[kind], "test_rows": TEST_ROWS[kind] if dataset == "agnews" else REVIEW_TEST_ROWS}
        data |= {"train_rows": TRAIN_ROWS[dataset]} if kind == "frozen" else {}
        model |= {"name": TEXT_ENCODER} if kind == "finetuned" else {}
    return {"data": data, "model": model}


def _sentences(dataset: str, kind: str, profile: str, labels: str, gold: bool) -> Layer:
    data = _tables(dataset)
    if gold:
        data |= {"label": "labels"}
    elif dataset in ENTITIES:
        data |= {"rules": "rules.yaml"}  # beside the run, see `Job.rules`
    else:
        data |= {"weak": "weak"}
    if profile == "paper":
        return {"data": data}
    return {"data": {**data, "dev_rows": SENTENCE_DEV_ROWS}, "model": {"name": TOKEN_ENCODER}}


def _tables(dataset: str) -> dict[str, Any]:
    return {part: str(data_root() / dataset / f"{part}.jsonl.gz") for part in ("train", "dev", "test")}


def _word_vectors() -> str | None:
    """The first file with word vectors in `$DRIFT_DATA/vectors`; without one they are learned from nothing."""
    found = [file for file in sorted((data_root() / "vectors").glob("*")) if file.suffix in (".npy", ".vec", ".txt")]
    return str(found[0]) if found else None


def _rules(dataset: str, folder: Path) -> Layer:
    """One rule: the published dictionary of core names."""
    rule = {"name": "core dictionary", "gazetteer": str(folder / "dict_core.txt"), "case": "smart"}
    return {"task": "tokens", "types": ENTITIES[dataset], "rules": [rule]}
