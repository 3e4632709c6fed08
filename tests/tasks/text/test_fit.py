"""`drift.fit` on texts: a prior by class name, and runs that are refused before anything is computed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from drift.errors import ConfigError
from drift.runs.result import Run
from drift.tasks.text import task as text_task
from tests.runs.small import same_weights, small_encoder, small_fit, small_table

pytest.importorskip("transformers", reason="needs transformers: pip install 'drift-ssl[text]'")
pandas = pytest.importorskip("pandas")

Fit = Callable[..., Run]
KINDS = pytest.mark.parametrize("finetune", [False, True], ids=["frozen", "finetuned"])


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return small_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture
def fit(encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fit:
    """A small run with a prior."""
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path / "cache"))

    def small(prior: Any, **options: Any) -> Run:
        table = pandas.DataFrame(small_table(24, labeled=8))
        return small_fit(table, encoder, settings={"method": {"prior": prior}}, **options)

    return small


@KINDS
def test_a_prior_by_class_name_equals_the_list_in_class_order(fit: Fit, finetune: bool) -> None:
    listed = fit([0.8, 0.2], finetune=finetune)  # classes are sorted: money, sport
    assert same_weights(listed, fit({"money": 0.8, "sport": 0.2}, finetune=finetune))
    assert same_weights(listed, fit({"sport": 0.2, "money": 0.8}, finetune=finetune))
    assert not same_weights(listed, fit({"money": 0.2, "sport": 0.8}, finetune=finetune))


def test_the_configuration_keeps_the_names_of_a_prior(fit: Fit, tmp_path: Path) -> None:
    run = fit({"sport": 0.2, "money": 0.8}, out=tmp_path / "run")
    assert run.trained().config["method"]["prior"] == {"sport": 0.2, "money": 0.8}


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        ({"money": 1.0}, "method.prior has no share for class 'sport'; give a share for each of the 2 classes"),
        (
            {"money": 0.5, "sport": 0.4, "art": 0.1},
            "method.prior has a share for 'art', which is not a class; the classes are 'money', 'sport'",
        ),
        ({"money": 0.5, "Sport": 0.5}, "method.prior has a share for 'Sport', which is not a class"),
        ({}, "method.prior has no share for class 'money'"),
        ([0.5, 0.3, 0.2], "method.prior has 3 shares, the labels have 2 classes"),
        ({"money": "much", "sport": 0.5}, "or one number per class"),
        ("even", "or one number per class"),
    ],
)
def test_a_prior_that_does_not_fit_is_refused_before_anything_is_computed(
    fit: Fit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prior: Any, message: str
) -> None:
    def load(*_: Any, **__: Any) -> None:
        raise AssertionError("the encoder was loaded")

    monkeypatch.setattr("drift.models.embedding.late_encoder", load)
    with pytest.raises(ConfigError) as error:
        fit(prior, out=tmp_path / "run")
    assert message in str(error.value)
    assert len(str(error.value).splitlines()) == 1
    assert not (tmp_path / "run").exists()


def test_many_classes_are_trained_with_fewer_heads_unless_their_number_is_given(
    fit: Fit, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(fit("auto", seeds=None).metrics["seeds"]) == 10
    monkeypatch.setattr(text_task, "MANY_CLASSES", 1)
    assert fit("auto", seeds=None).metrics["seeds"] == [0, 1, 2, 3, 4]
    assert len(fit("auto", seeds=7).metrics["seeds"]) == 7
