"""A saved `DriftClassifier` is restored to the last bit; damaged and foreign folders raise a clear error."""

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors import SafetensorError
from sklearn.base import clone
from sklearn.datasets import make_blobs
from torch import Tensor, nn

from drift import DriftClassifier
from drift.errors import ConfigError, FileError

X, Y = make_blobs(90, n_features=4, centers=3, cluster_std=2.0, random_state=0)
FEW = np.where(np.arange(len(Y)) < 30, Y, -1)
WEIGHTS, SETTINGS = "model.safetensors", "classifier.json"


def fitted(y: Any = FEW, **settings: Any) -> DriftClassifier:
    defaults = {"input_dropout": 0.2, "hidden": (16,), "initial_steps": 20, "steps": 10, "random_state": 0}
    return DriftClassifier(**{**defaults, **settings}).fit(X, y)


class Network(nn.Module):
    """A module with buffers and with one layer used twice."""

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.inner, self.norm = nn.Linear(features, features), nn.BatchNorm1d(features)
        self.again = self.inner
        self.head = nn.Linear(features, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.again(torch.relu(self.norm(self.inner(x)))))


def same_model(one: DriftClassifier, other: DriftClassifier) -> bool:
    return np.array_equal(one.predict_proba(X), other.predict_proba(X)) and np.array_equal(
        one.predict(X), other.predict(X)
    )


@pytest.mark.parametrize(
    "names", [np.array(["zebra", "ant", "mölë"]), np.array([30, 10, 20]), np.array([0.0, 2.0, 1.0]), None], ids=str
)
def test_any_type_of_labels_is_restored_to_the_last_bit(tmp_path: Path, names: np.ndarray | None) -> None:
    model = fitted(Y == 1 if names is None else names[Y])
    back = DriftClassifier.load(model.save(tmp_path / "model"))
    assert same_model(back, model)
    assert np.array_equal(back.transduction_, model.transduction_)
    assert back.transduction_.dtype == model.transduction_.dtype
    assert back.classes_.tolist() == model.classes_.tolist()
    assert back.classes_.dtype == model.classes_.dtype
    assert back.predict(X).dtype == model.predict(X).dtype


def test_another_process_predicts_the_same_bits(tmp_path: Path) -> None:
    model = fitted()
    model.save(tmp_path / "model")
    np.save(tmp_path / "X.npy", X)
    code = (
        "import numpy as np, sys, drift\n"
        "model = drift.DriftClassifier.load(sys.argv[1] + '/model')\n"
        "np.save(sys.argv[1] + '/p.npy', model.predict_proba(np.load(sys.argv[1] + '/X.npy')))"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
    assert np.array_equal(np.load(tmp_path / "p.npy"), model.predict_proba(X))


def test_parameters_and_fitted_attributes_are_restored(tmp_path: Path) -> None:
    settings = {"alpha": 0.7, "prior": "labels", "learning_rate": np.float64(0.002), "batch_size": np.int64(64)}
    model = fitted(**settings)
    back = DriftClassifier.load(str(model.save(str(tmp_path / "model"))))
    assert {**back.get_params(), "hidden": tuple(back.hidden)} == model.get_params()
    assert back.trace_ == model.trace_
    assert back.label_budget_ == 30
    assert back.n_iter_ == model.n_iter_ == 30
    assert back.n_features_in_ == 4
    assert not hasattr(back, "feature_names_in_")
    assert not back.student_.training
    assert np.array_equal(clone(back).fit(X, FEW).predict_proba(X), model.predict_proba(X))


def test_feature_names_are_restored(tmp_path: Path) -> None:
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    model = DriftClassifier(initial_steps=5, steps=5, random_state=0).fit(frame, FEW)
    back = DriftClassifier.load(model.save(tmp_path / "model"))
    assert np.array_equal(back.predict_proba(frame), model.predict_proba(frame))
    with pytest.raises(ValueError, match="feature names"):
        back.predict(frame[["d", "c", "b", "a"]])


@pytest.mark.parametrize("names", [np.array(["zebra", "ant", "mole"]), np.array([30, 10, 20])], ids=str)
def test_a_mapping_as_prior_is_restored_with_its_labels(tmp_path: Path, names: np.ndarray) -> None:
    prior = dict(zip(names, (np.float64(0.2), 0.3, 0.5), strict=True))  # the labels are NumPy values
    model = fitted(names[Y], prior=prior)
    back = DriftClassifier.load(model.save(tmp_path / "model"))
    assert back.prior == prior
    assert np.array_equal(clone(back).fit(X, names[Y]).predict_proba(X), model.predict_proba(X))


def test_a_folder_without_the_newer_attributes_is_loaded(tmp_path: Path) -> None:
    model = fitted()
    folder = model.save(tmp_path / "model")
    edit(lambda content: [content.pop(name) for name in ("n_iter", "transduction")])(folder)
    back = DriftClassifier.load(folder)
    assert same_model(back, model)
    assert back.n_iter_ == model.n_iter_
    assert not hasattr(back, "transduction_")
    assert same_model(DriftClassifier.load(back.save(tmp_path / "again")), model)


def test_a_generator_as_seed_is_not_saved(tmp_path: Path) -> None:
    model = fitted(random_state=np.random.RandomState(3))
    back = DriftClassifier.load(model.save(tmp_path / "model"))
    assert same_model(back, model)
    assert back.random_state is None


def test_the_folder_holds_tensors_and_json_but_no_code(tmp_path: Path) -> None:
    folder = fitted().save(tmp_path / "deep" / "model")
    assert sorted(os.listdir(folder)) == [SETTINGS, WEIGHTS]
    assert json.loads((folder / SETTINGS).read_text(encoding="utf-8"))["format"] == "drift-classifier/1"
    weights = (folder / WEIGHTS).read_bytes()
    header = json.loads(weights[8 : 8 + int.from_bytes(weights[:8], "little")])
    assert {name for name in header if name != "__metadata__"} == {"1.weight", "1.bias", "4.weight", "4.bias"}


@pytest.mark.parametrize("original", [Network, Network(4, 3)], ids=["factory", "module"])
def test_a_users_module_is_restored_from_the_module_or_its_factory(tmp_path: Path, original: Any) -> None:
    model = fitted(module=original)
    folder = model.save(tmp_path / "model")
    network = Network(4, 3)
    before = {name: value.clone() for name, value in network.state_dict().items()}
    for module in (Network, network):
        assert same_model(DriftClassifier.load(folder, module=module), model)
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())


