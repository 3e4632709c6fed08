"""A missing optional package is a one-line error that says what to install."""

import subprocess
import sys
from pathlib import Path

import pytest

from drift.errors import PackageError, needed_for

HINT = "pip install 'drift-ssl[text]'"
USES = {
    "datasets": "from drift.data.texts import store_texts; store_texts(['a'])",
    "pyarrow": "from drift.data.tables import read_chunks; next(read_chunks('t.parquet'))",
    "re2": "from drift.weak import RuleSet; RuleSet([{'name': 'a', 'label': 'x', 'matches': 'y'}])",
    "ahocorasick": "from drift.weak import RuleSet; RuleSet([{'name': 'a', 'label': 'x', 'has': ['y']}]).votes(['y'])",
    "transformers": "from drift.models.encoders import load_encoder; load_encoder('anything')",
}


@pytest.mark.parametrize("package", USES)
def test_a_missing_package_is_one_line_with_what_to_install(package: str, tmp_path: Path) -> None:
    (tmp_path / "t.parquet").touch()
    block = f"import sys; sys.modules[{package!r}] = None; sys.argv = ['drift']"
    # As `drift` runs a command: any error but a DriftError would print a traceback.
    code = (
        f"{block}\nimport drift.cli.main as main\ndef use(**options):\n    {USES[package]}\nmain.app = use\nmain.run()"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.splitlines()
    assert package in line
    assert HINT in line


def test_an_import_error_inside_a_package_is_reported_too() -> None:
    message = r"^voting: cannot import name 'nobody' from 'json' \(.*\); pip install it$"
    with pytest.raises(PackageError, match=message), needed_for("voting", "pip install it"):
        from json import nobody  # noqa: F401


def test_other_errors_pass() -> None:
    with pytest.raises(ZeroDivisionError), needed_for("voting"):
        raise ZeroDivisionError
