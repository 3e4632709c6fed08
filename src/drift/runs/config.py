"""What a run is, resolved: data, model, method and training, from presets, files and options."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import yaml
from pydantic import Field, field_validator

from drift.errors import ConfigError, FileError
from drift.methods import METHODS
from drift.paper.presets import PROFILES, defaults, preset
from drift.settings import Settings, nearest
from drift.training.settings import TrainingSettings


class TableSettings(Settings):
    """Where rows and labels come from. Names of files, or what was given in Python, in words."""

    train: str = Field("", description="Table to train on; rows with a blank label are unlabelled.")
    unlabeled: str | None = Field(None, description="Table with more rows; its labels are not looked at.")
    dev: str | None = Field(None, description="Table with labels to choose by; they count in the label budget.")
    test: str | None = Field(None, description="Table with labels, scored once at the end.")
    label: str | None = Field(None, description="Column with the labels.")
    weak: str | None = Field(None, description="Column with noisy labels, from a crowd, a language model or rules.")
    rules: str | None = Field(None, description="File with rules that give noisy labels.")
    dev_rows: int | None = Field(None, ge=1, description="Use only this many rows of dev, by seed.")
    train_rows: int | None = Field(None, ge=1, description="Use only this many rows of train, by seed.")
    test_rows: int | None = Field(None, ge=1, description="Score only this many rows of test, by seed.")
    encoding: str = Field("utf-8", description="Of CSV, TSV, JSON lines and CoNLL columns.")

    @property
    def is_weak(self) -> bool:
        return self.weak is not None or self.rules is not None


class TextDataSettings(TableSettings):
    """Texts and their classes."""

    text: str | None = Field(None, description="Column with the texts.")
    labels_per_class: int | None = Field(None, ge=1, description="Keep this many labels of each class, by seed.")


class TokenDataSettings(TableSettings):
    """Sentences and the tags of their words."""

    tokens: str | None = Field(None, description="Column with the words of each sentence, or with raw text.")
    scheme: str | None = Field(None, description="Of the tags: IOB2, IOB1, BIOES or IO; by their look, if left out.")
    uncovered: Literal["ignore", "O", "dev"] = Field(
        "dev",
        description="A word that no weak label covers: nothing is known of it, or it is O; dev: what does better.",
    )
    labeled_rows: int | None = Field(None, ge=1, description="Keep the labels of this many sentences, by seed.")


class NodeDataSettings(Settings):
    """A graph and the classes of its nodes."""

    train: str = Field("", description="A named graph, an .npz or .pt file, or a table of nodes.")
    edges: str | None = Field(None, description="Table of edges, with a table of nodes.")
    id: str | None = Field(None, description="Column with the names of nodes; the first if left out.")
    label: str | None = Field(None, description="Column with the classes; blank is unknown.")
    source: str | None = Field(None, description="Column of edges: from.")
    target: str | None = Field(None, description="Column of edges: to.")
    directed: bool = Field(False, description="Leave edges as they are; else each goes both ways.")
    labels_per_class: int | None = Field(
        None, ge=1, description="So many random labels of each class, by seed; the graph's own split if left out."
    )
    dev_nodes: int = Field(500, ge=0, description="To choose by, where the graph has no split of its own.")
    test_nodes: int = Field(1000, ge=0, description="To score, where the graph has no split of its own.")
    is_weak: ClassVar[bool] = False


class NodeModelSettings(Settings):
    """The model of nodes."""

    name: str = Field(
        "gcn", description="gcn, grand, or a function that makes one: file.py:function or package.module:function."
    )
    frozen: Literal[False] = False
    hidden: int = Field(16, ge=1, description="Of gcn.")
    dropout: float = Field(0.5, ge=0, lt=1, description="Of gcn.")
    recipe: dict[str, Any] = Field(
        default_factory=dict, description="Of grand: what differs from its published settings for the graph."
    )
    reordered: bool = Field(True, description="Of grand: features travel after the first layer, which is faster.")
    neighbours: int | None = Field(
        None, ge=1, description="Of gcn: draw so many of each node in a step; the whole graph is computed if left out."
    )
    scale_rows: bool | None = Field(
        None, description="Of gcn and grand: divide each node's features by their sum; if none is below 0, if left out."
    )


class EncoderSettings(Settings):
    """Which encoder, and how much of it is trained."""

    name: str = Field("default", description="An encoder by name or folder, or default.")
    frozen: bool | None = Field(
        None, description="Only a head on fixed vectors is trained; as the machine is, if left out."
    )
    max_length: int = Field(128, ge=2, description="Sub-words that are read at once.")
    dropout: float | None = Field(None, ge=0, lt=1, description="In place of the model's own.")


class TextModelSettings(EncoderSettings):
    """The model of texts."""

    name: str = Field("default", description="An encoder by name or folder, default, textcnn or vampire.")
    pool: Literal["mean", "cls", "layers"] = Field(
        "mean", description="What stands for a text where the encoder is fixed."
    )
    vectors: str | None = Field(None, description="Word vectors of textcnn: fastText or GloVe text, word2vec, or npy.")
    windows: tuple[Annotated[int, Field(ge=1)], ...] = Field((2, 3, 4, 5), min_length=1, description="Of textcnn.")
    maps: int = Field(500, ge=1, description="Of textcnn, a window.")
    min_count: int = Field(2, ge=1, description="Of textcnn and vampire: rarer words are unknown.")
    train_vectors: bool = Field(True, description="Of textcnn.")


class TokenModelSettings(EncoderSettings):
    """The model of words."""

    layers: int | None = Field(
        None, ge=1, description="Layers of the encoder to keep; if left out all, or half where it is fixed."
    )


class RunConfig(Settings):
    """All of it. method: its name, and its own settings."""

    task: str
    data: Any
    model: Any
    method: dict[str, Any] = Field(default_factory=lambda: {"name": "drift"})
    training: TrainingSettings = TrainingSettings()
    seeds: int = Field(10, ge=1, description="Heads trained at once where the encoder is fixed.")

    @field_validator("method")
    @classmethod
    def _known_method(cls, value: dict[str, Any]) -> dict[str, Any]:
        name = value.get("name", "drift")
        if name not in METHODS:
            raise ValueError(f"there is no method {name!r}{nearest(str(name), list(METHODS))}")
        try:
            settings = METHODS[name].settings_type.read(_without(value, "name"), "method")
        except ConfigError as error:
            raise ValueError(str(error)) from None
        return {"name": name, **settings.model_dump(mode="json")}

    @property
    def method_name(self) -> str:
        return str(self.method["name"])

    def check_prior(self, classes: Sequence[str]) -> None:
        """Refuse shares of another number of classes now, not after minutes of embedding."""
        prior = self.method.get("prior")
        if prior is not None and len(prior) != len(classes):
            raise ConfigError(
                f"method.prior has {len(prior)} shares for {len(classes)} classes; give one each, in this order:"
                f" {', '.join(classes)}"
            )

    def method_settings(self) -> Settings:
        return METHODS[self.method_name].settings_type.read(_without(self.method, "name"))


class TextConfig(RunConfig):
    """A run on texts."""

    task: Literal["text"] = "text"
    data: TextDataSettings = TextDataSettings()
    model: TextModelSettings = TextModelSettings()


class TokenConfig(RunConfig):
    """A run on the words of sentences."""

    task: Literal["tokens"] = "tokens"
    data: TokenDataSettings = TokenDataSettings()
    model: TokenModelSettings = TokenModelSettings()


class NodeConfig(RunConfig):
    """A run on the nodes of a graph."""

    task: Literal["nodes"] = "nodes"
    data: NodeDataSettings = NodeDataSettings()
    model: NodeModelSettings = NodeModelSettings()


CONFIGS: dict[str, type[RunConfig]] = {"text": TextConfig, "tokens": TokenConfig, "nodes": NodeConfig}


def config_of(values: Mapping[str, Any], where: str) -> RunConfig:
    """A whole configuration, such as a run's folder holds."""
    return CONFIGS[known_task(values.get("task", "text"))].read(values, where)


