"""WeSTClass: both losses against a reference, targets by row, pseudo-documents, and whole runs."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from drift.data.examples import Batch, Labeled, Unlabeled, Vectors
from drift.data.tokenized import silent
from drift.errors import ConfigError, Interrupted
from drift.methods.materials import Texts
from drift.methods.method import Context
from drift.methods.westclass import WestClass, WestClassSettings, sharpened
from drift.models.stacked import Stacked
from drift.training.devices import SingleProcess
from drift.training.pool import AllUnlabeled
from tests.runs.small import small_encoder, small_fit, small_table
from tests.training.runs import final_state, same_bits, small_data, small_run, small_student, stopped_after

SMALL = {"documents": 6, "nearest": 5, "min_count": 1, "keywords": 3}
GENERATOR = torch.Generator().manual_seed(0)
X = torch.randn(9, 4, generator=GENERATOR)


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


def new_method(**settings: Any) -> WestClass:
    torch.manual_seed(0)
    return WestClass(nn.Linear(4, 3), WestClassSettings(**settings), Context(single_process=True))


def probabilities(method: WestClass, x: Tensor) -> np.ndarray:
    return torch.softmax(method.student(x), -1).detach().double().numpy()


def divergence(y: np.ndarray, q: np.ndarray) -> float:
    return float((y * np.log(y / q)).sum(-1).mean())


# The losses.


@pytest.mark.parametrize("background", [0.2, 0.6])
def test_the_first_phase_uses_smoothed_labels(background: float) -> None:
    method, y = new_method(background=background), torch.tensor([0, 2, 1, 1])
    smoothed = (1 - background) * np.eye(3)[y] + background / 3
    loss = method.initial_loss(Batch((X[:4], y)))
    assert loss.item() == pytest.approx(divergence(smoothed, probabilities(method, X[:4])), rel=1e-5)


def test_without_smoothing_the_start_is_cross_entropy() -> None:
    method, y = new_method(background=0.0), torch.tensor([0, 2, 1, 1])
    loss, expected = method.initial_loss(Batch((X[:4], y))), nn.functional.cross_entropy(method.student(X[:4]), y)
    torch.testing.assert_close(loss, expected)


def test_targets_are_sharpened_over_all_rows_and_looked_up_by_row_number() -> None:
    method, rows = new_method(), torch.tensor([7, 2, 5, 3])  # rows 0, 1, 4, 6 and 8 are labelled, say
    method.refresh(AllUnlabeled(Unlabeled(Vectors(X), rows), SingleProcess()))
    p = probabilities(method, X[rows])
    squared = p**2 / p.sum(0)
    targets = squared / squared.sum(1, keepdims=True)
    with torch.no_grad():
        method.student.weight.mul_(0.5)  # the student has changed, its targets have not
    loss = method.loss(Batch(unlabeled=X[[3, 7]], unlabeled_rows=torch.tensor([3, 7])))
    expected = divergence(targets[[3, 0]], probabilities(method, X[[3, 7]]))
    assert loss.item() == pytest.approx(expected, rel=1e-5)
    loss.backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in method.student.parameters())


def test_before_a_look_at_all_rows_every_class_is_taken_as_equally_frequent() -> None:
    p = torch.tensor([[0.5, 0.3, 0.2]])
    torch.testing.assert_close(sharpened(p.log()).exp(), p**2 / (p**2).sum())


def test_stacked_trials_have_targets_and_losses_of_their_own() -> None:
    heads = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        heads.append(nn.Sequential(nn.Linear(4, 3)))
    rows = torch.tensor([[8, 1, 4], [0, 5, 3]])
    drawn = torch.tensor([[4, 8], [5, 5]])
    together = WestClass(Stacked(heads), WestClassSettings(), Context(stacked=True, single_process=True))
    together.refresh(AllUnlabeled(Unlabeled(Vectors(X), rows), SingleProcess()))
    loss = together.loss(Batch(unlabeled=X[drawn], unlabeled_rows=drawn))
    alone = []
    for head, own, batch in zip(heads, rows, drawn, strict=True):
        method = WestClass(head, WestClassSettings(), Context(single_process=True))
        method.refresh(AllUnlabeled(Unlabeled(Vectors(X), own), SingleProcess()))
        alone.append(method.loss(Batch(unlabeled=X[batch], unlabeled_rows=batch)))
    torch.testing.assert_close(loss, torch.stack(alone).sum())


def test_targets_are_part_of_the_state() -> None:
    method, again = new_method(), new_method()
    method.refresh(AllUnlabeled(Unlabeled(Vectors(X), torch.arange(9)), SingleProcess()))
    again.load_state_dict(method.state_dict())
    batch = Batch(unlabeled=X[:3], unlabeled_rows=torch.arange(3))
    assert torch.equal(again.loss(batch), method.loss(batch))


@pytest.mark.parametrize("after", [9, 12, 17])
def test_a_run_stopped_between_two_looks_at_all_rows_goes_on_exactly(tmp_path: Path, after: int) -> None:
    options: dict[str, Any] = dict(method="westclass", played={"update_every": 4}, data=small_data(weak=True))
    whole = small_run(tmp_path / "whole", **options)
    whole.run()
    with pytest.raises(Interrupted):
        small_run(tmp_path / "run", kind=stopped_after(after), **options).run()
    again = small_run(tmp_path / "run", student=small_student(seed=9), **options)
    again.run(resume=True)
    assert same_bits(final_state(again), final_state(whole))


# Pseudo-documents.


def texts_of(rows: Tensor, *, weak: bool, encoded: list[str]) -> Texts:
    """encoded: a list to which the encoded texts are added."""
    table = small_table(80)

    def encode(texts: Any) -> Vectors:
        encoded.extend(texts)
        return Vectors(torch.zeros(len(texts), 1))

    return Texts(
        [" ".join(text.split()[:3]) for text in table["body"]],  # so that no word is in too many texts
        ["money", "sport"],
        Labeled(Vectors(torch.zeros(80, 1)), rows, rows % 2),
        weak,
        encode,
        list(range(len(rows))) if rows.dim() == 2 else [0],
        silent,
    )


def test_trials_share_documents_if_they_share_words_and_only_then() -> None:
    encoded: list[str] = []
    settings = WestClassSettings(**SMALL, seed_words={"money": ["bank"], "sport": ["team"]})
    rows = torch.stack([torch.arange(0, 40), torch.arange(40, 80)])
    labeled = WestClass.prepare_texts(settings, texts_of(rows, weak=True, encoded=encoded)).labeled
    assert labeled is not None
    assert len(encoded) == 2 * 6  # classes times documents
    assert torch.equal(labeled.rows[0], labeled.rows[1])
    assert labeled.labels.tolist() == [[0] * 6 + [1] * 6] * 2

    encoded.clear()
    labeled = WestClass.prepare_texts(WestClassSettings(**SMALL), texts_of(rows, weak=True, encoded=encoded)).labeled
    assert labeled is not None
    assert len(encoded) == 2 * 2 * 6
    assert not set(labeled.rows[0].tolist()) & set(labeled.rows[1].tolist())


def test_gold_labels_are_learnt_from_too_and_no_trial_sees_anothers() -> None:
    encoded: list[str] = []
    rows = torch.stack([torch.arange(0, 40), torch.arange(40, 80)])
    texts = texts_of(rows, weak=False, encoded=encoded)
    labeled = WestClass.prepare_texts(WestClassSettings(**SMALL, copies=2), texts).labeled
    assert labeled is not None
    for trial, own in enumerate(rows.tolist()):
        real = labeled.rows[trial, 12:].tolist()
        assert [encoded[example] for example in real] == [texts.texts[row] for row in own * 2]
        assert labeled.labels[trial, 12:].tolist() == [row % 2 for row in own * 2]


@pytest.mark.parametrize(
    ("seed_words", "message"),
    [
        ({"money": ["bank"]}, "has words of money; give words of each class: money, sport"),
        ({"money": ["bank"], "sport": ["curling"]}, "no text has any of curling, for class 'sport'"),
        ({"money": ["bank"], "sport": ["team", "bank"]}, "'bank' stands for two classes"),
        ("names", "no text has any of money, for class 'money'"),
    ],
)
def test_unusable_words_are_refused(seed_words: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        WestClass.prepare_texts(
            WestClassSettings(**SMALL, seed_words=seed_words), texts_of(torch.arange(80), weak=True, encoded=[])
        )
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("settings", [{"background": 1.0}, {"documents": 0}, {"seed_words": "guess"}, {"keyword": 3}])
def test_bad_settings_are_reported_on_one_line(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as caught:
        WestClassSettings.read(settings)
    assert "\n" not in str(caught.value)
    assert next(iter(settings)) in str(caught.value)


# Whole runs.


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    pytest.importorskip("transformers", reason="needs transformers: pip install 'drift-ssl[text]'")
    return small_encoder(tmp_path_factory.mktemp("encoder"))


def short_table(rows: int, **options: Any) -> Any:
    pandas = pytest.importorskip("pandas")
    table = small_table(rows, **options)
    return pandas.DataFrame({**table, "body": [" ".join(text.split()[:3]) for text in table["body"]]})


@pytest.mark.parametrize("kind", ["frozen", "finetuned", "textcnn"])
def test_runs_with_every_kind_of_model(kind: str, encoder: str) -> None:
    small_cnn = {"model": {"maps": 5, "windows": [2], "min_count": 1}} if kind == "textcnn" else {}
    run = small_fit(
        short_table(60, labeled=40),
        "textcnn" if kind == "textcnn" else encoder,
        finetune=kind == "finetuned",
        method="westclass",
        settings={"method": {**SMALL, "update_every": 2}, **small_cnn},
        dev=short_table(10, seed=1),
    )
    assert run.metrics["steps"] == (4 if kind == "finetuned" else 8)  # a head takes the place of the first phase
    assert run.metrics["label_budget"]["train"] == 40  # the words of the classes came from them
    assert any(note.startswith("words of each class") for note in run.notes)


def test_words_of_each_class_are_enough_to_begin_with(encoder: str) -> None:
    words = {"sport": ["team", "game"], "money": ["bank", "stock"]}
    run = small_fit(
        short_table(60).drop(columns="topic"),
        encoder,
        text="body",
        method="westclass",
        labels_per_class=2,  # although there are no labels
        settings={"method": {**SMALL, "seed_words": words}},
        test=short_table(10, seed=1),
    )
    assert run.classes == ["money", "sport"]
    assert run.metrics["label_budget"]["total"] == 0
    assert run.metrics["test"]["rows"] == 10


def test_weak_labels_are_no_gold_ones(encoder: str) -> None:
    table = short_table(60).rename(columns={"topic": "guess"})
    run = small_fit(table, encoder, text="body", weak="guess", method="westclass", settings={"method": SMALL})
    assert run.metrics["label_budget"]["train"] == 0
