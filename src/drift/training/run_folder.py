"""The folder of a run: everything needed to know what was done, to resume it, and to use the result."""

import hashlib
import json
import platform
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import yaml

from drift.data.files import atomic_file, check_inside, is_temporary
from drift.data.reading import MOST_YAML, parse_yaml, read_text
from drift.errors import FileError, StateError
from drift.training.checkpoints import CHECKPOINTS

CONFIG, DATA, ENVIRONMENT, METRICS, TRACE, DIVERGED = (
    "config.yaml",
    "data.json",
    "environment.json",
    "metrics.json",
    "trace.jsonl",
    "diverged.json",
)
MOST_LISTED = 3  # settings that differ between two runs, in a message
PACKAGES = (
    "drift-ssl",
    "torch",
    "numpy",
    "scipy",
    "scikit-learn",
    "accelerate",
    "transformers",
    "tokenizers",
    "datasets",
    "safetensors",
)


Normalize = Callable[[dict[str, Any]], Mapping[str, Any]]


class RunFolder:
    """The files of one run. `checkpoints/`, `model/`, `predictions/` and the files of trackers are in it too."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def check(self, config: Mapping[str, Any], *, resume: bool = False, normalize: Normalize = dict) -> None:
        """Refuse a folder that is not empty, or that is not the run to resume; writes nothing.

        normalize: brings a stored configuration into today's form, so that runs of older versions can be resumed.
        """
        there = self.path / CONFIG
        if resume:
            if not there.exists():
                raise FileError(f"{self.path} holds no run to resume; leave out --resume to start one")
            if _plain(normalize(self.config())) != _plain(config):
                raise StateError(
                    f"{self.path} is a run with other settings ({self._difference(config, normalize)});"
                    " resume with the same ones, or use a new folder"
                )
        elif self.path.exists() and (
            not self.path.is_dir() or any(not is_temporary(file.name) for file in self.path.iterdir())
        ):
            hint = "use --resume to continue it, or another folder" if there.exists() else "give another folder"
            raise FileError(f"{self.path} is not empty; {hint}")

    def check_data(self, fingerprint: str) -> None:
        """Refuse to resume with tables that have changed since the run began."""
        if not (self.path / DATA).exists() and not (self.path / CHECKPOINTS).exists():
            return  # the run was killed while it began
        if self.read_json(DATA) != {"fingerprint": fingerprint}:
            raise StateError(
                f"{self.path}: the tables are not what they were when the run began;"
                " put them back as they were, or use a new folder"
            )

    def begin(self, config: Mapping[str, Any], *, resume: bool = False, normalize: Normalize = dict) -> None:
        """Write the configuration and the environment, after a `check`."""
        self.check(config, resume=resume, normalize=normalize)
        if resume and (self.path / ENVIRONMENT).exists():
            return
        try:
            if resume:  # it was killed while it began
                self.write_json(ENVIRONMENT, environment())
                return
            self.path.mkdir(parents=True, exist_ok=True)
            self.write(CONFIG, yaml.safe_dump(_plain(config), sort_keys=False, allow_unicode=True))
            self.write_json(ENVIRONMENT, environment())
        except FileError:
            raise
        except OSError as error:
            raise FileError(f"{self.path} cannot be written ({error.strerror}); give another folder") from error

    def config(self) -> dict[str, Any]:
        """The resolved configuration, as `begin` wrote it."""
        self._check_there()
        try:
            content = parse_yaml(read_text(self.path / CONFIG, most=MOST_YAML), CONFIG)
            if not isinstance(content, dict):
                raise ValueError(f"it holds {type(content).__name__}, not settings by name")
            return content
        except (OSError, ValueError, TypeError) as error:
            reason = " ".join(str(error).split())
            raise FileError(f"{self.path} is not a run's folder: {CONFIG} cannot be read ({reason})") from error

    def fingerprint(self) -> str:
        """A hash of the configuration: checkpoints of other runs have another."""
        return hashlib.sha256((self.path / CONFIG).read_bytes()).hexdigest()

    def write(self, name: str, text: str) -> Path:
        with atomic_file(self.path / name) as aside:
            aside.write_text(text, encoding="utf-8", errors="replace")  # a path may not be valid Unicode
        return self.path / name

    def write_json(self, name: str, content: Any) -> Path:
        return self.write(name, json.dumps(content, indent=2, ensure_ascii=False) + "\n")

    def read_json(self, name: str) -> Any:
        self._check_there()
        try:
            return json.loads(read_text(self.path / name))
        except FileError as error:
            raise FileError(f"{error}; is {self.path} a finished run?") from error
        except (ValueError, RecursionError) as error:
            raise FileError(f"{self.path / name} cannot be read ({error}); is {self.path} a finished run?") from error

    def _check_there(self) -> None:
        if not self.path.is_dir():
            raise FileError(f"{self.path} is not there; give the folder of a run")
        check_inside(self.path)

    def _difference(self, config: Mapping[str, Any], normalize: Normalize) -> str:
        before, now = flat(_plain(normalize(self.config()))), flat(_plain(config))
        names = differing(before, now)[:MOST_LISTED]
        return ", ".join(f"{name}: {before.get(name)!r} there, {now.get(name)!r} here" for name in names)


def environment() -> dict[str, Any]:
    """Versions, platform, command and the commit of the working folder."""
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return {
        "command": ["drift", *sys.argv[1:]] if Path(*sys.argv[:1]).parts[-2:] == ("drift", "__main__.py") else sys.argv,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": versions,
        "git_commit": _commit(),
    }


def _commit() -> str | None:
    """The commit checked out in the working folder, with "+changes" if files differ from it; None outside of git."""

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=True, timeout=10)
        return done.stdout.strip()

    try:
        return git("rev-parse", "HEAD") + ("+changes" if git("status", "--porcelain", "-uno") else "")
    except (OSError, subprocess.SubprocessError):
        return None


def _plain(config: Mapping[str, Any]) -> dict[str, Any]:
    """As YAML reads it back: tuples are lists. A name of a file that is no valid Unicode has question marks."""
    return dict(json.loads(json.dumps(config, ensure_ascii=False).encode("utf-8", "replace")))


def differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Names of the settings that differ between two configurations, both `flat`."""
    return [name for name in {**one, **other} if one.get(name) != other.get(name)]


def flat(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Settings by their full names, such as "training.steps"."""
    settings: dict[str, Any] = {}
    for name, value in config.items():
        settings |= flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return settings
