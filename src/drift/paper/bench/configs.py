"""From a cell of a table to the configuration of its runs: data, preset, and smaller sizes for the laptop profile."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drift.data.augmentation import AugmentationSettings
from drift.data.planetoid import FOLDERS
from drift.methods import METHODS
from drift.paper.bench.cells import Job, data_root
from drift.paper.bench.drawing import AUGMENTED, Draw, GraphDraw
from drift.paper.presets import preset, task_of
from drift.runs.layers import merge
from drift.runs.spec import RunSpec
from drift.tasks import TASKS

Layer = Mapping[str, Any]

# Rows in the laptop profile. Dev and test are subsampled by seed; train is subsampled where every row must be embedded
# first. Amazon has more rows because fewer than 1,000 of 4,000 would be negative.
TRAIN_ROWS = {"agnews": 15000, "imdb": 4000, "yelp": 4000, "amazon": 6000}
DEV_ROWS = {"frozen": 500, "finetuned": 300, "textcnn": 300}
TEST_ROWS = {"frozen": 4000, "finetuned": 2500, "textcnn": 4000}
REVIEW_TEST_ROWS = 2000  # reviews are long
SENTENCE_DEV_ROWS = 1000
# Encoders in the laptop profile where it does not use the default. The one for words must be cased.
TEXT_ENCODER = "paraphrase-MiniLM-L3-v2"
TOKEN_ENCODER = "granite-embedding-30m-english"
ENCODER_TOKENS = 256  # of texts for another encoder, as in `drift fit`
ENTITIES = {"bc5cdr": ["Chemical", "Disease"]}  # entity types of datasets whose weak labels come from a dictionary


SMALL_DEV = 5  # labels per class
DEVS = {"full": "", "small": f", dev {SMALL_DEV} per class", "none": ", no dev"}
"""The dev sets that a column may have, and what its name ends with."""


def dataset_of(cell: str) -> str:
    """The dataset of a cell such as `agnews-30`."""
    return cell_of(cell)[0].rpartition("-")[0]


def cell_of(column: str) -> tuple[str, str]:
    """The cell of a column of a table, and which dev set it has: see `DEVS`."""
    cell, comma, rest = column.partition(",")
    return cell, next(name for name, ending in DEVS.items() if ending == comma + rest)


def has_devs(cell: str) -> bool:
    """Whether a cell can have other dev sets: not words, whose labels are not drawn per class."""
    return task_of(dataset_of(cell)) != "tokens"


def make_jobs(
    position: tuple[str, str, str],
    *,
    kind: str,
    profile: str,
    method: str,
    settings: Layer,
    gold: bool,
    seeds: int,
    left_out: bool,
    redraw: bool = False,
    encoder: str | None = None,
    pool: int | None = None,
    trials: int = 0,
) -> list[Job]:
    """The runs of one group, row and cell: one run per seed, or one run of all seeds if the kind of model is stacked.

    position: group, row and column. kind: name of the kind of model. settings: override those of the preset.
    gold: train on all gold labels. left_out: the profile does not run these jobs.
    redraw: one run per seed in any case, so that each seed has its own rows of train, dev and test.
    encoder: the fixed encoder of texts, pooled as its authors do; default: that of the preset.
    pool: training texts of the pool from which every seed draws; None: there is no pool.
    trials: of a search of settings on dev; 0: there is none. A method that trains on dev has none either.
    """
    cell, dev = cell_of(position[2])
    dataset, _, labels = cell.rpartition("-")
    task = task_of(dataset)
    data = CELL_DATA[task](_Cell(dataset, kind, profile, labels, gold))
    layer = data.layer
    if task == "text":
        layer = merge(layer, _drawn_texts(dev, pool))
        if pool is not None and issubclass(METHODS[method].settings_type, AugmentationSettings):
            layer = merge(layer, {"method": {"column": [AUGMENTED]}})
    elif dev != "full":
        layer = merge(layer, {"data": {"dev_nodes": 0}})  # no others in place of those that are left out
    if (only_model := METHODS[method].model) is not None:  # overrides the model of the group
        kind, layer = only_model, {**layer, "model": {"name": only_model}}
    elif encoder is not None and (task, kind) == ("text", "frozen"):
        own = {"name": encoder, "pool": "auto", "max_length": ENCODER_TOKENS}
        layer = {**layer, "model": {**layer["model"], **own}}
    stacked = TASKS[task].kinds[kind].stacked and not redraw
    common = {"method": {"name": method}, "training": {"trackers": ()}, "seeds": seeds if stacked else 1}
    spec = RunSpec.resolve(
        [layer, common, settings],
        task=task,
        method=method,
        preset_name=dataset,
        profile=profile,
        weak=labels == "weak",
        finetune=kind == "finetuned",
    )
    config = spec.described()
    if gold:  # the same number of steps as other methods have in both phases
        config["training"]["initial_steps"] += config["training"]["steps"]
    vectors = config["model"].get("vectors")
    folders = (data.folder, Path(vectors).parent) if vectors else (data.folder,)
    return [
        Job(
            *position,
            kind,
            merge(config, {"training": {"seed": seed}}),
            folders,
            data.rules,
            left_out,
            _draw(task, data, seed, pool, dev),
            0 if dev == "none" or METHODS[method].trains_on_dev else trials,
        )
        for seed in range(1 if stacked else seeds)
    ]


def _drawn_texts(dev: str, pool: int | None) -> Layer:
    """Settings for tables that are drawn, which have the sizes that they should have, and for no dev set."""
    sizes = ("train_rows", "dev_rows", "test_rows") if pool is not None else ("dev_rows",) if dev != "full" else ()
    return {"data": dict.fromkeys([*sizes, *(["dev"] if dev == "none" else [])])}


def _draw(task: str, data: "_CellData", seed: int, pool: int | None, dev: str) -> Draw | GraphDraw | None:
    """What a run draws; None if it reads the data as they are."""
    if task == "nodes":
        return None if dev == "full" else GraphDraw(data.folder.name, seed, SMALL_DEV if dev == "small" else 0)
    small = SMALL_DEV if dev == "small" else None
    return Draw(data.folder, seed, pool, small) if task == "text" and (pool, small) != (None, None) else None


def with_papers_alpha(settings: Layer, cell: str, kind: str) -> Layer:
    """The settings with the paper's α for a cell and a kind of model."""
    dataset, _, labels = cell_of(cell)[0].rpartition("-")
    task = task_of(dataset)
    section = TASKS[task].kinds[kind].preset or ("weak" if labels == "weak" else "semi")
    return merge(dict(settings), {"method": {"alpha": preset(dataset, section, "paper")["method"]["alpha"]}})


