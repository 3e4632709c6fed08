"""A trained model of the nodes of a graph: a graph in, probabilities of named classes out."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, create_model, field_validator
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from drift.data.graphs import Graph
from drift.data.neighbours import Neighbours
from drift.errors import ConfigError, DataError, FileError
from drift.models.devices import best_device, device_of
from drift.models.factory import MadeModel, Make, find_factory, is_factory
from drift.models.feature_scaling import FeatureScaling, Way
from drift.models.gcn import GCN, Variant
from drift.models.grand import PUBLISHED, Grand, Recipe
from drift.models.propagation import OnGraph
from drift.models.sampled_gcn import SampledGCN, layerwise, layerwise_hidden
from drift.models.saved import DESCRIPTION, Description, read_description, write_description
from drift.settings import Settings

FORMAT, WEIGHTS = "drift-nodes/1", "weights.safetensors"
SCALING = "features/"  # begins the names of tensors of the scaling, which are saved beside the weights
TRAINING = ("learning_rate", "weight_decay", "patience")  # parts of a recipe that a run sets in `training` instead


@dataclass(frozen=True)
class Design:
    """Which model, and its dimensions.

    name: gcn, grand, or a function that builds a model, see `find_factory`.
    hidden, dropout, variant: of gcn. recipe, reordered: of GRAND; the recipe of the dataset if it has one.
    neighbours: of gcn, how many are sampled per node to train it; it then predicts in batches.
    scaling: of the features; fitted on the graph that is trained on.
    """

    name: str = "gcn"
    hidden: int = 16
    dropout: float = 0.5
    variant: Variant = "paper"
    recipe: dict[str, Any] = field(default_factory=dict)
    reordered: bool = True
    neighbours: int | None = None
    scaling: FeatureScaling = field(default_factory=lambda: FeatureScaling("rows"))

    def build(self, graph: Graph, classes: int, seeds: Sequence[int]) -> GCN | Grand:
        """One module for all seeds, on this graph."""
        features = self.scaling.apply(graph.features)
        if self.name == "gcn":
            options: dict[str, Any] = {"hidden": self.hidden, "dropout": self.dropout, "variant": self.variant}
            return GCN(features, graph.edges, classes, seeds=seeds, **options)
        return Grand(
            features, graph.edges, classes, seeds=seeds, recipe=Recipe(**self.recipe), reordered=self.reordered
        )

    def build_sampled(self, graph: Graph, classes: int, seed: int) -> tuple[SampledGCN, Tensor, Neighbours]:
        """A module that is called with the neighbours of some nodes, and the features and neighbours of all nodes."""
        features = self.scaling.apply(graph.features, dense=True)
        module = SampledGCN(features.shape[1], classes, seed=seed, hidden=self.hidden, dropout=self.dropout)
        return module, features, Neighbours(graph.edges, len(features))

    def build_made(self, make: Make, graph: Graph, classes: int, seed: int) -> MadeModel:
        """The module that a user's function makes, on this graph."""
        scaled = replace(graph, features=self.scaling.apply(graph.features, dense=True))
        return MadeModel(make, scaled, classes, name=self.name, seed=seed)

    def described(self) -> dict[str, Any]:
        """The fields as JSON values; tensors of the scaling are kept beside them."""
        named = {each.name: getattr(self, each.name) for each in fields(self)}
        return {**named, "scaling": self.scaling.way}

    @classmethod
    def read(cls, described: dict[str, Any], tensors: Mapping[str, Tensor]) -> "Design":
        """The design that `described` described. tensors: of the scaling."""
        values = dict(described)
        if "scaling" not in values:  # before there was a choice, features of a factory's model were not scaled
            scaled = values.pop("scale_rows", True) and not is_factory(values["name"])
            values["scaling"] = "rows" if scaled else "none"
        return cls(**{**values, "scaling": FeatureScaling(values["scaling"], **tensors)})


def published_recipe(graph: str, changes: dict[str, Any]) -> dict[str, Any]:
    """GRAND's published settings for a dataset (those of Cora if it has none), with changes."""
    known = [each for each in fields(Recipe) if each.name not in TRAINING]
    types: dict[str, Any] = {each.name: (each.type, each.default) for each in known}
    settings: type[Settings] = create_model("Recipe", __base__=Settings, **types)
    checked = settings.read(changes, "model.recipe").model_dump(exclude_unset=True)
    return asdict(replace(PUBLISHED.get(graph.lower(), Recipe()), **checked))


