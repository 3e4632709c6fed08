"""`drift.fit` on nodes: seeds trained together equal separate runs, and held-out labels change no bit of a model."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import drift
from drift.data.examples import Batch
from drift.data.graphs import to_data
from drift.errors import ConfigError, Interrupted, StateError
from drift.methods import METHODS
from drift.methods.method import Context, Method
from drift.runs import run as execution
from drift.runs.result import Run
from drift.tasks.nodes import task as node_task
from drift.tasks.nodes.model import Design, NodeModel, published_recipe
from drift.training.trainer import Trainer
from tests.runs.small import COST, metrics_of
from tests.runs.small_graphs import CLASSES, RECIPE, same_weights, small_graph, small_node_fit, write_npz, write_tables
from tests.training.runs import Seen, stopped_after, weights

MODELS = pytest.mark.parametrize("model", ["gcn", "grand"])
METHOD_NAMES = ("supervised", "self-training", "drift")
Trained = Callable[..., Seen]


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> Trained:
    """Make a small run and return its trainer."""

    def fit(*arguments: Any, **options: Any) -> Seen:
        kept: list[Seen] = []

        class Kept(Seen):
            def run(self, *, resume: bool = False) -> Any:
                kept.append(self)
                return super().run(resume=resume)

        monkeypatch.setattr(execution, "Trainer", Kept)
        small_node_fit(*arguments, **options)
        return kept[0]

    return fit


def probabilities(trainer: Trainer, nodes: int = 30) -> Tensor:
    """Probabilities of every trial for every node, `(trials, nodes, C)`."""
    with torch.no_grad():
        return trainer.method.student.eval()(torch.arange(nodes)).softmax(-1)


@MODELS
@pytest.mark.parametrize("method", METHOD_NAMES)
def test_a_seed_among_others_equals_the_run_of_that_seed_alone(trained: Trained, model: str, method: str) -> None:
    """Labels, initial weights, dropout and the kept step depend only on the seed."""
    options: dict[str, Any] = {"model": model, "method": method, "labels_per_class": 2}
    together = trained(small_graph(), seed=3, seeds=3, **options)
    of_trials = probabilities(together)
    for trial, seed in enumerate((3, 4, 5)):
        alone = trained(small_graph(), seed=seed, seeds=1, **options)
        torch.testing.assert_close(probabilities(alone)[0], of_trials[trial], rtol=1e-4, atol=1e-6)
        assert alone.selection.steps[0] == together.selection.steps[trial]
    assert not torch.allclose(of_trials[0], of_trials[1], atol=1e-3)


@MODELS
def test_a_loaded_run_equals_the_saved_one(tmp_path: Path, model: str) -> None:
    graph = small_graph()
    run = small_node_fit(graph, model=model, out=tmp_path / "run")
    opened = drift.load(tmp_path / "run")
    assert isinstance(opened.model, NodeModel)
    assert (opened.model.design.name, opened.classes) == (model, CLASSES)
    np.testing.assert_array_equal(opened.predict_proba(graph), run.predict_proba(graph))
    assert opened.predict(graph) == run.predict(graph)
    assert opened.metrics["calibration"]["temperature"] == opened.model.temperature != 1
    assert opened.metrics["label_budget"] == {"train": 12, "dev": 9, "total": 21}


def test_the_kept_model_has_the_recorded_scores() -> None:
    graph = small_graph()
    run = small_node_fit(graph, seeds=3, training={"initial_steps": 20})
    kept = run.metrics["seeds"].index(run.metrics["kept_seed"])
    for part in ("dev", "test"):
        rows = graph.splits[part]
        right = run.predict_proba(graph)[rows].argmax(-1) == graph.labels[rows]
        assert run.metrics[part]["scores"][kept]["accuracy"] == pytest.approx(right.mean())
    assert max(each["accuracy"] for each in run.metrics["dev"]["scores"]) == pytest.approx(
        run.metrics["dev"]["scores"][kept]["accuracy"]
    )


@pytest.mark.parametrize(("model", "after"), [("gcn", 9), ("grand", 3)])
def test_an_interrupted_and_resumed_run_equals_the_whole_run_to_the_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str, after: int
) -> None:
    graph = write_npz(tmp_path / "graph.npz", small_graph())
    whole = small_node_fit(graph, model=model, out=tmp_path / "whole")
    with monkeypatch.context() as patch:
        patch.setattr(execution, "Trainer", stopped_after(after))
        with pytest.raises(Interrupted, match="continue with drift fit --resume"):
            small_node_fit(graph, model=model, out=tmp_path / "run")
    assert not (tmp_path / "run/model").exists()
    resumed = drift.fit(out=tmp_path / "run", resume=True, quiet=True)
    assert isinstance(resumed, Run)
    assert same_weights(whole, resumed)
    one, other = ({**metrics_of(tmp_path / name), **COST} for name in ("whole", "run"))
    assert one == other
    assert (tmp_path / "whole/trace.jsonl").read_bytes() == (tmp_path / "run/trace.jsonl").read_bytes()


def test_a_run_is_not_resumed_on_another_graph(tmp_path: Path) -> None:
    graph = small_graph()
    small_node_fit(write_npz(tmp_path / "graph.npz", graph), out=tmp_path / "run")
    for change in (
        {"labels": graph.labels[::-1].copy()},
        {"features": graph.features + 1},
        {"edges": graph.edges[:, (graph.edges != 0).all(0)]},
        {"splits": {**graph.splits, "train": graph.splits["train"][1:]}},
    ):
        write_npz(tmp_path / "graph.npz", small_graph(**change))
        with pytest.raises(StateError, match="not what they were when the run began"):
            drift.fit(out=tmp_path / "run", resume=True, quiet=True)


@MODELS
@pytest.mark.parametrize("method", METHOD_NAMES)
def test_labels_of_dev_and_test_change_no_weight(trained: Trained, model: str, method: str) -> None:
    graph = small_graph()
    labels = graph.labels.copy()
    labels[graph.splits["dev"]] = labels[graph.splits["test"]] = 0
    # One dev evaluation per phase, after its last step: there is nothing to select.
    options: dict[str, Any] = {"model": model, "method": method, "training": {"evaluate_every": 100}}
    one, other = (trained(each, **options) for each in (graph, small_graph(labels=labels)))
    looks = [run.trace.entries[-1]["dev"] for run in (one, other)]
    assert looks[0] != looks[1]
    if method == "supervised":
        assert torch.equal(weights(one.method.student), weights(other.method.student))
    else:
        assert list(one.students) == list(range(1, 7))
        assert all(torch.equal(one.students[step], other.students[step]) for step in one.students)


def test_a_training_label_changes_the_weights(trained: Trained) -> None:
    graph = small_graph()
    labels = graph.labels.copy()
    labels[graph.splits["train"][0]] = 2
    one, other = (trained(each, training={"evaluate_every": 100}) for each in (graph, small_graph(labels=labels)))
    assert not torch.equal(one.students[1], other.students[1])


def test_every_step_sees_every_node_once(trained: Trained) -> None:
    run = trained(small_graph())
    start, game = run.batches
    for seen in start:
        assert seen.labeled is not None
        assert seen.unlabeled is None
    for seen in game:
        assert seen.labeled is not None
        rows = torch.cat([seen.labeled[0], seen.unlabeled], dim=-1)
        assert torch.equal(rows.sort(-1).values, torch.arange(30).expand(2, -1))


def test_all_nodes_labelled_and_none_held_out() -> None:
    run = small_node_fit(small_graph(splits={}), settings={"data": {"dev_nodes": 0, "test_nodes": 0}})
    assert run.metrics["label_budget"] == {"train": 30, "dev": 0, "total": 30}
    assert run.metrics["kept_because"].startswith("first: there is no dev set")


# A model's own term beside the game.


def still_grand() -> Any:
    """GRAND without randomness: its views are equal, and differ from their sharpened mean."""
    rates = dict.fromkeys(("drop_node", "input_dropout", "hidden_dropout"), 0.0)
    student = Design("grand", recipe=published_recipe("small", {**RECIPE, **rates})).build(small_graph(), 3, (0, 1))
    with torch.no_grad():
        student.first_weight.abs_()  # otherwise most hidden units are dead
    return student


def method_of(name: str, student: Any, *, own_loss: bool) -> Method:
    method = METHODS[name]
    return method(student, method.settings_type(own_loss=own_loss), Context(stacked=True, single_process=True))


def batch() -> Batch:
    rows = torch.arange(30).expand(2, -1)
    return Batch((rows[:, :6], torch.from_numpy(small_graph().labels)[rows[:, :6]]), rows[:, 6:])


def gradients(method: Method, *, exact: bool = False) -> tuple[Tensor, Tensor]:
    """The loss, and the student's gradient."""
    if exact:
        loss = method.accumulate([batch()])
    else:
        loss = method.loss(batch())
        method.backward(loss)
    return loss.detach(), torch.cat([p.grad.flatten() for p in method.student.parameters()])