@dataclass(frozen=True)
class _Cell:
    """What the data settings of a run depend on. labels: labels per class, or "weak"."""

    dataset: str
    kind: str
    profile: str
    labels: str
    gold: bool


@dataclass(frozen=True)
class _CellData:
    """Settings of data and model; the folder of the data; the content of the rule file, if there are rules."""

    layer: Layer
    folder: Path
    rules: Layer | None = None


def _graph(cell: _Cell) -> _CellData:
    name = FOLDERS[cell.dataset]
    layer = {"data": {"train": name, "labels_per_class": int(cell.labels)}, "model": {"name": cell.kind}}
    return _CellData(layer, data_root() / "planetoid" / name)


def _texts(cell: _Cell) -> _CellData:
    folder = data_root() / cell.dataset
    data = {**_tables(folder), "text": "text", "label": "label"}
    if not cell.gold:
        data |= {"weak": "weak"} if cell.labels == "weak" else {"labels_per_class": int(cell.labels)}
    model: dict[str, Any] = {}
    if cell.kind == "textcnn":
        model = {"name": "textcnn", "vectors": _word_vectors()}
    if cell.profile == "laptop":
        test_rows = TEST_ROWS[cell.kind] if cell.dataset == "agnews" else REVIEW_TEST_ROWS
        data |= {"dev_rows": DEV_ROWS[cell.kind], "test_rows": test_rows}
        data |= {"train_rows": TRAIN_ROWS[cell.dataset]} if cell.kind == "frozen" else {}
        model |= {"name": TEXT_ENCODER} if cell.kind == "finetuned" else {}
    return _CellData({"data": data, "model": model}, folder)


def _sentences(cell: _Cell) -> _CellData:
    folder, rules = data_root() / cell.dataset, None
    data = _tables(folder)
    if cell.gold:
        data |= {"label": "labels"}
    elif cell.dataset in ENTITIES:
        data |= {"rules": "rules.yaml"}  # written beside the run, see `Job.rules`
        rules = _dictionary_rules(cell.dataset, folder)
    else:
        data |= {"weak": "weak"}
    if cell.profile == "paper":
        return _CellData({"data": data}, folder, rules)
    layer = {"data": {**data, "dev_rows": SENTENCE_DEV_ROWS}, "model": {"name": TOKEN_ENCODER}}
    return _CellData(layer, folder, rules)


CELL_DATA: Mapping[str, Callable[[_Cell], _CellData]] = {"text": _texts, "tokens": _sentences, "nodes": _graph}
"""By task: how the data settings of a cell are made."""


def _tables(folder: Path) -> dict[str, Any]:
    return {part: str(folder / f"{part}.jsonl.gz") for part in ("train", "dev", "test")}


def _word_vectors() -> str | None:
    """The first file of word vectors in `$DRIFT_DATA/vectors`; None: they are learned from scratch."""
    files = [file for file in sorted((data_root() / "vectors").glob("*")) if file.suffix in (".npy", ".vec", ".txt")]
    return str(files[0]) if files else None


def _dictionary_rules(dataset: str, folder: Path) -> Layer:
    """One rule: the published dictionary of core names."""
    rule = {"name": "core dictionary", "gazetteer": str(folder / "dict_core.txt"), "case": "smart"}
    return {"task": "tokens", "types": ENTITIES[dataset], "rules": [rule]}
