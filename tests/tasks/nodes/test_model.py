"""A trained node model predicts as its student did, also after loading; GRAND's own loss is the published one."""

import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from drift.errors import ConfigError, DataError, FileError
from drift.models.grand import PUBLISHED, Grand
from drift.models.propagation import OnGraph
from drift.tasks.nodes import model as model_module
from drift.tasks.nodes.model import WEIGHTS, Design, NodeModel, published_recipe
from tests.runs.small_graphs import CLASSES, FEATURES, RECIPE, small_graph

GRAPH = small_graph()
ALL = torch.arange(30)
DESIGNS = {
    "gcn": Design("gcn", hidden=5),
    "grand": Design("grand", recipe=published_recipe("small", RECIPE)),
    "grand, batch-norm": Design("grand", recipe=published_recipe("small", {**RECIPE, "batch_norm": True})),
    "grand, original order": Design("grand", recipe=published_recipe("small", RECIPE), reordered=False),
}
BY_DESIGN = pytest.mark.parametrize("design", DESIGNS.values(), ids=DESIGNS)


def student_of(design: Design) -> OnGraph:
    """Two trials with weights that differ from the initial ones."""
    student = design.build(GRAPH, len(CLASSES), (4, 2))
    with torch.no_grad():
        for number, parameter in enumerate(student.parameters()):
            parameter.normal_(generator=torch.Generator().manual_seed(number))
        student(ALL)  # in training mode: updates batch-norm statistics
    return student.eval()


@BY_DESIGN
def test_one_trial_predicts_the_same_as_among_others_and_after_loading(design: Design, tmp_path: Path) -> None:
    student = student_of(design)
    with torch.no_grad():
        expected = student(ALL).softmax(-1).numpy()
    for trial in (1, 0):
        model = NodeModel.of(student, trial, design, CLASSES)
        np.testing.assert_allclose(model.predict_proba(GRAPH), expected[trial], rtol=1e-5, atol=1e-7)
        model.save(tmp_path / str(trial))
        opened = NodeModel.load(tmp_path / str(trial))
        assert (opened.design, opened.classes, opened.width) == (design, CLASSES, FEATURES)
        np.testing.assert_array_equal(opened.predict_proba(GRAPH), model.predict_proba(GRAPH))


@BY_DESIGN
def test_the_model_does_not_share_weights_with_the_student(design: Design) -> None:
    student = student_of(design)
    model = NodeModel.of(student, 0, design, CLASSES)
    before = model.predict_proba(GRAPH)
    with torch.no_grad():
        for parameter in student.parameters():
            parameter.zero_()
    np.testing.assert_array_equal(model.predict_proba(GRAPH), before)


def test_a_temperature_divides_the_logits_and_is_kept(tmp_path: Path) -> None:
    model = NodeModel.of(student_of(DESIGNS["gcn"]), 0, DESIGNS["gcn"], CLASSES)
    cold, warm = np.log(model.predict_proba(GRAPH)), np.log(model.calibrated(2.0).predict_proba(GRAPH))
    gaps = (cold - cold[:, :1]) / 2  # of log-probabilities, which a temperature of 2 halves
    np.testing.assert_allclose(warm - warm[:, :1], gaps, rtol=1e-4, atol=1e-5)
    model.calibrated(2.0).save(tmp_path / "model")
    np.testing.assert_array_equal(np.log(NodeModel.load(tmp_path / "model").predict_proba(GRAPH)), warm)


@pytest.mark.parametrize("name", ["gcn", "grand"])
def test_another_graph_may_have_other_nodes_and_must_have_the_same_features(name: str) -> None:
    model = NodeModel.of(student_of(DESIGNS[name]), 0, DESIGNS[name], CLASSES)
    assert model.predict_proba(small_graph(12, seed=3)).shape == (12, len(CLASSES))
    wide = replace(GRAPH, features=torch.ones(30, FEATURES + 1))
    for use in (model.predict_proba, model.representations):
        with pytest.raises(DataError, match="small has 7 features per node, the model was trained on 6"):
            use(wide)


@pytest.mark.parametrize("name", ["gcn", "grand"])
def test_representations_are_the_inputs_of_the_last_layer(name: str) -> None:
    student = student_of(DESIGNS[name])
    hidden = NodeModel.of(student, 1, DESIGNS[name], CLASSES).representations(GRAPH)
    assert hidden.shape == (30, 5 if name == "gcn" else 32)
    assert hidden.min() == 0 < hidden.max()
    last = torch.from_numpy(hidden) @ student.get_parameter("second_weight")[1]
    if name == "gcn":
        last = student.adjacency.rows.to_dense() @ last
    torch.testing.assert_close(last + student.get_parameter("second_bias")[1], student(ALL)[1], rtol=1e-4, atol=1e-5)


