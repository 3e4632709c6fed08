"""The `drift` command as people run it: what it prints, where, and with which exit code."""

import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

import drift
from drift.cli.main import run
from drift.errors import ConfigError, DriftError, FileError, LabelError
from drift.paper.demos import digits, moons_demo
from drift.paper.demos.digits import OURS
from drift.paper.demos.moons import MoonsConfig

SCRIPT = Path(sys.executable).with_name("drift")


def drift_command(*arguments: str, folder: Path, columns: int = 200) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "COLUMNS": str(columns), "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"}
    return subprocess.run(
        [str(SCRIPT), *arguments], capture_output=True, text=True, encoding="utf-8", env=environment, cwd=folder
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["--help"], ["demo", "--version", "few or noisy labels"]), (["demo", "--help"], ["moons", "digits", "--out"])],
)
def test_help(tmp_path: Path, arguments: list[str], words: list[str]) -> None:
    done = drift_command(*arguments, folder=tmp_path)
    assert done.returncode == 0
    assert all(word in done.stdout for word in words)
    assert done.stderr == ""
    assert not list(tmp_path.iterdir())


def test_version(tmp_path: Path) -> None:
    done = drift_command("--version", folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"drift {drift.__version__}\n", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["demo", "nonsense"], "'nonsense' is not one of 'topics', 'moons', 'digits'"),
        (["frobnicate"], "No such command 'frobnicate'"),
        (["demo", "--frobnicate"], "No such option: --frobnicate"),
        (["demo", "moons", "extra"], "extra"),
    ],
)
def test_a_wrong_call_is_explained_on_one_line(tmp_path: Path, arguments: list[str], message: str) -> None:
    done = drift_command(*arguments, folder=tmp_path)
    assert done.returncode == 2
    assert sum(message in line for line in done.stderr.splitlines()) == 1
    assert "--help" in done.stderr
    assert "Traceback" not in done.stderr + done.stdout
    assert not list(tmp_path.iterdir())


def test_no_arguments_show_the_verbs(tmp_path: Path) -> None:
    done = drift_command(folder=tmp_path)
    assert "demo" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr + done.stdout


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both demonstrations in a moment: fewer and shorter trials, nothing else changed."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(moons_demo, "MoonsConfig", partial(MoonsConfig, initial_epochs=5, epochs=2))
    monkeypatch.setattr(moons_demo, "PAPER_TRIALS", 2)
    monkeypatch.setattr(moons_demo, "TRIALS", 3)
    monkeypatch.setattr(moons_demo, "EPOCHS_SHOWN", (1, 2))
    methods = {
        name: lambda seed, build=build: build(seed).set_params(initial_steps=20, steps=5, hidden=(16,))
        for name, build in OURS.items()
    }
    monkeypatch.setattr(digits, "OURS", methods)


def call(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """The entry point in this process, so that the demonstrations can be made tiny; returns the exit code."""
    monkeypatch.setattr(sys, "argv", ["drift", *arguments])
    with pytest.raises(SystemExit) as end:
        run()
    return end.value.code or 0


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("name", ["moons", "digits"])
def test_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], name: str) -> None:
    assert call(monkeypatch, "demo", name, "--out", str(tmp_path / "new" / "out")) == 0
    out, err = capfd.readouterr()
    assert (tmp_path / "new" / "out" / "report.html").is_file()
    for words in ("DRIFT", "detached", "Supervised", "p = ", "Try next"):
        assert words in out
    assert err == ""  # no bar on what is not a terminal


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("name", ["plain", "run[test]", "a" * 90])
def test_the_path_printed_is_the_path_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call(monkeypatch, "demo", "digits", "-o", name) == 0
    (line,) = [line for line in capfd.readouterr().out.splitlines() if line.startswith("Report:")]
    page = Path(line.removeprefix("Report:").strip())
    assert page == Path(name) / "report.html"
    assert page.is_file()


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("name", ["moons", "digits"])
def test_a_file_where_the_folder_should_go_is_one_line_and_no_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    (tmp_path / "taken").write_text("mine")
    monkeypatch.setenv("COLUMNS", "200")
    assert call(monkeypatch, "demo", name, "--out", str(tmp_path / "taken")) == 2
    assert "taken" in capfd.readouterr().err
    assert (tmp_path / "taken").read_text() == "mine"


@pytest.mark.parametrize(
    "error",
    [
        ConfigError("alpha=2 is outside [0, 1]"),
        LabelError("data.csv:3: label 'x' is not known"),
        FileError("run: missing"),
        DriftError("plain"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_a_user_did_wrong_is_one_line_and_exit_code_2(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], error: DriftError
) -> None:
    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr(digits, "demo", fails)
    assert call(monkeypatch, "demo", "digits") == 2
    assert capfd.readouterr() == ("", f"drift: {error}\n")


def test_a_fault_of_our_own_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise ZeroDivisionError("ours")

    monkeypatch.setattr(digits, "demo", fails)
    monkeypatch.setattr(sys, "argv", ["drift", "demo", "digits"])
    with pytest.raises(ZeroDivisionError, match="ours"):
        run()


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_the_shell_completes_verbs_and_completion_installs_itself(tmp_path: Path) -> None:
    asked = {"_DRIFT_COMPLETE": "complete_bash", "COMP_WORDS": "drift pre", "COMP_CWORD": "1"}
    done = subprocess.run([str(SCRIPT)], capture_output=True, text=True, env={**os.environ, **asked}, cwd=tmp_path)
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["predict"], "")
    home = {**os.environ, "HOME": str(tmp_path), "USERPROFILE": str(tmp_path)}
    called = f'"{SCRIPT}" --install-completion bash; exit $?'  # typer asks which shell has called it
    installed = subprocess.run(["bash", "-c", called], capture_output=True, text=True, env=home, cwd=tmp_path)
    assert (installed.returncode, installed.stderr) == (0, "")
    assert "_DRIFT_COMPLETE" in (tmp_path / ".bash_completions" / "drift.sh").read_text()
