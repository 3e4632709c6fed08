"""Settings have bounds: a number that no machine can serve is refused by name before anything is allocated."""

import pytest

from drift import DriftClassifier
from drift.errors import ConfigError, FileError
from drift.imports import load_object
from drift.models.factory import MadeModel
from drift.models.locating import encoder_path
from drift.settings import MOST_INTEGER
from drift.tasks.nodes.model import published_recipe
from drift.tasks.nodes.settings import NodeModelSettings
from drift.tasks.text.settings import TextModelSettings
from drift.training.settings import TrainingSettings
from drift.weak import RuleSet, label_table
from tests.runs.small_graphs import small_graph


@pytest.mark.parametrize(
    ("settings", "values"),
    [
        (TextModelSettings, {"maps": 10**9}),
        (TextModelSettings, {"windows": [10**9]}),
        (TextModelSettings, {"windows": [2] * 100}),
        (TextModelSettings, {"max_length": 10**9}),
        (NodeModelSettings, {"hidden": 10**9}),
        (TrainingSettings, {"threads": 100_000}),
        (TrainingSettings, {"seed": 2**70}),
        (TrainingSettings, {"steps": 2**70}),
        (TrainingSettings, {"predictions_at": [-1]}),
        (TrainingSettings, {"predictions_at": [601]}),
    ],
)
def test_a_setting_beyond_its_bound_is_named(settings: type, values: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=next(iter(values))):
        settings.read(values)  # type: ignore[attr-defined]


def test_integers_up_to_the_bound_are_settings() -> None:
    assert TrainingSettings(seed=MOST_INTEGER).seed == 2**62
    assert TrainingSettings(threads=1024, predictions_at=(0, 600)).predictions_at == (0, 600)


def test_sizes_of_grand_and_of_the_estimator_are_bounded() -> None:
    with pytest.raises(ConfigError, match="hidden"):
        published_recipe("cora", {"hidden": 10**9})
    with pytest.raises(ConfigError, match="positive widths up to 100,000"):
        DriftClassifier(hidden=(10**9,)).fit([[0.0], [1.0]], [0, 1])


def test_the_home_of_a_user_who_is_not_there_is_one_line() -> None:
    with pytest.raises(FileError, match=r"~nosuchuser/x: .*; write the folder out"):
        encoder_path("~nosuchuser/x")


def leaves(width: int, classes: int) -> None:
    raise SystemExit(7)


def test_code_of_a_user_that_exits_is_an_error_and_not_the_end(tmp_path: object) -> None:
    with pytest.raises(ConfigError, match=r"leaves failed .SystemExit: 7."):
        MadeModel(leaves, small_graph(), 3, name="leaves", seed=0)  # type: ignore[arg-type]
    file = tmp_path / "own.py"  # type: ignore[operator]
    file.write_text("raise SystemExit(7)")
    with pytest.raises(ConfigError, match="SystemExit: 7"):
        load_object(f"{file}:make", "model")


@pytest.mark.parametrize("n_jobs", [-5, -2, 0, 1.5])
def test_a_number_of_processes_is_positive_or_minus_one(n_jobs: object) -> None:
    rules = RuleSet([{"name": "a", "label": "x", "has": ["b"]}])
    with pytest.raises(ConfigError, match="is not a number of processes"):
        rules.votes(["b"], n_jobs=n_jobs)  # type: ignore[arg-type]


@pytest.mark.parametrize("column", ["", " ", "\t", "a\nb", None, 3])
def test_a_new_column_has_a_name(column: object) -> None:
    rules = RuleSet([{"name": "a", "label": "x", "has": ["b"]}])
    with pytest.raises(ConfigError, match="is not a name for a new column"):
        label_table({"text": ["b"]}, rules, column=column)  # type: ignore[arg-type]
