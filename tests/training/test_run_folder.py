"""A run's folder says what was done, and is never taken for another's."""

import json
import os
import subprocess
from importlib import metadata
from pathlib import Path

import pytest
import torch

from drift.errors import FileError, StateError
from drift.training.run_folder import CONFIG, ENVIRONMENT, RunFolder, environment
from drift.training.settings import TrainingSettings
from tests.data.test_reading import BOMB

SETTINGS = {"training": TrainingSettings(predictions_at=(0, 100)).model_dump(), "name": "Größe", "rate": 1e-5}


def begun(path: Path, config: dict = SETTINGS) -> RunFolder:
    folder = RunFolder(path)
    folder.begin(config)
    return folder


def test_the_config_comes_back_as_it_was_given(tmp_path: Path) -> None:
    found = begun(tmp_path / "deep" / "run").config()
    assert found["name"] == "Größe"
    assert found["rate"] == 1e-5
    assert TrainingSettings.read(found["training"]) == TrainingSettings(predictions_at=(0, 100))


def test_the_environment_says_where_a_result_came_from(tmp_path: Path) -> None:
    found = json.loads((begun(tmp_path / "run").path / ENVIRONMENT).read_text())
    assert found["packages"]["torch"] == torch.__version__ == metadata.version("torch")
    assert found["packages"]["drift-ssl"] == metadata.version("drift-ssl")
    assert found["command"]
    assert found["python"].startswith("3.")
    assert found["platform"]


def test_the_commit_is_that_of_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert environment()["git_commit"] is None
    author = {f"GIT_{who}_{what}": "someone" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}

    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments], env={**os.environ, **author}, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    git("init")
    Path("file").write_text("one")
    git("add", "file")
    git("commit", "-m", "one")
    assert environment()["git_commit"] == git("rev-parse", "HEAD")
    Path("file").write_text("two")
    assert environment()["git_commit"] == git("rev-parse", "HEAD") + "+changes"


def test_an_empty_folder_will_do(tmp_path: Path) -> None:
    assert begun(tmp_path).config()["name"] == "Größe"


@pytest.mark.parametrize("there", ["a run", "something else", "a file"])
def test_what_is_there_already_is_not_written_over(tmp_path: Path, there: str) -> None:
    path = tmp_path / "run"
    if there == "a run":
        begun(path)
    elif there == "a file":
        path.write_text("mine")
    else:
        path.mkdir()
        (path / "thesis.txt").write_text("mine")
    hint = "use --resume to continue it" if there == "a run" else "give another folder"
    with pytest.raises(FileError, match=rf"run is not empty; {hint}"):
        begun(path, {"other": 1})
    if there == "something else":
        assert os.listdir(path) == ["thesis.txt"]


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(FileError, match=r"cannot be written .*; give another folder"):
        begun(tmp_path / "file" / "run")


def test_the_same_settings_resume(tmp_path: Path) -> None:
    folder = begun(tmp_path / "run")
    before = (folder.path / CONFIG).read_bytes()
    folder.begin(SETTINGS, resume=True)
    assert (folder.path / CONFIG).read_bytes() == before


def test_other_settings_are_refused_with_the_difference(tmp_path: Path) -> None:
    folder = begun(tmp_path / "run")
    changed = {**SETTINGS, "training": {**SETTINGS["training"], "learning_rate": 0.5}}
    with pytest.raises(StateError, match=r"training\.learning_rate: 1e-05 there, 0\.5 here\)") as told:
        folder.begin(changed, resume=True)
    assert "\n" not in str(told.value)


def test_there_must_be_something_to_resume(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="holds no run to resume; leave out --resume"):
        RunFolder(tmp_path).begin(SETTINGS, resume=True)


def test_a_fingerprint_tells_runs_apart(tmp_path: Path) -> None:
    one, same, other = begun(tmp_path / "1"), begun(tmp_path / "2"), begun(tmp_path / "3", {"rate": 1e-4})
    assert one.fingerprint() == same.fingerprint() != other.fingerprint()


@pytest.mark.parametrize("content", [None, b"", b"17", b"a: [\n", b"\xff\xfe\xfa"])
def test_a_config_that_cannot_be_read_is_told_in_one_line(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / CONFIG).write_bytes(content)
    with pytest.raises(FileError, match="not a run's folder") as told:
        RunFolder(tmp_path).config()
    assert "\n" not in str(told.value)


def test_json_comes_back_and_a_missing_file_is_told(tmp_path: Path) -> None:
    folder = begun(tmp_path / "run")
    folder.write_json("metrics.json", {"accuracy": 0.1 + 0.2})
    assert folder.read_json("metrics.json") == {"accuracy": 0.1 + 0.2}
    with pytest.raises(FileError, match=r"test\.json cannot be read .* a finished run"):
        folder.read_json("test.json")


def test_a_file_name_that_is_no_unicode_can_be_stored_and_resumed(tmp_path: Path) -> None:
    named = {**SETTINGS, "data": {"train": "caf\udce9.csv"}}
    folder = RunFolder(tmp_path)
    folder.begin(named)
    assert folder.config()["data"] == {"train": "caf?.csv"}
    folder.begin(named, resume=True)


def test_what_a_killed_start_leaves_does_not_stop_the_next_one(tmp_path: Path) -> None:
    """Temporary files are not a run, and a folder with a configuration alone can be resumed."""
    folder = RunFolder(tmp_path)
    (tmp_path / f".config.yaml-{'0' * 32}").write_text("half")
    folder.check(SETTINGS)
    folder.begin(SETTINGS)
    (tmp_path / "environment.json").unlink()
    folder.begin(SETTINGS, resume=True)
    folder.check_data("any")
    assert "python" in folder.read_json("environment.json")
    (tmp_path / "checkpoints").mkdir()
    with pytest.raises(FileError):
        folder.check_data("any")


def test_a_configuration_with_aliases_of_aliases_is_refused(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.begin(SETTINGS)
    (tmp_path / "config.yaml").write_text(BOMB)
    with pytest.raises(FileError, match="more than 1,000,000 values"):
        folder.config()