@pytest.mark.parametrize("exact", [False, True], ids=["one pass", "exact accumulation"])
@pytest.mark.parametrize("name", ["self-training", "drift"])
def test_a_game_with_the_models_own_loss_adds_its_regularizer_and_nothing_more(name: str, exact: bool) -> None:
    with_it, without = (gradients(method_of(name, still_grand(), own_loss=own), exact=exact) for own in (True, False))
    student = still_grand()
    own = student.regularizer().sum()
    own.backward()
    gradient = torch.cat([torch.zeros(p.numel()) if p.grad is None else p.grad.flatten() for p in student.parameters()])
    assert own > 1e-4
    assert gradient.abs().max() > 1e-4
    torch.testing.assert_close(with_it[0] - without[0], own.detach(), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(with_it[1] - without[1], gradient, rtol=1e-3, atol=1e-6)


def test_own_loss_changes_nothing_for_a_model_without_one() -> None:
    results = []
    for own in (True, False):
        student = Design("gcn", hidden=5, dropout=0.0).build(small_graph(), 3, (0, 1))
        results.append(gradients(method_of("drift", student, own_loss=own)))
    assert torch.equal(results[0][0], results[1][0])
    assert torch.equal(results[0][1], results[1][1])


def test_the_start_of_grand_is_trained_with_its_own_loss() -> None:
    student = still_grand()
    method = method_of("drift", student, own_loss=False)
    rows, labels = torch.arange(6).expand(2, -1), torch.from_numpy(small_graph().labels[:6]).expand(2, -1)
    torch.testing.assert_close(method.initial_loss(batch()), student.own_loss(rows, labels).sum())


# Models built by a function.

PLAIN = """
import torch
from torch import nn
from drift.tasks.nodes import task as node_task
from drift.tasks.nodes.model import Design

class Plain(nn.Module):
    def __init__(self, start):
        super().__init__()
        for name, value in start.named_parameters():
            self.register_parameter(name, nn.Parameter(value[0].detach().clone()))

    def forward(self, x, edge_index):
        a = torch.eye(len(x)).index_put((edge_index[0], edge_index[1]), torch.tensor(1.0))
        scale = a.sum(0).rsqrt()
        a = scale[:, None] * a * scale
        hidden = torch.relu(a @ x @ self.first_weight + self.first_bias)
        return a @ hidden @ self.second_weight + self.second_bias

def make(width, classes):
    from tests.runs.small_graphs import small_graph
    return Plain(Design("gcn", hidden=5).build(small_graph(), classes, (3,)))
"""
PYG = """
from torch_geometric.nn import GAT, GraphSAGE

def gat(width, classes):
    return GAT(width, 8, num_layers=2, out_channels=classes, heads=2, dropout=0.4)

def sage(width, classes):
    return GraphSAGE(width, 8, num_layers=2, out_channels=classes, norm="batch", dropout=0.4)
"""


@pytest.mark.parametrize("method", METHOD_NAMES)
def test_a_gcn_built_by_a_function_is_trained_like_the_built_in_one(tmp_path: Path, method: str) -> None:
    (tmp_path / "mine.py").write_text(PLAIN)
    graph = small_graph()
    options: dict[str, Any] = {"method": method, "seed": 3, "training": {"weight_decay": 0}}
    made = {"model": {"scaling": "none"}}  # the function builds its module on features as they are
    settings = {"model": {"dropout": 0.0, "scaling": "none"}}
    one = small_node_fit(graph, model=f"{tmp_path}/mine.py:make", settings=made, **options)
    other = small_node_fit(graph, seeds=1, settings=settings, **options)
    np.testing.assert_allclose(one.predict_proba(graph), other.predict_proba(graph), rtol=1e-3, atol=1e-5)
    assert one.metrics["best_steps"] == other.metrics["best_steps"]
    assert one.metrics["seeds"] == [3]
    assert any(note.startswith("one seed per run: the model is not one of ours") for note in one.notes)


@pytest.fixture
def pyg(tmp_path: Path) -> str:
    """The file with models of PyG."""
    pytest.importorskip("torch_geometric", reason="needs torch_geometric: pip install 'drift-ssl[graph]'")
    (tmp_path / "mine.py").write_text(PYG)
    return f"{tmp_path}/mine.py"


@pytest.mark.parametrize("function", ["gat", "sage"])
@pytest.mark.parametrize("method", METHOD_NAMES)
def test_models_of_pyg_learn(pyg: str, method: str, function: str) -> None:
    graph = small_graph()
    run = small_node_fit(graph, model=f"{pyg}:{function}", method=method, training={"initial_steps": 20})
    rows = graph.splits["test"]
    right = run.predict_proba(graph)[rows].argmax(-1) == graph.labels[rows]
    assert run.metrics["test"]["scores"][0]["accuracy"] == pytest.approx(right.mean())
    assert right.mean() > 0.5


def test_a_model_of_pyg_is_resumed_to_the_bit_and_loaded_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pyg: str
) -> None:
    """Its dropout uses torch's global generator, and its batch-norm has a state."""
    name, graph = f"{pyg}:sage", small_graph()
    file = write_npz(tmp_path / "graph.npz", graph)
    whole = small_node_fit(file, model=name)
    with monkeypatch.context() as patch:
        patch.setattr(execution, "Trainer", stopped_after(9))
        with pytest.raises(Interrupted):
            small_node_fit(file, model=name, out=tmp_path / "run")
    with pytest.raises(ConfigError, match="its code is run only if you name it"):
        drift.fit(out=tmp_path / "run", resume=True, quiet=True)
    resumed = drift.fit(out=tmp_path / "run", resume=True, quiet=True, model=name)
    assert isinstance(resumed, Run)
    assert same_weights(whole, resumed)
    opened = drift.load(tmp_path / "run")
    with pytest.raises(ConfigError, match="its code is run only if you name it"):
        drift.predict(opened, graph)
    opened.model = opened.model.made_by(name)
    np.testing.assert_array_equal(opened.predict_proba(graph), whole.predict_proba(graph))


