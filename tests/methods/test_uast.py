"""UAST: uncertainty under dropout, selection of rows, the loss on them; and its differentiable form."""

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.functional import cross_entropy

from drift.core.teacher import copy_of
from drift.data.examples import Batch, Unlabeled, Vectors
from drift.data.windows import Windows
from drift.errors import ConfigError
from drift.methods.method import Context
from drift.methods.uast import UAST, UASTSettings, drawn_by_group
from drift.models.mlp import mlp
from drift.models.stacked import Stacked
from drift.tasks.tokens.words import UnlabeledWords
from drift.training.devices import SingleProcess
from drift.training.pool import AllUnlabeled
from tests.methods.pieces import cut
from tests.runs.small import small_encoder, small_fit, small_table
from tests.runs.small_tokens import small_sentences, small_word_encoder

DRAW = torch.Generator().manual_seed(0)
ALL = 2 * torch.randn(300, 4, generator=DRAW)
X, Y = torch.randn(6, 4, generator=DRAW), torch.tensor([0, 1, 2, 0, 1, 2])


def new_student(dropout: float = 0.5, seed: int = 0) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return mlp(4, 3, hidden=(16,), dropout=dropout)


def new_method(student: nn.Module | None = None, *, stacked: bool = False, **settings: Any) -> UAST:
    student = student or new_student()
    return UAST(student, UASTSettings(**settings), Context(copy_of(student), stacked=stacked, single_process=True))


def pool_of(rows: Tensor) -> AllUnlabeled:
    return AllUnlabeled(Unlabeled(Vectors(ALL), rows), SingleProcess())


# Uncertainty under dropout.