class DesignFields(BaseModel):
    """The fields of a `Design`. scale_rows: of 0.1."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    name: str = Field(min_length=1)
    hidden: int = Field(ge=1, le=10_000)
    dropout: float = Field(ge=0, lt=1)
    variant: Variant = "paper"
    recipe: dict[str, bool | int | float]
    reordered: bool
    neighbours: int | None = Field(None, ge=1)
    scaling: Way = "none"
    scale_rows: bool | None = None

    @field_validator("recipe")
    @classmethod
    def _of_grand(cls, recipe: dict[str, Any]) -> dict[str, Any]:
        if unknown := sorted(recipe.keys() - {each.name for each in fields(Recipe)}):
            raise ValueError(f"there is no {unknown[0]!r}")
        TypeAdapter(Recipe).validate_python(recipe)
        return recipe


class NodeDescription(Description):
    """What `drift.json` holds of a `NodeModel`."""

    width: int = Field(ge=1)
    design: DesignFields


@dataclass(frozen=True)
class NodeModel:
    """A node classifier.

    weights: of one trial, by name. width: number of features per node.
    temperature: logits are divided by it, which calibrates the probabilities.
    make: the user's function that builds the module, if the design names one; it is not saved, see `made_by`.
    """

    weights: dict[str, Tensor]
    design: Design
    classes: list[str]
    width: int
    temperature: float = 1.0
    make: Make | None = None

    @classmethod
    def of(cls, student: OnGraph | SampledGCN, position: int, design: Design, classes: list[str]) -> "NodeModel":
        """One trial of a trained student. position: which trial."""
        state = {name: value[position : position + 1].clone() for name, value in student.state_dict().items()}
        return cls(state, design, classes, state["first_weight"].shape[1])

    @classmethod
    def of_made(cls, student: MadeModel, make: Make, design: Design, classes: list[str]) -> "NodeModel":
        """A trained student that `make` built; weights have the names they have in its module."""
        state = {name: value.clone() for name, value in student.inner.state_dict().items()}
        return cls(state, design, classes, student.graph.tensors[0].shape[1], make=make)

    def made_by(self, name: str) -> "NodeModel":
        """The same model with this function to build its module. A loaded model runs no user code before that."""
        return replace(self, make=find_factory(name))

    def calibrated(self, temperature: float) -> "NodeModel":
        return replace(self, temperature=temperature)

    def predict(self, graph: Graph) -> list[str]:
        """The most likely class of every node."""
        return [self.classes[code] for code in self.predict_proba(graph).argmax(-1)]

    @torch.inference_mode()
    def predict_proba(self, graph: Graph) -> np.ndarray:
        """Probability of each class for every node, `(n, C)`; the graph may be another one with the same features."""
        self._check(graph)
        if self.design.neighbours is not None:
            logits = layerwise(*self._sampled(graph))
        elif is_factory(self.design.name):
            logits = _all_logits(self._made(graph), graph)
        else:
            logits = _all_logits(self._stacked(graph), graph)[0]
        return torch.softmax(logits / self.temperature, -1).cpu().numpy()

    @torch.inference_mode()
    def representations(self, graph: Graph) -> np.ndarray:
        """The hidden layer of every node, after propagation and activation: `(n, hidden)`."""
        self._check(graph)
        if is_factory(self.design.name):
            raise ConfigError(
                f"the hidden layer of what {self.design.name} makes is not known; only gcn and grand have one"
            )
        if self.design.neighbours is not None:
            return layerwise_hidden(*self._sampled(graph)).numpy()
        return self._stacked(graph).representations()[0].cpu().numpy()

    def _check(self, graph: Graph) -> None:
        if graph.features.shape[1] != self.width:
            raise DataError(
                f"{graph.name} has {graph.features.shape[1]} features per node, the model was trained on {self.width}"
            )

    def _stacked(self, graph: Graph) -> GCN | Grand:
        module = self.design.build(graph, len(self.classes), [0])
        self._fill(module)
        return module.eval().to(best_device())

    def _sampled(self, graph: Graph) -> tuple[SampledGCN, Tensor, Neighbours]:
        module, features, neighbours = self.design.build_sampled(graph, len(self.classes), 0)
        self._fill(module)
        return module.eval(), features, neighbours

    def _fill(self, module: nn.Module) -> None:
        try:
            module.load_state_dict(self.weights)
        except RuntimeError as error:  # weights of another shape, in a damaged folder
            raise FileError(f"the weights do not fit the model that {DESCRIPTION} describes; copy it again") from error

    def _made(self, graph: Graph) -> MadeModel:
        name = self.design.name
        if self.make is None:
            raise ConfigError(
                f"{name} made the model, and its code is run only if you name it; if you trust it, name it again:"
                f" --model {name}, or drift.load(run, model={name!r})"
            )
        module = self.design.build_made(self.make, graph, len(self.classes), 0)
        try:
            module.inner.load_state_dict(self.weights)
        except RuntimeError as error:
            raise ConfigError(f"{name} makes another module than the one that was trained; give that one") from error
        return module.eval().to(best_device())

    def export_onnx(self, file: Path) -> None:
        raise ConfigError("a model of nodes needs its graph and is not written as ONNX")

    def save(self, folder: Path) -> None:
        """Write the model as safetensors and JSON."""
        folder.mkdir(parents=True, exist_ok=True)
        scaling = {SCALING + name: value for name, value in self.design.scaling.state_dict().items()}
        save_file({name: value.contiguous() for name, value in {**self.weights, **scaling}.items()}, folder / WEIGHTS)
        description = {"format": FORMAT, **{name: getattr(self, name) for name in ("classes", "width", "temperature")}}
        write_description(folder, {**description, "design": self.design.described()})

    @classmethod
    def load(cls, folder: Path) -> "NodeModel":
        """Open what `save` wrote."""

        def opened(description: dict[str, Any]) -> NodeModel:
            saved = load_file(folder / WEIGHTS)
            weights = {name: value for name, value in saved.items() if not name.startswith(SCALING)}
            scaling = {name.removeprefix(SCALING): value for name, value in saved.items() if name not in weights}
            width = description["width"]
            if any(tensor.shape != (width,) or not tensor.is_floating_point() for tensor in scaling.values()):
                raise FileError(f"{folder / WEIGHTS}: the scaling is not one number for each of {width} features")
            design = Design.read(description["design"], scaling)
            design.scaling.check()
            temperature = description["temperature"]
            return cls(weights, design, description["classes"], width, temperature=temperature)

        return read_description(folder, FORMAT, NodeDescription, opened)


def _all_logits(module: nn.Module, graph: Graph) -> Tensor:
    """Logits of all nodes of the graph that the module holds."""
    logits: Tensor = module(torch.arange(len(graph.labels), device=device_of(module)))
    return logits
