"""Objects named as file.py:Name; failures are in tests/models/test_factory.py too, for functions."""

from pathlib import Path

import pytest

from drift.errors import ConfigError
from drift.imports import is_outside, load_object


@pytest.mark.parametrize("name", ["mine.py:Name", "package.module:Name", "C:/folder/mine.py:Name"])
def test_a_name_with_a_colon_is_outside(name: str) -> None:
    assert is_outside(name)


@pytest.mark.parametrize("name", ["drift", "mine.py", ""])
def test_a_name_without_a_colon_is_not(name: str) -> None:
    assert not is_outside(name)


def test_a_class_in_a_file_knows_its_module(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("from dataclasses import dataclass\n@dataclass\nclass Point:\n    x: int\n")
    point = load_object(f"{tmp_path}/mine.py:Point", "shape", noun="class")
    assert point.__module__ == "drift_shape_mine"
    assert point(3).x == 3


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (":Point", "shape ':Point': write file.py:class or package.module:class"),
        ("none.py:Point", "none.py is not there; give the Python file of the shape"),
        ("mine.py:Ponit", "mine.py has no class 'Ponit'; did you mean 'Point'?"),
        ("mine.py:Path", "mine.py has no class 'Path' (there are: Point)"),  # not one that it only imports
        ("broken.py:Point", "broken.py failed (KeyError: 1); import it with python to see where"),
    ],
)
def test_failures_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, message: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text("from pathlib import PurePath\nclass Point: ...\n")
    Path("broken.py").write_text("{}[1]\n")
    with pytest.raises(ConfigError) as error:
        load_object(name, "shape", noun="class")
    assert str(error.value) == message
