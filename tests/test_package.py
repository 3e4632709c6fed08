"""The wheel and the source distribution: they hold everything they need and nothing else, and work away from here."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from functools import partial
from pathlib import Path

import pytest

import drift
from drift.models.catalogue import DEFAULT, ENCODERS
from drift.models.locating import local_folder
from tests.runs.small import STEPS, small_encoder, small_table, write_csv

ROOT = Path(__file__).parents[1]
BUILD = "import sys; from setuptools import build_meta; {call}"
TOP = {
    "CHANGELOG.md",
    "CITATION.cff",
    "CONTRIBUTING.md",
    "LICENSE",
    "MANIFEST.in",
    "PKG-INFO",
    "README.md",
    "SECURITY.md",
}
TOP |= {"CONTRIBUTING.md", "pyproject.toml", "setup.cfg", "src"}  # setup.cfg is written by setuptools


def python(*arguments: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=folder,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", **environment},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and with the wheel that is built from the unpacked sdist."""
    folder = tmp_path_factory.mktemp("build")
    copy, out = folder / "copy", folder / "dist"
    out.mkdir()
    left_out = shutil.ignore_patterns(".git", ".venv", "__pycache__", "*.egg-info", "build", "dist", ".*_cache")
    shutil.copytree(ROOT, copy, ignore=left_out)
    python("-c", BUILD.format(call="build_meta.build_sdist(sys.argv[1])"), str(out), folder=copy)
    (sdist,) = out.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    (unpacked,) = (folder / "unpacked").iterdir()
    python("-c", BUILD.format(call="build_meta.build_wheel(sys.argv[1])"), str(out), folder=unpacked)
    return out


@pytest.fixture(scope="module")
def site(built: Path) -> Path:
    """The wheel, installed into a folder of its own."""
    folder = built.parent / "site"
    (wheel,) = built.glob("*.whl")
    pip = ("-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-compile", "--disable-pip-version-check")
    python(*pip, "--target", str(folder), str(wheel), folder=built)
    return folder


def test_the_wheel_holds_the_package_and_nothing_else(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    files = [path for path in (ROOT / "src").rglob("*") if path.is_file() and path.parent.name != "__pycache__"]
    assert held == {path.relative_to(ROOT / "src").as_posix() for path in files if ".egg-info" not in path.parent.name}


def test_the_source_distribution_holds_what_a_wheel_is_built_from(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = [name.split("/", 2)[1] for name in archive.getnames() if "/" in name]
    assert set(names) == TOP


def test_the_version_is_the_same_everywhere(built: Path) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert drift.__version__ == version
    assert f"version: {version}\n" in (ROOT / "CITATION.cff").read_text()
    assert re.search(rf"^## {re.escape(version)}\b", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert all(f"-{version}" in file.name for file in built.iterdir())


def away(site: Path, folder: Path) -> dict[str, str]:
    """Environment in which the installed package is imported, and not this checkout."""
    return {"PYTHONPATH": str(site), "DRIFT_CACHE": str(folder / "cache"), "PYTHONSAFEPATH": "1"}


def installed(site: Path, folder: Path, *arguments: str) -> str:
    """What the installed command prints in a folder."""
    return python("-c", "from drift.cli.main import run; run()", *arguments, folder=folder, **away(site, folder)).stdout


def test_the_installed_command_works_in_another_folder(site: Path, tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="needs transformers: pip install 'drift-ssl[text]'")
    pytest.importorskip("datasets", reason="needs datasets: pip install 'drift-ssl[text]'")
    command = partial(installed, site, tmp_path)
    where = python("-c", "import drift; print(drift.__file__)", folder=tmp_path, **away(site, tmp_path)).stdout
    assert Path(where.strip()).is_relative_to(site)
    assert command("--version") == f"drift {drift.__version__}\n"
    assert "AG News" in command("datasets")

    write_csv(tmp_path / "train.csv", small_table(24, labeled=8))
    write_csv(tmp_path / "test.csv", small_table(10, seed=2))
    settings = [part for name, value in STEPS.items() for part in ("--set", f"training.{name}={value}")]
    options = ["--model", small_encoder(tmp_path / "encoder"), "--seeds", "2", *settings]
    out = command("fit", "train.csv", "--test", "test.csv", "-o", "run", "--quiet", "--no-onnx", *options)
    assert "Result: accuracy " in out
    assert "<h2" in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "10 texts: " in command("predict", "run", "test.csv", "-o", "predicted.csv")
    assert (tmp_path / "predicted.csv").read_text().count("\n") == 11


@pytest.mark.slow
@pytest.mark.skipif(local_folder(ENCODERS[DEFAULT]) is None, reason="the default encoder is not here")
def test_the_installed_demo_works_in_another_folder(site: Path, tmp_path: Path) -> None:
    pytest.importorskip("datasets", reason="needs datasets: pip install 'drift-ssl[text]'")
    out = installed(site, tmp_path, "demo", "--quiet")
    assert all(source in out for source in ("class names only", "5 labels per class", "keyword rules", "every label"))
    predict = re.search(r"drift (predict .*?)  ", out)
    assert predict is not None
    installed(site, tmp_path, *predict[1].split())
    assert (tmp_path / "predicted.csv").is_file()
    assert (tmp_path / "drift-demo" / "report.html").is_file()
