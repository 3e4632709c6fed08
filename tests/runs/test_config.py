"""A run's configuration: later layers win, every fault is one line with the nearest name, and it can be given back."""

from pathlib import Path
from typing import Any

import pytest
import yaml

import drift
from drift.errors import ConfigError, DriftError, FileError
from drift.methods import METHODS
from drift.paper.presets import PROFILES
from drift.runs.layers import merge, nested, read_assignments, read_config
from drift.runs.run import new_task
from drift.runs.spec import RunSpec
from drift.tasks import TASKS, RunConfig, config_type
from drift.tasks.config import without_name

KINDS = ("frozen", "finetuned", "textcnn")
TextConfig = config_type(TASKS["text"])
FOR_TEXTS = [name for name, method in METHODS.items() if method.serves(TASKS["text"].offers)]


def resolved(*layers: dict[str, Any], kind: str = "frozen", weak: bool = False, **options: Any) -> RunConfig:
    """The configuration that layers give for a kind of model. The last layer that names a method chooses it."""
    if kind == "textcnn":
        layers = ({"model": {"name": "textcnn"}}, *layers)
    groups = [group for layer in layers if isinstance(group := layer.get("method"), dict)]
    method = next((group["name"] for group in reversed(groups) if "name" in group), "drift")
    spec = RunSpec.resolve(layers, method=method, weak=weak, finetune=kind == "finetuned", **options)
    assert spec.kind.name == kind
    return spec.config


def test_later_layers_win_and_leave_the_rest() -> None:
    config = resolved({"training": {"steps": 7, "seed": 3}}, {"training": {"steps": 8}}, {"method": {"tau": 0.3}})
    assert (config.training.steps, config.training.seed) == (8, 3)
    assert config.method["tau"] == 0.3
    assert config.method["alpha"] == resolved().method["alpha"]


def test_merge_changes_neither() -> None:
    below, above = {"a": {"x": 1}, "b": 2}, {"a": {"y": 3}}
    assert merge(below, above) == {"a": {"x": 1, "y": 3}, "b": 2}
    assert (below, above) == ({"a": {"x": 1}, "b": 2}, {"a": {"y": 3}})


@pytest.mark.parametrize("prior", [[0.5, 0.5], None, {"a": 0.5, "b": 0.5}])
def test_a_prior_by_class_is_replaced_by_any_other(prior: Any) -> None:
    below = {"method": {"prior": {"a": 0.1, "b": 0.9}, "tau": 0.5}}
    assert merge(below, {"method": {"prior": prior}}) == {"method": {"prior": prior, "tau": 0.5}}


