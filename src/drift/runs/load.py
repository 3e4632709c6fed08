"""Open the trained model of a run's folder."""

from pathlib import Path

from drift.errors import ConfigError
from drift.runs.record import read_record
from drift.runs.result import MODEL, Run
from drift.tasks import Task
from drift.training.run_folder import RunFolder


def load(run: str | Path, *, model: str | None = None, task: str | type[Task] | None = None) -> Run:
    """Open the trained model of a run.

    Parameters
    ----------
    run : str or Path
        Folder of a finished run.
    model : str, default=None
        The function that builds the model, named as for `fit`, if the run was trained with a model of your own. Code is
        run only if it is named here.
    task : str or class, default=None
        The task of the run, if it is not a built-in one: its class, or `file.py:Class`.
    """
    folder = RunFolder(run)
    task_type, record = read_record(folder, task)
    opened = task_type.load_model(folder.path / MODEL)
    if model is not None and not task_type.kinds[record.kind].from_user_code:
        raise ConfigError(f"model={model}: the model of {run} was not built by a function; leave it out")
    return Run(opened if model is None else opened.made_by(model), record, task_type, folder.path)