def reference(student: nn.Module, x: Tensor, passes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return labels, variance and BALD in numpy, from the next draws of torch's generator."""
    p = np.stack([torch.softmax(student(x), -1).detach().double().numpy() for _ in range(passes)])
    mean = p.mean(0)
    labels = mean.argmax(1)
    variance = np.array([p[:, row, label].var() for row, label in enumerate(labels)])
    bald = -(mean * np.log(mean)).sum(1) + (p * np.log(p)).sum(2).mean(0)
    return labels, variance, bald


def test_labels_variances_and_bald_are_those_of_the_passes() -> None:
    method = new_method(passes=7)
    torch.manual_seed(3)
    measured = method._measure(ALL)
    torch.manual_seed(3)
    labels, variance, bald = reference(method.student, ALL, 7)
    assert (measured[:, 0].numpy() == labels).all()
    assert np.allclose(measured[:, 1].numpy(), variance, atol=1e-6)
    assert np.allclose(measured[:, 2].numpy(), bald, atol=1e-5)


def test_without_dropout_nothing_is_uncertain() -> None:
    measured = new_method(new_student(0.0))._measure(ALL)
    assert float(measured[:, 1:].abs().max()) < 1e-6


# The loss.


def test_the_loss_is_cross_entropy_with_the_pseudo_labels_weighted_by_their_variance() -> None:
    method = new_method(passes=5, unlabeled_weight=0.5)
    rows = torch.arange(100, 200)
    method.refresh(pool_of(rows))
    method.student.eval()  # the loss without dropout
    asked = torch.tensor([150, 103, 199, 150])
    at = asked - 100  # rows are sorted in the table, and all were sampled
    labels, weights = method._judgements.labels[at], method._judgements.weights[at]
    losses = cross_entropy(method.student(ALL[asked]), labels, reduction="none")
    expected = 0.5 * (weights * losses).mean()
    assert torch.allclose(method.loss(Batch(None, ALL[asked], None, asked)), expected)
    supervised = cross_entropy(method.student(X), Y)
    assert torch.allclose(method.loss(Batch((X, Y), ALL[asked], None, asked)), supervised + expected)
    assert torch.allclose(method.loss(Batch((X, Y))), supervised)


def test_weights_are_minus_a_tenth_of_the_log_variance() -> None:
    method = new_method(passes=5)
    torch.manual_seed(4)
    method.refresh(pool_of(torch.arange(50)))
    torch.manual_seed(4)
    labels, variance, _ = reference(method.student, ALL[:50], 5)
    assert (method._judgements.labels.numpy() == labels).all()
    assert np.allclose(method._judgements.weights.numpy(), -0.1 * np.log(variance + 1e-10), atol=1e-3)


def test_without_confidence_and_dropout_it_is_hard_pseudo_labels() -> None:
    method = new_method(new_student(0.0), confidence=False)
    rows = torch.arange(20)
    method.refresh(pool_of(rows))
    guessed = method.student(ALL[rows]).argmax(1)
    expected = cross_entropy(method.student(ALL[rows]), guessed)
    assert torch.allclose(method.loss(Batch(None, ALL[rows], None, rows)), expected)
    assert torch.allclose(method.loss(Batch(None, ALL[rows])), expected)  # a loop without a pool


def test_a_weight_of_zero_is_supervised_learning() -> None:
    method = new_method(new_student(0.0), unlabeled_weight=0.0)
    assert torch.allclose(method.loss(Batch((X, Y), ALL[:9])), method.initial_loss(Batch((X, Y))))


def test_labels_hold_until_the_next_look() -> None:
    method, rows = new_method(), torch.arange(40)
    method.refresh(pool_of(rows))
    before = method._judgements.of(rows)
    with torch.no_grad():
        for parameter in method.student.parameters():
            parameter.neg_()
    assert all(map(torch.equal, method._judgements.of(rows), before))
    method.refresh(pool_of(rows))
    assert not torch.equal(method._judgements.of(rows)[0], before[0])


def test_trials_have_rows_labels_and_draws_of_their_own() -> None:
    students = [new_student(0.0, seed) for seed in range(2)]
    rows = torch.stack([torch.arange(0, 80), torch.arange(200, 280)])
    method = new_method(Stacked(students), stacked=True, sample=50, chosen=20, confidence=False)
    positions = method.refresh(pool_of(rows))
    assert positions.shape == (2, 20)
    assert not torch.equal(positions[0], positions[1])
    chosen = rows.gather(-1, positions)
    expected = sum(
        cross_entropy(student(ALL[own]), student(ALL[own]).argmax(1))
        for student, own in zip(students, chosen, strict=True)
    )
    assert torch.allclose(method.loss(Batch(None, ALL[chosen], None, chosen)), expected, atol=1e-6)


# Selection of rows.


@given(st.lists(st.integers(0, 4), min_size=1, max_size=60), st.integers(1, 60), st.integers(0, 99))
def test_every_class_there_is_has_as_many_rows_and_its_best_ones(groups: list[int], size: int, seed: int) -> None:
    keys = torch.rand(len(groups), generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    of = torch.tensor(groups)
    positions = drawn_by_group(keys, of, size)
    taken = [int((of[positions] == group).sum()) for group in sorted(set(groups))]
    assert sum(taken) == len(positions) == size
    assert max(taken) - min(taken) <= 1
    for group, count in zip(sorted(set(groups)), taken, strict=True):
        own = (of == group).nonzero().flatten()
        best = own[keys[own].argsort(descending=True)].tolist()
        expected = [best[rank % len(best)] for rank in range(count)]
        assert sorted(positions[of[positions] == group].tolist()) == sorted(expected)


def test_an_unbalanced_class_keeps_its_share() -> None:
    groups = torch.tensor([0] * 80 + [1] * 15 + [2] * 5)
    positions = drawn_by_group(torch.rand(100, generator=DRAW), groups, 40, unbalanced_class=0)
    assert torch.bincount(groups[positions]).tolist() == [32, 4, 4]
    alone = drawn_by_group(torch.rand(80, generator=DRAW), groups[:80], 40, unbalanced_class=0)
    assert len(set(alone.tolist())) == 40


@pytest.mark.parametrize("prefer", ["easy", "hard"])
def test_rows_are_drawn_by_how_much_their_answers_vary(prefer: str) -> None:
    student = new_student()
    with torch.no_grad():
        student[-1].weight.mul_(8.0)  # so that rows differ much in BALD
    method = new_method(student, prefer=prefer, chosen=1, by_class=False, passes=4)
    rows, drawn = torch.arange(6), []
    for _ in range(300):
        torch.manual_seed(0)  # the same predictions each time, different draws of rows
        drawn += method.refresh(pool_of(rows)).tolist()
    torch.manual_seed(0)
    bald = reference(student, ALL[rows], 4)[2]
    expected = np.maximum(1 - bald if prefer == "easy" else bald, 0)
    assert expected.max() > 2 * expected.min()
    assert np.allclose(np.bincount(drawn, minlength=6) / 300, expected / expected.sum(), atol=0.1)


# Words.


class Words(nn.Module):
    """Logits of a word from its first sub-word."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(40, 3)
        nn.init.normal_(self.table.weight, generator=torch.Generator().manual_seed(2))

    def forward(self, input_ids: Tensor, attention_mask: Tensor, words: Tensor) -> Tensor:
        return self.table(input_ids.flatten()[words])


def test_words_have_labels_of_their_own_and_sentences_the_mean_of_their_words() -> None:
    sizes = [3, 1, 4, 2, 5, 2]
    ids = [np.arange(5 * row, 5 * row + size) for row, size in enumerate(sizes)]
    windows = Windows(ids, [np.arange(size) for size in sizes], list(range(6)), padding=39)
    method = new_method(Words(), chosen=3, confidence=False)
    positions = method.refresh(AllUnlabeled(UnlabeledWords(windows, torch.tensor([5, 0, 4, 2])), SingleProcess()))
    assert len(set(positions.tolist())) == 3
    rows = torch.tensor([4, 0, 5])
    inputs = windows.inputs(rows)
    logits = method.student(**inputs)
    expected = cross_entropy(logits, logits.argmax(1))
    assert torch.allclose(method.loss(Batch(None, inputs, None, rows)), expected)


# The differentiable form.


def test_the_differentiable_gradient_is_autograds_through_an_explicit_average() -> None:
    alpha, tau, rows = 0.7, 0.5, torch.arange(12)
    student = new_student(0.0).double()
    previous = new_student(0.0, seed=5).double()
    examples, x = Vectors(ALL.double()), X.double()
    settings = UASTSettings(coupling="differentiable", alpha=alpha, tau=tau, unlabeled_weight=2.0)
    method = UAST(student, settings, Context(copy.deepcopy(previous), single_process=True))
    method.game.follow()
    method.refresh(AllUnlabeled(Unlabeled(examples, rows), SingleProcess()))
    weights = method._judgements.of(rows)[1].double()
    batch = Batch((x, Y), ALL[rows].double(), None, rows)
    loss = method.loss(batch)
    method.backward(loss)
    actual = torch.cat([p.grad.flatten() for p in student.parameters()])

    theta = {name: p.detach().clone().requires_grad_() for name, p in student.named_parameters()}
    old = {name: p.detach() for name, p in previous.named_parameters()}
    average = {name: alpha * old[name] + (1 - alpha) * theta[name] for name in theta}
    u = batch.unlabeled
    p = torch.softmax(functional_call(previous, average, (u,)), -1) ** (1 / tau)
    y = p / p.sum(1, keepdim=True)
    q = torch.softmax(functional_call(student, theta, (u,)), -1)
    value = cross_entropy(functional_call(student, theta, (x,)), Y)
    value = value + 2.0 * (weights * (y * (y / q).log()).sum(1)).mean()
    expected = torch.cat([g.flatten() for g in torch.autograd.grad(value, list(theta.values()))])
    assert abs(loss.item() - value.item()) < 1e-10
    assert float((actual - expected).norm() / expected.norm()) < 1e-9
    assert method.diagnostics()["interaction_norm"] > 0

    student.zero_grad()
    detached = UAST(student, settings.model_copy(update={"alpha": 1.0}), Context(method.teacher, single_process=True))
    detached.load_state_dict({**method.state_dict(), "game": {**method.game.state_dict(), "alpha": 1.0}})
    detached.backward(detached.loss(batch))
    blind = torch.cat([p.grad.flatten() for p in student.parameters()])
    assert float((blind - expected).norm() / expected.norm()) > 1e-3


def test_micro_batches_merge_once() -> None:
    rows, gradients = torch.arange(12), []
    for firsts in ((), (1, 4)):
        method = new_method(new_student(0.0), coupling="differentiable")
        method.start()
        method.refresh(pool_of(rows))
        method.accumulate(cut(Batch((X, Y), ALL[rows], None, rows), *firsts))
        method.follow()
        gradients.append(torch.cat([p.grad.flatten() for p in method.student.parameters()]))
    assert torch.allclose(*gradients, atol=1e-6)


# Settings and runs.


def test_bad_settings_are_reported_on_one_line() -> None:
    with pytest.raises(ConfigError, match=r"^settings: chosen=50 rows of a sample=20; choose fewer, or sample more$"):
        UASTSettings.read({"chosen": 50, "sample": 20})
    with pytest.raises(ConfigError, match=r"^settings: passes=1: .*; prefer='odd': "):
        UASTSettings.read({"passes": 1, "prefer": "odd"})


@pytest.mark.parametrize("coupling", ["detached", "differentiable"])
def test_it_runs_from_texts_to_a_classifier(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, coupling: str) -> None:
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path / "cache"))
    train = pandas.DataFrame(small_table(40, labeled=8))
    settings = {"method": {"coupling": coupling, "every": 2, "sample": 20, "chosen": 10}}
    run = small_fit(train, small_encoder(tmp_path / "encoder"), method="uast", settings=settings)
    assert run.model.predict_proba(train["body"][:3].tolist()).shape == (3, 2)


@pytest.mark.parametrize("finetune", [False, True], ids=["frozen", "finetuned"])
def test_it_runs_on_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, finetune: bool) -> None:
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path / "cache"))
    train = pandas.DataFrame(small_sentences(20, labeled=8))
    settings = {"method": {"every": 2, "sample": 10, "chosen": 6, "passes": 3}}
    encoder = small_word_encoder(tmp_path / "encoder")
    run = small_fit(train, encoder, task="tokens", method="uast", finetune=finetune, settings=settings)
    assert run.metrics["steps"] == 8