@pytest.mark.parametrize("name", FOR_TEXTS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_method_takes_the_defaults_it_knows(name: str, kind: str) -> None:
    method = METHODS[name]
    config = resolved({"method": {"name": name}}, kind=method.model or kind)
    assert config.method_name == name
    assert set(config.method) == {"name", *method.settings_type.model_fields}
    task = new_task(RunSpec.resolve([config.model_dump(mode="json")], method=name), quiet=True)
    assert type(task.method_settings) is method.settings_type
    assert task.method_settings.model_dump(mode="json") == without_name(config.method)


@pytest.mark.parametrize("name", [name for name in FOR_TEXTS if METHODS[name].model])
def test_a_method_made_for_one_model_gets_it_and_takes_no_other(name: str) -> None:
    layer = {"method": {"name": name}}
    own = METHODS[name].model
    assert resolved(layer, kind=str(own)).model.name == own
    assert resolved(layer, {"model": {"name": own}}, kind=str(own)).model.name == own
    with pytest.raises(ConfigError, match=f"{name} trains {own}, not textcnn; leave --model out or use another method"):
        resolved(layer, kind="textcnn")


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(
    ("dataset", "kind", "weak"),
    [
        ("agnews", "frozen", True),
        ("agnews", "finetuned", False),
        ("agnews", "textcnn", False),
        ("imdb", "finetuned", True),
        ("yelp", "frozen", True),
        ("amazon", "frozen", False),
    ],
)
def test_presets_of_texts_resolve(dataset: str, kind: str, weak: bool, profile: str) -> None:
    config = resolved({"training": {"steps": 9}}, kind=kind, weak=weak, preset_name=dataset, profile=profile)
    assert config.training.steps == 9


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_resolved_resolves_to_itself_whatever_the_machine(kind: str) -> None:
    """The kind of model is written down: where it was chosen, another machine or profile would choose another."""
    config = resolved({"model": {"name": "textcnn"}} if kind == "textcnn" else {}, kind=kind)
    assert config.model.frozen is (kind == "frozen")
    back = yaml.safe_load(yaml.safe_dump(config.model_dump(mode="json")))
    assert TextConfig.read(back) == config
    assert resolved(back, kind=kind) == config


def test_another_method_leaves_the_settings_of_the_first_behind() -> None:
    given_back = resolved().model_dump(mode="json")
    assert resolved(given_back, {"method": {"name": "supervised"}}).method == {"name": "supervised"}
    with pytest.raises(ConfigError, match="alpha"):  # but what was given to this one must be known to it
        resolved(given_back, {"method": {"name": "supervised", "alpha": 0.5}})
    with pytest.raises(ConfigError, match="alpha"):
        resolved({"method": {"alpha": 0.5}}, {"method": {"name": "supervised"}})


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        ({"method": {"name": "drfit"}}, "there is no method 'drfit'; did you mean 'drift'?"),
        ({"method": {"alhpa": 0.5}}, "there is no 'alhpa'; did you mean 'alpha'?"),
        ({"trainin": {"steps": 5}}, "there is no 'trainin'; did you mean 'training'?"),
        ({"training": {"stps": 5}}, "there is no 'training.stps'; did you mean 'training.steps'?"),
        ({"training": {"steps": -1}}, "training.steps=-1"),
        ({"training": {"steps": "many"}}, "training.steps='many'"),
        ({"model": {"windows": []}}, "model.windows=[]"),
        ({"model": {"windows": [3, 0]}}, "model.windows.1=0"),
        ({"model": {"dropout": 1.0}}, "model.dropout=1.0"),
        ({"data": {"labels_per_class": 0}}, "data.labels_per_class=0"),
        ({"method": "drift"}, "'drift' is not a group of settings; write group.name=value"),
        ({"training": None}, "None is not a group of settings"),
        ({1: 2}, "keys should be strings"),
    ],
)
def test_a_fault_is_one_line(layer: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        resolved({}, layer)
    assert message in str(error.value)
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize("source", ["config", "settings"])
@pytest.mark.parametrize("group", ["data", "model", "method", "training"])
@pytest.mark.parametrize("value", ["drift", None, 3])
def test_a_value_in_the_place_of_a_group_is_one_line(source: str, group: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=f"^{value!r} is not a group of settings; write group.name=value"):
        drift.fit("rows.csv", **{source: {group: value}})


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(ConfigError, match=r"steps=-1.*tau|tau.*steps=-1"):
        resolved({"training": {"steps": -1}, "method": {"tau": 0}})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"preset_name": "agnew"}, "did you mean 'agnews'?"),
        ({"profile": "lapto"}, "there is no profile 'lapto'; did you mean 'laptop'?"),
        ({"preset_name": "amazon", "weak": True}, "is not a setting of amazon"),
    ],
)
def test_unknown_presets_and_profiles(options: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        resolved(**options)
    assert message in str(error.value)


def test_whole_names_are_taken_beside_groups() -> None:
    assert nested({"training.steps": 3, "training": {"seed": 1}, "method.seed_words": {"a.b": ["c"]}}) == {
        "training": {"steps": 3, "seed": 1},
        "method": {"seed_words": {"a.b": ["c"]}},
    }


def test_assignments_are_nested_and_read_as_yaml() -> None:
    found = read_assignments(
        [
            "training.steps=300",
            "training.learning_rate=1e-5",
            "method.prior=[0.2, 0.8]",
            "method.class_mass=false",
            "data.text=a=b",
            "data.label=x: [",
            "seeds=4",
            "training.steps=5",
        ]
    )
    assert found == {
        "training": {"steps": 5, "learning_rate": 1e-5},
        "method": {"prior": [0.2, 0.8], "class_mass": False},
        "data": {"text": "a=b", "label": "x: ["},
        "seeds": 4,
    }


@pytest.mark.parametrize("assignment", ["training.steps", "=3", ""])
def test_an_assignment_needs_a_key_and_a_value(assignment: str) -> None:
    with pytest.raises(ConfigError, match=r"write key=value, such as training\.steps=300"):
        read_assignments([assignment])


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"a: [\n", ":2: not YAML"), (b"- a\n", " holds list"), (b"a: \xff\n", " is not UTF-8 (byte 3)")],
)
def test_a_file_that_is_no_configuration(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "c.yaml").write_bytes(content)
    with pytest.raises(DriftError) as error:
        read_config(tmp_path / "c.yaml")
    assert f"{tmp_path / 'c.yaml'}{message}" in str(error.value)
    assert len(str(error.value).splitlines()) == 1


def test_a_configuration_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="cannot be read"):
        read_config(tmp_path / "none.yaml")
    (tmp_path / "empty.yaml").write_text("# nothing\n")
    assert read_config(tmp_path / "empty.yaml") == {}
