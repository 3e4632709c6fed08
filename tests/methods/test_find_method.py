"""Methods by name, from a file, or as a class."""

from pathlib import Path
from typing import Any

import pytest
import torch

from drift.data.examples import Batch
from drift.errors import ConfigError
from drift.methods import METHODS, find_method, is_outside
from drift.methods.method import GRAPH, INDEPENDENT_ROWS, TEXTS, Method
from drift.methods.supervised import Supervised
from drift.models.mlp import mlp

MATCHING = ("fixmatch", "adamatch", "freematch", "softmatch")
FILE = '''
from drift.methods.method import Method
from drift.methods.supervised import Supervised, SupervisedSettings


class Halved(Supervised):
    """Half the supervised loss."""

    name = "halved"
    summary = "half the supervised loss"

    def loss(self, batch):
        return self.initial_loss(batch) / 2


class Nameless(Method):
    settings_type = SupervisedSettings
    relative_cost = 1

    def loss(self, batch):
        return self.initial_loss(batch)


class Lossless(Method):
    name, summary, settings_type, relative_cost = "lossless", "no loss", SupervisedSettings, 1


class Unset(Supervised):
    settings_type = dict


class Other:
    pass


def function():
    pass
'''


@pytest.fixture
def file(tmp_path: Path) -> str:
    (tmp_path / "mine.py").write_text(FILE)
    return f"{tmp_path}/mine.py"


@pytest.mark.parametrize("name", METHODS)
def test_a_method_is_found_by_name_and_as_a_class(name: str) -> None:
    assert find_method(name) is METHODS[name]
    assert find_method(METHODS[name]) is METHODS[name]
    assert not is_outside(name)


def test_a_class_in_a_file_trains(file: str) -> None:
    method = find_method(f"{file}:Halved")
    assert issubclass(method, Supervised)
    assert is_outside(f"{file}:Halved")
    batch = Batch((torch.randn(5, 4), torch.tensor([0, 1, 2, 0, 1])))
    halved = method(mlp(4, 3), method.settings_type())
    assert torch.equal(2 * halved.loss(batch), halved.initial_loss(batch))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Nameless", "lacks name, summary; define them in the class"),
        ("Lossless", "lacks loss; define them in the class"),
        ("Unset", ".settings_type is not a settings class; give a subclass of drift.settings.Settings"),
        ("Other", " is not a method; give a subclass of drift.methods.method.Method"),
        ("function", " is not a method; give a subclass of drift.methods.method.Method"),
        ("Halve", "has no class 'Halve'; did you mean 'Halved'?"),
    ],
)
def test_what_is_not_a_complete_method_is_refused_in_one_line(file: str, name: str, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        find_method(f"{file}:{name}")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("drfit", "there is no method 'drfit'; did you mean 'drift'?"),
        (int, "int is not a method; give a subclass"),
        (Method, "Method lacks name, summary, settings_type, relative_cost, loss"),
        (3, "3 is not a method; give a subclass"),
    ],
)
def test_an_unknown_name_and_other_objects_are_refused(method: Any, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        find_method(method)
    assert str(error.value).startswith(message)


def test_a_method_serves_data_that_offers_what_it_needs() -> None:
    assert METHODS["drift"].serves([])
    assert METHODS["uda"].serves([TEXTS, INDEPENDENT_ROWS])
    assert not METHODS["uda"].serves({INDEPENDENT_ROWS, GRAPH})
    assert not METHODS["cosine"].serves({GRAPH})
    needed = {name: set(method.needs) for name, method in METHODS.items() if method.needs}
    assert needed == {
        **{name: {TEXTS} for name in ("uda", "mixtext", "westclass", "vampire", *MATCHING)},
        **{name: {INDEPENDENT_ROWS} for name in ("uast", "cosine")},
        **{name: {GRAPH} for name in ("graphvat", "graphmix")},
    }