def known_task(name: Any) -> str:
    if name not in CONFIGS:
        raise ConfigError(f"there is no task {name!r}{nearest(str(name), CONFIGS)}")
    return str(name)


def resolve(
    *,
    task: str = "text",
    kind: str,
    weak: bool,
    preset_name: str | None,
    profile: str,
    layers: Sequence[Mapping[str, Any]],
) -> RunConfig:
    """One configuration of several: defaults for the kind of model, then a preset, then `layers`, later ones first.

    kind: frozen, finetuned or textcnn. weak: whether labels are noisy, for presets differ by it.
    """
    if profile not in PROFILES:
        raise ConfigError(f"there is no profile {profile!r}{nearest(profile, list(PROFILES))}")
    merged: dict[str, Any] = defaults(task, kind, weak=weak)
    if preset_name is not None:
        setting = kind if kind in ("textcnn", "grand") else "weak" if weak else "semi"
        merged = merge(merged, preset(preset_name, setting, profile, kind, task=task))
    for layer in layers:
        merged = merge(merged, layer)
    # Else the machine would decide again when the run is resumed or repeated.
    if task != "nodes":
        merged = merge(merged, {"model": {"frozen": kind == "frozen"}})
    name = merged.get("method", {}).get("name", "drift")
    if name in METHODS:  # defaults are for every method, and each takes what it has
        if task not in METHODS[name].tasks:
            raise ConfigError(
                f"{name} is for {' and '.join(METHODS[name].tasks)}, not for --task {task}; drift methods lists all"
            )
        if kind == "frozen" and METHODS[name].head_dropout:
            merged = merge({"model": {"dropout": METHODS[name].head_dropout}}, merged)
        known = {*METHODS[name].settings_type.model_fields, "name"}
        given = _given_to(name, layers)
        merged["method"] = {key: value for key, value in merged["method"].items() if key in known | given}
    return CONFIGS[task].read(merged, "configuration")


def merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Nested settings, those above taking the place of those below."""
    if not isinstance(above, Mapping):
        raise ConfigError(f"{above!r} is not a group of settings; write group.name=value, such as model.name=textcnn")
    merged = dict(below)
    for name, value in above.items():
        merged[name] = merge(merged[name], value) if isinstance(merged.get(name), Mapping) else value
    return merged


def read_config(path: str | Path) -> dict[str, Any]:
    """A configuration file in YAML."""
    try:
        found = yaml.safe_load(Path(path).read_text(encoding="utf-8")) or {}
    except OSError as error:
        raise FileError(f"{path} cannot be read ({error.strerror}); give a YAML file") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not YAML ({' '.join(str(error).split())})") from error
    if not isinstance(found, dict):
        raise ConfigError(f"{path} holds {type(found).__name__}, not settings by name")
    return nested(found)


def read_assignments(assignments: Iterable[str]) -> dict[str, Any]:
    """`training.steps=300` as nested settings; values are read as YAML."""
    found: dict[str, Any] = {}
    for assignment in assignments:
        path, equals, value = assignment.partition("=")
        if not equals or not path:
            raise ConfigError(f"--set {assignment!r}: write key=value, such as training.steps=300")
        try:
            content: Any = yaml.safe_load(value)
        except yaml.YAMLError:
            content = value
        if isinstance(content, str):
            with suppress(ValueError):  # YAML takes 1e-5 for a string
                content = float(content)
        found = merge(found, nested({path.strip(): content}))
    return found


def nested(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by group, of which some may have their whole names, such as "training.steps"."""
    found: dict[str, Any] = {}
    for path, content in settings.items():
        for part in reversed(str(path).split(".")):
            content = {part: content}
        found = merge(found, content)
    return found


def _given_to(method: str, layers: Sequence[Mapping[str, Any]]) -> set[str]:
    """The settings somebody gave to this method; those of a lower layer that names another were meant for that one."""
    given: set[str] = set()
    for layer in layers:
        settings = layer.get("method", {})
        if settings.get("name", method) != method:
            given = set()
        else:
            given |= set(settings)
    return given


def _without(values: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key != name}