# Sources.


def test_pyg_data_with_masks_is_the_same_graph_as_a_file_and_as_tables(tmp_path: Path) -> None:
    pytest.importorskip("torch_geometric", reason="needs torch_geometric: pip install 'drift-ssl[graph]'")
    graph = small_graph()
    data = to_data(graph)
    run = small_node_fit(data)
    assert run.metrics["graph"] | {"name": ""} == {"name": "", "nodes": 30, "edges": 62, "features": 6, "labeled": 30}
    assert run.classes == ["0", "1", "2"]
    np.testing.assert_array_equal(run.predict_proba(graph), small_node_fit(graph).predict_proba(graph))
    assert [CLASSES[int(name)] for name in drift.predict(run, data)] == small_node_fit(graph).predict(graph)


def test_tables_and_one_file_make_the_same_model(tmp_path: Path) -> None:
    graph = small_graph()
    nodes, edges = write_tables(tmp_path, graph)
    few = {"labels_per_class": 2, "settings": {"data": {"dev_nodes": 6, "test_nodes": 6}}}
    one = small_node_fit(nodes, edges=edges, **few)
    assert same_weights(one, small_node_fit(write_npz(tmp_path / "graph.npz", small_graph(splits={})), **few))


@pytest.mark.parametrize(
    ("options", "error_type", "message"),
    [
        ({"model": "textcnn"}, ConfigError, "'textcnn' is not a kind of model for nodes"),
        ({"model": "none.py:make"}, ConfigError, "none.py is not there"),
        ({"model": "torch.nn:Linear"}, ConfigError, "torch.nn:Linear failed (TypeError: "),
        ({"model": "grand", "settings": {"model": {"recipe": {"hiden": 3}}}}, ConfigError, "did you mean 'hidden'?"),
        ({"model": "grand", "settings": {"model": {"recipe": {"drop_node": 1}}}}, ConfigError, "drop_node=1"),
        ({"settings": {"method": {"prior": [0.5, 0.5]}}}, ConfigError, "has 2 shares, the labels have 3 classes"),
        (
            {"settings": {"method": {"prior": {"art": 0.5, "law": 0.5}}}},
            ConfigError,
            "method.prior has no share for class 'zoo'",
        ),
        (
            {"settings": {"method": {"prior": {"art": 0.2, "law": 0.2, "zoo": 0.2, "zo": 0.4}}}},
            ConfigError,
            "method.prior has a share for 'zo', which is not a class",
        ),
        ({"preset": "agnews"}, ConfigError, "'agnews' is not a preset for nodes"),
        ({"settings": {"data": {"labels_per_class": 0}}}, ConfigError, "data.labels_per_class=0"),
    ],
)
def test_a_run_that_cannot_begin_leaves_nothing_behind(
    tmp_path: Path, options: dict[str, Any], error_type: type[Exception], message: str
) -> None:
    options = {"graph": small_graph(), **options}
    with pytest.raises(error_type) as error:
        small_node_fit(options.pop("graph"), out=tmp_path / "run", **options)
    assert message in str(error.value)
    assert len(str(error.value).splitlines()) == 1
    assert not list(tmp_path.iterdir())


