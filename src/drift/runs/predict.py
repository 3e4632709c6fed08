"""Use a trained run on new data: predict, evaluate, and suggest rows to label."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from drift.errors import ConfigError
from drift.runs.load import load
from drift.runs.result import Run
from drift.tasks.parts import TableOptions
from drift.tasks.tally import Tally


def _no_tick() -> None:
    return None


def predict(
    run: Run | str | Path,
    source: Any,
    out: str | Path | None = None,
    *,
    text: str | None = None,
    edges: str | Path | None = None,
    abstain_below: float = 0.0,
    encoding: str = "utf-8",
    spreadsheet: bool = False,
    explain: bool = False,
    tick: Callable[[], None] = _no_tick,
) -> list[Any]:
    """Predict every row of a table, or every node of a graph.

    Parameters
    ----------
    run : Run or path
        A trained run, or its folder.
    source : path, DataFrame, Dataset or graph
        What to predict, in the forms that `fit` takes.
    out : path, default=None
        Also write a table: all columns of `source` in the same row order, with `predicted`, `confidence` and one
        `p_CLASS` per class; for sentences with `predicted` tags and `entities`; for a graph, one row per node.
    text : str, default=None
        Column with the texts or words; by default the one that was trained on.
    edges : path, default=None
        Table of edges, for a table of nodes; by default the one of the run.
    abstain_below : float, default=0.0
        Rows with lower confidence get no label (None); entities with lower confidence are left out.
    encoding : str, default="utf-8"
        Encoding of text files.
    spreadsheet : bool, default=False
        Write CSV in which no text can become a formula in a spreadsheet program; it is read back unchanged.
    explain : bool, default=False
        Also write why: `why_words` has the words that matter most, `why_rows` the nearest labelled rows. Takes one
        prediction per word.
    tick : callable, default=None
        Called after every chunk of the table.

    Returns
    -------
    list
        One label per row or node; for sentences one list of tags each.
    """
    options = TableOptions(
        column=text,
        edges=edges,
        abstain_below=abstain_below,
        encoding=encoding,
        spreadsheet=spreadsheet,
        explain=explain,
    )
    labels: list[Any] = []
    for chunk in _chunks(run, source, out, options):
        labels += chunk
        tick()
    return labels


def predict_file(
    run: Run | str | Path,
    source: Any,
    out: str | Path,
    *,
    text: str | None = None,
    edges: str | Path | None = None,
    abstain_below: float = 0.0,
    encoding: str = "utf-8",
    spreadsheet: bool = False,
    tick: Callable[[], None] = _no_tick,
    tally: Tally | None = None,
    explain: bool = False,
) -> int:
    """As `predict`, but keep nothing in memory: a table of any size takes constant memory. Returns the rows written.

    tally: counts what is predicted. explain: see `predict`.
    """
    options = TableOptions(
        column=text,
        edges=edges,
        abstain_below=abstain_below,
        encoding=encoding,
        spreadsheet=spreadsheet,
        tally=tally,
        explain=explain,
    )
    rows = 0
    for chunk in _chunks(run, source, out, options):
        rows += len(chunk)
        tick()
    return rows


def evaluate(
    run: Run | str | Path,
    source: Any,
    *,
    text: str | None = None,
    label: str | None = None,
    edges: str | Path | None = None,
    abstain_below: float = 0.0,
    encoding: str = "utf-8",
    tick: Callable[[], None] = _no_tick,
) -> dict[str, Any]:
    """Score a run on the labelled rows of a table, or the labelled nodes of a graph.

    Parameters
    ----------
    run : Run or path
        A trained run, or its folder.
    source : path, DataFrame, Dataset or graph
        Labelled data; rows with a blank label are left out.
    text, label : str, default=None
        Columns; by default those that were trained on, or obvious ones.
    edges : path, default=None
        Table of edges, for a table of nodes; by default the one of the run.
    abstain_below : float, default=0.0
        Also score only the rows with at least this confidence.
    encoding : str, default="utf-8"
        Encoding of text files.
    tick : callable, default=None
        Called after every chunk of the table.

    Returns
    -------
    dict
        `rows`, `labeled_rows`, and scores between 0 and 1: accuracy, its 95 % `interval`, macro_f1, calibration_error,
        and `by_class` f1, precision and recall; for sentences these three of entities, also `by_type`. `notes`: a
        warning about labels that training lacked, which count as errors.
    """
    options = TableOptions(text, label, edges, abstain_below, encoding, tick)
    opened = _opened(run, options)
    return opened.task.evaluate(opened.trained(), source, options)


def suggest(
    run: Run | str | Path,
    source: Any,
    n: int = 50,
    *,
    out: str | Path | None = None,
    text: str | None = None,
    label: str | None = None,
    edges: str | Path | None = None,
    encoding: str = "utf-8",
    spreadsheet: bool = False,
    seed: int = 0,
    tick: Callable[[], None] = _no_tick,
) -> list[Any]:
    """The rows of a table that are most worth labelling, the most doubtful first.

    Rows are doubtful if the two most likely classes are close, on average over all heads of the run. The chosen rows
    come from everywhere in the data: rows are clustered, doubtful ones counting more, and each cluster gives one. Rows
    with a label, rows without text, and near-copies of a chosen row are left out, so that there may be fewer than `n`.

    Parameters
    ----------
    run : Run or path
        A trained run, or its folder.
    source : path, DataFrame, Dataset or graph
        Rows, sentences or nodes to choose from.
    n : int, default=50
        Maximum number of rows.
    out : path, default=None
        Also write the chosen rows to this table, with an empty column for labels. `drift.fit(labels=...)` reads it when
        it is filled in.
    text, label : str, default=None
        Columns; by default those that were trained on, or obvious ones. A label of "" means that there is none.
    edges : path, default=None
        Table of edges, for a table of nodes; by default the one of the run.
    encoding : str, default="utf-8"
        Encoding of text files.
    spreadsheet : bool, default=False
        Write CSV in which no text can become a formula in a spreadsheet program; it is read back unchanged.
    seed : int, default=0
        Seed of the sample of very long tables, and of the clusters.
    tick : callable, default=None
        Called after every chunk of the table.

    Returns
    -------
    list of Suggestion
        With row (counted from 1), text, columns, predicted, confidence, margin, why and disagreement.
    """
    if n < 1:
        raise ConfigError(f"{n} rows cannot be suggested; ask for 1 or more")
    options = TableOptions(
        column=text, label=label, edges=edges, encoding=encoding, tick=tick, seed=seed, spreadsheet=spreadsheet
    )
    opened = _opened(run, options)
    return opened.task.suggest(opened.trained(), source, n, out, options)


def _opened(run: Run | str | Path, options: TableOptions) -> Run:
    """The run; ConfigError if an option is not for its task."""
    opened = run if isinstance(run, Run) else load(run)
    if options.edges is not None and "edges" not in opened.task.data_settings.model_fields:
        raise ConfigError(
            f"edges={options.edges} is of graphs, and the run is of --task {opened.task.name}; leave it out"
        )
    if options.explain and not opened.task.explains:
        opened.task.explain(opened.trained(), [], 0, 0)  # says why it cannot
    return opened


def _chunks(run: Run | str | Path, source: Any, out: str | Path | None, options: TableOptions) -> Any:
    opened = _opened(run, options)
    return opened.task.predict_chunks(opened.trained(), source, out, options)