def test_loading_a_users_module_requires_the_module(tmp_path: Path) -> None:
    folder = fitted(module=Network).save(tmp_path / "model")
    with pytest.raises(ConfigError, match=r"model: this model has a module of its own; pass load\(path, module="):
        DriftClassifier.load(folder)


def test_another_module_than_the_saved_one_is_refused(tmp_path: Path) -> None:
    folder = fitted(module=Network).save(tmp_path / "model")
    with pytest.raises(FileError, match="does not fit the module"):
        DriftClassifier.load(folder, module=nn.Linear(4, 3))


def test_loading_leaves_the_callers_generator_unchanged(tmp_path: Path) -> None:
    folder = fitted().save(tmp_path / "model")
    before = torch.random.get_rng_state()
    DriftClassifier.load(folder)
    assert torch.equal(before, torch.random.get_rng_state())


def edit(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        content = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
        change(content)
        (folder / SETTINGS).write_text(json.dumps(content), encoding="utf-8")

    return damage


def cut(name: str, keep: int) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:keep])


DAMAGES: dict[str, Callable[[Path], object]] = {
    "no settings": lambda folder: (folder / SETTINGS).unlink(),
    "no weights": lambda folder: (folder / WEIGHTS).unlink(),
    "half the settings": cut(SETTINGS, 100),
    "half the weights": cut(WEIGHTS, 300),
    "empty weights": cut(WEIGHTS, 0),
    "settings that are no text": lambda folder: (folder / SETTINGS).write_bytes(b"\x80\x04\xff\xfe"),
    "a list": lambda folder: (folder / SETTINGS).write_text("[1, 2]"),
    "another program's": lambda folder: (folder / SETTINGS).write_text('{"format": "other/1"}'),
    "the next version's": edit(lambda content: content.update(format="drift-classifier/2")),
    "no classes": edit(lambda content: content.pop("classes")),
    "no parameters": edit(lambda content: content.pop("parameters")),
    "an unknown setting": edit(lambda content: content["parameters"].update(beta=1)),
    "a class too few": edit(lambda content: content["classes"].pop()),
    "a feature too few": edit(lambda content: content["mean"].pop()),
    "a scale too few": edit(lambda content: content["scale"].pop()),
    "a transduction that is no list of classes": edit(lambda content: content.update(transduction="0 1 x")),
    "a transduction of unknown classes": edit(lambda content: content.update(transduction="0 1 7")),
    "a transduction that is no string": edit(lambda content: content.update(transduction=5)),
    "a prior without shares": edit(lambda content: content["parameters"].update(prior={"0": 1})),
    "other widths": edit(lambda content: content["parameters"].update(hidden=[8])),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_folder_is_named(tmp_path: Path, damage: Callable[[Path], object]) -> None:
    folder = fitted().save(tmp_path / "model")
    damage(folder)
    with pytest.raises((FileError, ConfigError), match="model"):
        DriftClassifier.load(folder)


def test_a_path_that_is_no_saved_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for name in ("missing", "file"):
        with pytest.raises(FileError, match=f"{name} is not a saved DriftClassifier"):
            DriftClassifier.load(tmp_path / name)


def test_saving_again_replaces_the_whole_folder(tmp_path: Path) -> None:
    first, second = fitted(), fitted(random_state=1)
    folder = first.save(tmp_path / "model")
    second.save(folder)
    assert sorted(os.listdir(folder)) == [SETTINGS, WEIGHTS]
    assert os.listdir(tmp_path) == ["model"]
    assert same_model(DriftClassifier.load(folder), second)


@pytest.mark.parametrize("beside_a_model", [True, False])
def test_other_files_in_the_folder_are_not_deleted(tmp_path: Path, beside_a_model: bool) -> None:
    folder = tmp_path / "model"
    fitted().save(folder) if beside_a_model else folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(FileError, match=r"other files \(notes.txt\)"):
        fitted().save(folder)
    assert (folder / "notes.txt").read_text() == "mine"


def test_a_parameter_that_cannot_be_saved_leaves_the_old_model(tmp_path: Path) -> None:
    model = fitted()
    folder = model.save(tmp_path / "model")
    with pytest.raises(ConfigError, match="type range cannot be saved"):
        fitted(hidden=range(8, 9)).save(folder)
    assert os.listdir(tmp_path) == ["model"]
    assert same_model(DriftClassifier.load(folder), model)


def test_a_full_disk_leaves_the_old_model(tmp_path: Path) -> None:
    model = fitted(hidden=(4,))
    folder = model.save(tmp_path / "model")
    larger = fitted(hidden=(512,))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))  # writing past it fails as a full disk does
    try:
        with pytest.raises((OSError, SafetensorError)):
            larger.save(folder)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert os.listdir(tmp_path) == ["model"]
    assert same_model(DriftClassifier.load(folder), model)


def test_an_unfitted_model_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not fitted"):
        DriftClassifier().save(tmp_path / "model")
    assert os.listdir(tmp_path) == []