def test_a_damaged_folder_is_refused(tmp_path: Path) -> None:
    model = NodeModel.of(student_of(DESIGNS["gcn"]), 0, DESIGNS["gcn"], CLASSES)
    model.save(tmp_path)
    (tmp_path / WEIGHTS).write_bytes(b"not weights")
    with pytest.raises(FileError, match="cannot be opened as a trained model"):
        NodeModel.load(tmp_path)
    (tmp_path / WEIGHTS).unlink()
    with pytest.raises(FileError, match=f"lacks {WEIGHTS}"):
        NodeModel.load(tmp_path)


def test_a_recipe_is_the_datasets_with_changes() -> None:
    assert published_recipe("PubMed", {})["hidden_dropout"] == PUBLISHED["pubmed"].hidden_dropout
    changed = published_recipe("CiteSeer", {"order": 4})
    assert (changed["order"], changed["views"]) == (4, PUBLISHED["citeseer"].views)
    assert published_recipe("mine", {}) == published_recipe("Cora", {})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hiden": 3}, "model.recipe: there is no 'hiden'; did you mean 'hidden'?"),
        ({"views": 0, "temperature": 0}, "views=0: input should be greater than or equal to 1; temperature=0: "),
        ({"learning_rate": 0.2}, "model.recipe: there is no 'learning_rate'"),
        ({"hidden": "many"}, "hidden='many': input should be a valid integer"),
    ],
)
def test_a_wrong_recipe_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        published_recipe("Cora", changes)
    assert message in str(error.value)


def test_grands_own_loss_is_cross_entropy_of_the_views_and_their_consistency() -> None:
    recipe = {**RECIPE, "views": 3, "temperature": 0.4, "consistency_weight": 0.7, "certain": False}
    student = Design("grand", recipe=published_recipe("small", recipe)).build(GRAPH, len(CLASSES), (4, 2))
    assert isinstance(student, Grand)
    twin = copy.deepcopy(student)
    rows = torch.tensor([[0, 1, 2], [5, 9, 7]])
    labels = torch.from_numpy(GRAPH.labels)[rows]
    losses = student.own_loss(rows, labels)
    views = twin.augmentations(ALL)  # (views, trials, nodes, C), with the same masks
    for trial in range(2):
        logits = views[:, trial]
        supervised = torch.stack([cross_entropy(view[rows[trial]], labels[trial]) for view in logits]).mean()
        p = logits.softmax(-1)
        sharp = p.mean(0) ** (1 / 0.4)
        sharp = sharp / sharp.sum(-1, keepdim=True)
        consistency = torch.stack([((view - sharp) ** 2).sum(-1).mean() for view in p]).mean()
        torch.testing.assert_close(losses[trial], supervised + 0.7 * consistency)


def test_grands_regularizer_is_its_own_loss_without_the_labels() -> None:
    student = DESIGNS["grand"].build(GRAPH, len(CLASSES), (4, 2))
    assert isinstance(student, Grand)
    twin, third = copy.deepcopy(student), copy.deepcopy(student)
    rows = ALL[:6].expand(2, -1)
    labels = torch.from_numpy(GRAPH.labels)[rows]
    views = third.augmentations(rows).log_softmax(-1)
    supervised = -views.gather(-1, labels.expand(2, -1, -1).unsqueeze(-1)).mean((0, 2, 3))
    torch.testing.assert_close(student.regularizer(), twin.own_loss(rows, labels) - supervised)


class Recorder(nn.Module):
    """A model on the meta device that records the devices of its inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(1, device="meta"))
        self.seen: list[torch.device] = []

    def forward(self, rows: Tensor) -> Tensor:
        self.seen.append(rows.device)
        return torch.zeros(1, len(rows), len(CLASSES))  # on the CPU: tensors on "meta" have no values


def test_inputs_are_on_the_device_of_the_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    module = Recorder()
    monkeypatch.setattr(model_module, "best_device", lambda: torch.device("meta"))
    monkeypatch.setattr(Design, "build", lambda *_: module)
    model = NodeModel(module.state_dict(), Design("gcn"), CLASSES, FEATURES)
    np.testing.assert_allclose(model.predict_proba(GRAPH), 1 / 3, rtol=1e-6)
    assert [device.type for device in module.seen] == ["meta"]
