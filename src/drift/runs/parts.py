"""A folder of tables, part by part: on this machine or on a cluster, and again where it stopped.

Each part is a task. Its output appears under its name when it is complete, and parts whose output is there are skipped.
What a part gets depends on the part alone: each is computed by one thread, in the same chunks, without the cache.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import joblib

import drift
from drift.data.files import atomic_file
from drift.data.reading import read_text
from drift.data.table_formats import format_of
from drift.errors import ConfigError, DataError, FileError
from drift.models.quantised import file_sum
from drift.runs.load import load
from drift.runs.predict import predict_file
from drift.runs.result import MODEL, Run
from drift.runs.workers import ONE_PER_PROCESS, cores, results, workers
from drift.tasks.tally import Tally
from drift.training.threads import threads
from drift.weak.table_labeling import label_table

MANIFEST = ".drift.json"
AGAIN = "finished parts are kept, and the same command continues"
Part = Callable[[Path, Path], Tally]


@dataclass
class Parts:
    """What was done with a folder. written: parts. before: parts that were there. tally: of the written ones."""

    written: int = 0
    before: int = 0
    tally: Tally = field(default_factory=Tally)


@dataclass(frozen=True)
class Predicting:
    """Predicts a part. Sent to workers by name: they open the run, which must be there under the same path."""

    run: Path
    options: Mapping[str, Any]

    def __call__(self, source: Path, target: Path) -> Tally:
        tally = Tally()
        with ONE_PER_PROCESS, threads(1):
            predict_file(_opened(self.run), source, target, tally=tally, **self.options)
        return tally


@dataclass(frozen=True)
class Labelling:
    """Labels a part by rules from a file."""

    rules: Path
    options: Mapping[str, Any]

    def __call__(self, source: Path, target: Path) -> Tally:
        summary = label_table(source, self.rules, target, **self.options)
        return Tally(rows=int(summary.coverage.of))


def predict_parts(
    run: str | Path,
    source: str | Path,
    out: str | Path,
    *,
    cluster: str | None = None,
    n_jobs: int | None = None,
    tick: Callable[[Parts], None] = lambda _: None,
    **options: Any,
) -> Parts:
    """Predict every table of a folder. The run, the folders and the encoder must be on every machine of the cluster.

    Parameters
    ----------
    run : path
        Folder of a finished run.
    source, out : path
        Folder with tables, and the folder to write, in which each has the same name. Finished ones are skipped.
    cluster : str, default=None
        Address of a Dask scheduler, "ray", or "ray://host:10001"; by default processes of this machine.
    n_jobs : int, default=None
        Number of parts at once on this machine; by default one per core.
    tick : callable, default=None
        Called with what is done so far after every part.
    **options
        text, abstain_below, encoding, spreadsheet and explain, as for `drift.predict`.

    Returns
    -------
    Parts
    """
    folder = Path(run).absolute()
    load(folder)  # what is wrong with it is said here, once
    work = Predicting(folder, options)
    return _each(work, source, out, {"run": _identity(folder), **options}, cluster, n_jobs, tick)


def label_parts(
    rules: str | Path,
    source: str | Path,
    out: str | Path,
    *,
    cluster: str | None = None,
    n_jobs: int | None = None,
    tick: Callable[[Parts], None] = lambda _: None,
    **options: Any,
) -> Parts:
    """Label every table of a folder by rules, as `predict_parts` predicts. options: as for `drift.label` of a table."""
    file = Path(rules).absolute()
    if not file.is_file():
        raise FileError(f"{rules} is not there; give a file with rules")
    about = {"rules": file_sum(file), **options}
    return _each(Labelling(file, options), source, out, about, cluster, n_jobs, tick)


def _each(
    work: Part,
    source: str | Path,
    out: str | Path,
    about: Mapping[str, Any],
    cluster: str | None,
    n_jobs: int | None,
    tick: Callable[[Parts], None],
) -> Parts:
    begin, target = Path(source).absolute(), Path(out).absolute()
    if n_jobs is not None and n_jobs < 1:
        raise ConfigError(f"--jobs {n_jobs} is not a number of processes; give 1 or more")
    if target == begin:
        raise ConfigError(f"{out} is the folder that is read; give another one to write")
    names = _names(begin)
    _check_manifest(target, about)
    done = Parts(before=sum((target / name).exists() for name in names))
    left = [name for name in names if not (target / name).exists()]
    tick(done)
    for tally in _results(work, begin, target, left, cluster, n_jobs or cores()):
        done.written += 1
        done.tally.merge(tally)
        tick(done)
    return done


def _results(
    work: Part, begin: Path, target: Path, names: list[str], cluster: str | None, count: int
) -> Iterator[Tally]:
    if not names:
        return
    calls = [joblib.delayed(_do)(work, begin / name, target / name) for name in names]
    with workers(cluster, min(count, len(names))):
        yield from results(calls, cluster, kept=AGAIN)


def _do(work: Part, source: Path, target: Path) -> Tally:
    """One task. A worker that was given up for lost may have written it already."""
    return Tally() if target.exists() else work(source, target)


@cache
def _opened(folder: Path) -> Run:
    run = load(folder)
    if (without := getattr(run.model, "without_cache", None)) is not None:
        run.model = without()
    return run


def _names(folder: Path) -> list[str]:
    """The tables of a folder, by name."""
    if not folder.is_dir():
        raise FileError(f"{folder} is not a folder; give a folder of tables")
    names = sorted(each.name for each in folder.iterdir() if each.is_file() and not each.name.startswith((".", "_")))
    if not names:
        raise DataError(f"{folder} has no tables in it; give a folder of Parquet files or other tables")
    for name in names:
        format_of(folder / name)  # an unknown one is refused before anything is computed
    return names


def _identity(folder: Path) -> str:
    """A hash of the model of a run."""
    model = folder / MODEL
    files = sorted(each for each in model.rglob("*") if each.suffix in (".safetensors", ".json") and each.is_file())
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.relative_to(model).as_posix()} {file_sum(file)}\n".encode())
    return digest.hexdigest()


def _check_manifest(target: Path, about: Mapping[str, Any]) -> None:
    """Refuse to go on in a folder that another run, or other options, began."""
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{target} cannot be written ({error.strerror}); give another folder") from error
    file, wanted = target / MANIFEST, {"drift": drift.__version__, **about}
    if file.exists():
        try:
            found = json.loads(read_text(file))
        except ValueError:
            found = None
        if found != json.loads(json.dumps(wanted)):
            raise FileError(f"{target} was begun with another run or other options; give another folder")
        return
    if any(not name.startswith(".") for name in os.listdir(target)):
        raise FileError(f"{target} holds other files; give a new folder")
    with atomic_file(file) as aside:
        aside.write_text(json.dumps(wanted, indent=1) + "\n", encoding="utf-8")
