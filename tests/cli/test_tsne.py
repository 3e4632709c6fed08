"""`drift tsne`: what runs on one graph have learned, side by side, and what cannot be."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from drift.errors import ConfigError
from drift.runs.tsne import tsne
from tests.cli.conftest import Call
from tests.runs.small_graphs import small_graph, small_node_fit, write_npz, write_tables
from tests.runs.test_old_folders import OLD

GRAPH = small_graph()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a graph as a file and as tables, and runs on it."""
    base = tmp_path_factory.mktemp("made")
    write_npz(base / "graph.npz", GRAPH)
    write_npz(base / "other.npz", small_graph(24))
    write_tables(base, GRAPH)
    for name, graph, options in (
        ("drift", "graph.npz", {}),
        ("self", "graph.npz", {"method": "self-training", "labels_per_class": 2}),
        ("grand", "graph.npz", {"model": "grand"}),
        ("other", "other.npz", {}),
        ("table", "nodes.csv", {"edges": base / "edges.csv", "settings": {"data": {"dev_nodes": 6, "test_nodes": 6}}}),
    ):
        small_node_fit(base / graph, out=base / name, **options)
    shutil.copytree(base / "drift", base / "moved")
    return base


def titles_in(folder: Path, *wanted: str) -> bool:
    written = (folder / "tsne.svg").read_text(encoding="utf-8")
    return all(f">{title}</text>" in written for title in wanted)


def test_a_panel_a_run_named_by_method_and_graph(made: Path, tmp_path: Path, call: Call) -> None:
    runs = [str(made / name) for name in ("self", "drift", "grand")]
    code, out, err = call("tsne", *runs[:2], "-o", str(tmp_path / "new" / "one"))
    assert (code, out, err) == (0, f"Written: {tmp_path / 'new' / 'one' / 'tsne.png'} and tsne.svg\n", "")
    assert sorted(path.name for path in (tmp_path / "new" / "one").iterdir()) == ["tsne.png", "tsne.svg"]
    assert titles_in(tmp_path / "new" / "one", "self-training on graph.npz", "drift on graph.npz", *GRAPH.classes)
    twin = tsne(runs[:2], tmp_path / "twin")
    assert twin.read_bytes() == (tmp_path / "new" / "one" / "tsne.png").read_bytes()
    ticks: list[None] = []
    tsne([runs[2]], tmp_path / "grand", tick=lambda: ticks.append(None))
    assert len(ticks) == 1


def test_titles_as_they_are_said(made: Path, tmp_path: Path, call: Call) -> None:
    runs = [str(made / name) for name in ("self", "drift")]
    assert call("tsne", *runs, "--titles", r"Self-training, $\frac{", "-o", str(tmp_path))[0] == 0
    assert titles_in(tmp_path, "Self-training", r"$\frac{")


def test_runs_of_one_name_are_told_apart_by_their_folder(made: Path, tmp_path: Path) -> None:
    tsne([made / "drift", made / "moved"], tmp_path)
    assert titles_in(tmp_path, *(f"drift on graph.npz ({made / name})" for name in ("drift", "moved")))


def test_mistakes_are_one_line_and_nothing_is_written(made: Path, tmp_path: Path, call: Call) -> None:
    drift, other, table = (str(made / name) for name in ("drift", "other", "table"))
    for arguments, message in (
        ([drift, other], f"{other} is on other nodes ({other}.npz, 24 nodes) than {drift}"),
        ([drift, table], "nodes.csv, 30 nodes) than"),  # named ones: they may be in another order
        ([drift, drift], "two panels would have the same title"),
        ([drift, "--titles", "one, two"], "2 titles for 1 runs; give one per run"),
        ([drift, str(made / "none")], "none is not there; give the folder of a run"),
    ):
        code, out, err = call("tsne", *arguments, "-o", str(tmp_path / "out"))
        assert (code, out) == (2, "")
        assert message in err
        assert err.startswith("drift: ")
        assert len(err.splitlines()) == 1
    assert not (tmp_path / "out").exists()
    with pytest.raises(ConfigError, match="no run was given"):
        tsne([], tmp_path)


def test_one_run_may_still_be_given_without_a_list(made: Path, tmp_path: Path) -> None:
    with pytest.warns(FutureWarning, match=r"tsne takes a list of runs; give tsne\(\[run\], out\)"):
        one = tsne(str(made / "drift"), tmp_path / "one")  # type: ignore[arg-type]
    assert one.read_bytes() == tsne([made / "drift"], tmp_path / "two").read_bytes()


def test_a_graph_that_is_gone_or_has_changed(made: Path, tmp_path: Path, call: Call) -> None:
    shutil.copytree(made / "drift", tmp_path / "run")
    config = tmp_path / "run" / "config.yaml"
    config.write_text(config.read_text().replace(json.dumps(str(made))[1:-1], str(tmp_path)))
    assert "graph.npz is not there" in call("tsne", str(tmp_path / "run"), "-o", str(tmp_path / "out"))[2]
    x, edges = np.ones((30, 7), dtype=np.float32), GRAPH.edges
    np.savez(tmp_path / "graph.npz", x=x, edge_index=edges, y=GRAPH.labels)
    code, _, err = call("tsne", str(tmp_path / "run"), "-o", str(tmp_path / "out"))
    assert (code, len(err.splitlines())) == (2, 1)
    assert "graph.npz has 7 features per node, the model was trained on 6" in err


@pytest.mark.parametrize("task", ["text", "tokens"])
def test_texts_and_words_are_no_nodes(tmp_path: Path, call: Call, task: str) -> None:
    code, out, err = call("tsne", str(OLD / task), "-o", str(tmp_path / "out"))
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert f"runs of --task {task} have no representations to draw; give runs on a graph" in err
    assert not (tmp_path / "out").exists()


def test_a_run_without_its_configuration_is_one_line(made: Path, tmp_path: Path, call: Call) -> None:
    run = shutil.copytree(made / "drift", tmp_path / "run")
    (run / "config.yaml").write_text("task: nodes\n")
    code, out, err = call("tsne", str(run), "-o", str(tmp_path / "figures"))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "config.yaml is damaged: it has no data" in err
    (run / "config.yaml").unlink()
    code, out, err = call("tsne", str(run), "-o", str(tmp_path / "figures"))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "the run has no config.yaml, which names its graph" in err