@MODELS
def test_a_prior_by_class_name_equals_the_list_in_class_order(model: str) -> None:
    graph = small_graph()
    graph.splits.pop("dev")  # which may choose the start, whatever the prior

    def fit(prior: Any) -> Run:
        return small_node_fit(graph, model=model, settings={"method": {"prior": prior}})

    listed = fit([0.6, 0.3, 0.1])
    assert same_weights(listed, fit({"art": 0.6, "law": 0.3, "zoo": 0.1}))
    assert same_weights(listed, fit({"zoo": 0.1, "art": 0.6, "law": 0.3}))
    assert not same_weights(listed, fit({"art": 0.1, "law": 0.3, "zoo": 0.6}))


def test_a_prior_may_name_numbered_classes() -> None:
    graph = small_graph(classes=["0", "1", "2"])
    one, other = (
        small_node_fit(graph, settings={"method": {"prior": prior}})
        for prior in ([0.6, 0.3, 0.1], {2: 0.1, 1: 0.3, 0: 0.6})
    )
    assert same_weights(one, other)


def test_a_prior_that_does_not_fit_is_refused_before_the_model_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    def build(*_: Any, **__: Any) -> None:
        raise AssertionError("the model was built")

    monkeypatch.setattr(Design, "build", build)
    with pytest.raises(ConfigError, match=r"method\.prior has no share for class 'law'"):
        small_node_fit(small_graph(), settings={"method": {"prior": {"art": 1.0}}})


@pytest.mark.skipif("DRIFT_DATA" not in os.environ, reason="DRIFT_DATA is not set")
def test_cora_is_learned_from_its_public_split() -> None:
    training = {"initial_steps": 60, "steps": 10, "evaluate_every": 10}
    run = small_node_fit("Cora", training=training, settings={"model": {"hidden": 16}})
    assert run.metrics["label_budget"] == {"train": 140, "dev": 500, "total": 640}
    assert run.metrics["test"]["rows"] == 1000
    assert all(scores["accuracy"] > 0.75 for scores in run.metrics["test"]["scores"])


def test_a_large_graph_is_trained_with_fewer_seeds_unless_their_number_is_given(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    graph = small_graph()
    monkeypatch.setattr(node_task, "TOGETHER", 3 * graph.entries)
    run = small_node_fit(graph, seeds=None, out=tmp_path / "run")
    assert run.metrics["seeds"] == [0, 1, 2]
    assert same_weights(run, small_node_fit(graph, seeds=None, out=tmp_path / "run", resume=True))
    assert small_node_fit(graph, seeds=4).metrics["seeds"] == [0, 1, 2, 3]
    monkeypatch.setattr(node_task, "TOGETHER", 1)
    assert small_node_fit(graph, seeds=None).metrics["seeds"] == [0]
