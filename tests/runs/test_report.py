"""The page of a run says what was measured, first and in full, and nothing that was not."""

import base64
import html
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from sklearn.metrics import precision_recall_fscore_support
from typer.testing import CliRunner

from drift.cli.report import report
from drift.data.graphs import Graph
from drift.errors import FileError
from drift.runs.report import write_report
from drift.tasks import TASKS, config_type
from drift.tasks.nodes.links import NEIGHBOURHOODS, judge_links
from drift.tasks.scoring import wilson_interval
from drift.training.run_folder import RunFolder
from tests.report.test_page import HOSTILE, Reader
from tests.runs.small_graphs import small_graph

SCORES = [{"accuracy": 0.5, "macro_f1": 0.4}, {"accuracy": 0.7, "macro_f1": 0.6}]
BINS = [{"rows": 5, "confidence": 0.6, "accuracy": 0.4}]
TRACE = [
    {"phase": "start", "step": 5, "loss": 1.0},
    {"phase": "game", "step": 0, "dev": {"accuracy": 0.5, "macro_f1": 0.4}},
    {
        "phase": "game",
        "step": 5,
        "loss": 0.5,
        "leader_norm": 0.25,
        "interaction_norm": 0.125,
        "angle": 90.0,
        "mean_omega": 0.75,
        "flips": 1,
        "probe_size": 64,
        "pseudo_label_accuracy": 0.625,
    },
]
CHANGES = {
    **{"watched": 256, "changed": 9, "known": 6, "right_before": 1, "right_after": 4},
    "examples": [{"text": "fine film", "before": "bad", "after": "good", "label": None}],
}


def metrics(*measured: str, classes: tuple[str, str] = ("bad", "good"), **more: Any) -> dict[str, Any]:
    """What `metrics.json` holds where dev, test, both or nothing was measured."""
    found: dict[str, Any] = {
        "task": "text",
        "unit": "texts",
        "measures": {"accuracy": "accuracy", "macro_f1": "macro-F1"},
        "method": "drift",
        "model": "default",
        "kind": "frozen",
        "columns": {"text": "text", "label": "label"},
        "classes": list(classes),
        "weak": False,
        "label_budget": {"train": 8, "dev": 5 * ("dev" in measured), "total": 8 + 5 * ("dev" in measured)},
        "training_rows": 1234,
        "seeds": [0, 1],
        "kept_seed": 1,
        "kept_because": "best on dev",
        "steps": 10,
        "seconds": 1.5,
        "start_on_dev": SCORES if "dev" in measured else None,
        "best_steps": [5, 5] if "dev" in measured else None,
        "notes": [],
    }
    found |= {name: {"rows": 10, "scores": SCORES} for name in measured}
    if measured:
        found |= {
            "confusion": [[3, 1], [2, 4]],
            "mistakes": [{"text": "a wrong one", "label": classes[0], "predicted": classes[1], "confidence": 0.9}],
            "calibration": {
                "temperature": 2.0,
                "error_before": 0.25,
                "error_after": 0.125,
                "bins_before": BINS,
                "bins_after": BINS,
            },
        }
    return found | more


def node_metrics(classes: Sequence[str] = ("art", "law", "zoo"), **more: Any) -> dict[str, Any]:
    """What a run on a graph of three classes has measured."""
    graph = {"name": "small", "nodes": 30, "edges": 60, "features": 6, "labeled": 30}
    links = {
        "counts": [[10, 3, 0], [3, 20, 1], [0, 1, 2]],
        "neighbourhoods": [{"count": right, "of": of} for right, of in ((4, 4), (3, 4), (1, 2), (0, 2), (0, 0))],
        "wrong_as_neighbours": {"count": 3, "of": 4},
    }
    nodes = {"task": "nodes", "unit": "nodes", "kind": "gcn", "model": "gcn", "classes": list(classes)}
    found = metrics("test", **nodes, graph=graph, links=links, confusion=[[3, 1, 0], [0, 4, 0], [0, 2, 2]])
    del found["mistakes"], found["columns"]
    return found | more


def write_looks(run: Path, looks: dict[int, Any], gold: Any) -> None:
    """Predicted classes at some steps, as a run writes them; gold: None if nothing is known."""
    known = {} if gold is None else {"gold": np.array(gold)}
    (run / "predictions").mkdir()
    for step, predicted in looks.items():
        probabilities = np.eye(2, dtype=np.float32)[np.array(predicted)]
        rows = np.arange(probabilities.shape[-2])
        np.savez(run / "predictions" / f"step-{step:06d}.npz", rows=rows, probabilities=probabilities, **known)


def page(folder: Path, found: dict[str, Any], trace: Sequence[dict[str, Any]] = ()) -> Reader:
    if not folder.exists():
        run = RunFolder(folder)
        config = config_type(TASKS[found["task"]])
        run.begin(config.read({"data": {"train": "some/train.csv"}}).model_dump(mode="json"))
        run.write("trace.jsonl", "".join(json.dumps(entry) + "\n" for entry in trace))
        run.write_json("metrics.json", found)
    return Reader(write_report(folder).read_text(encoding="utf-8"))


def test_the_score_comes_first_with_rows_spread_budget_and_the_head_that_is_kept(tmp_path: Path) -> None:
    found = page(tmp_path / "run", metrics("dev", "test"))
    assert found.texts["h1"] == ["run: drift on train.csv"]
    assert found.texts["h2"][0] == "Results"
    headline, cost, kept = [p for p in found.texts["p"] if not p.startswith("accuracy on")][:3]
    assert "70.00 % of 10 test texts" in headline  # that of the kept seed
    assert "scored once, at the end" in headline
    assert "13 gold labels, 8 for training and 5 of dev for model selection" in cost
    assert "Trained on 1,234 texts, with or without label" in cost
    assert "The model is that of seed 1 of 2 (best on dev)" in kept
    assert "60.00 ± 14.14 %" in kept
    assert found.texts["td"][:3] == ["10", "60.00 ± 14.14", "50.00 ± 14.14"]


def test_what_was_not_measured_is_said_first(tmp_path: Path) -> None:
    found = page(tmp_path / "run", metrics())
    assert found.texts["p"][0].startswith("Not known: there was no dev and no test set")
    absent = {"Results per class", "Calibration", "Confident mistakes"}
    assert not absent & set(found.texts["h2"])
    assert absent <= set(page(tmp_path / "scored", metrics("test")).texts["h2"])


def test_dev_alone_is_said_to_be_too_good(tmp_path: Path) -> None:
    found = page(tmp_path / "run", metrics("dev"))
    assert "70.00 % of 10 dev texts" in found.texts["p"][0]
    assert "There was no test set: these rows also selected the step and the seed" in found.texts["p"][0]
    assert any("The same rows gave the temperature" in paragraph for paragraph in found.texts["p"])


def test_test_alone_has_no_temperature_to_tell_of(tmp_path: Path) -> None:
    paragraphs = " ".join(page(tmp_path / "run", metrics("test")).texts["p"])
    assert "No temperature was fitted" in paragraphs
    assert "The expected calibration error is 25.0 points (on 10 test texts)" in paragraphs
    both = " ".join(page(tmp_path / "both", metrics("dev", "test")).texts["p"])
    assert "25.0 points as trained (on 10 test texts), and 12.5 with a temperature of 2.00, which was fitted on" in both


def test_class_by_class_is_what_scikit_learn_says(tmp_path: Path) -> None:
    true, predicted = [0] * 4 + [1] * 6, [0] * 3 + [1] + [0] * 2 + [1] * 4
    cells = page(tmp_path / "run", metrics("test")).texts["td"]
    found = precision_recall_fscore_support(true, predicted)
    first = cells.index("4")
    for c, (precision, recall, f1, rows) in enumerate(zip(*found, strict=True)):
        count, *shares, harmonic = cells[first + 4 * c : first + 4 * c + 4]
        assert int(count) == rows
        assert [share.split("%")[0] for share in shares] == [f"{100 * precision:.1f}", f"{100 * recall:.1f}"]
        assert harmonic == f"{100 * f1:.1f}"
    assert "2 of 6" in cells  # good taken for bad


def test_a_class_nobody_has_and_nobody_predicts_is_no_fault(tmp_path: Path) -> None:
    assert "-" in page(tmp_path / "run", metrics("test", confusion=[[10, 0], [0, 0]])).texts["td"]


def test_warnings_stand_beside_the_score_and_notes_below(tmp_path: Path) -> None:
    notes = ["columns taken: text", "warning: 3 training rows are in test too"]
    found = page(tmp_path / "run", metrics("test", notes=notes))
    assert found.texts["p"][1] == notes[1]
    assert found.texts["p"].count("columns taken: text") == 1


def test_the_game_and_its_pseudo_labels(tmp_path: Path) -> None:
    paragraphs = " ".join(page(tmp_path / "run", metrics("test"), TRACE).texts["p"])
    assert "0.25 and 0.12" in paragraphs
    assert "62.5 % of the pseudo-labels with a known gold label were right" in paragraphs
    alone = page(tmp_path / "alone", metrics("test"), [{**entry, "interaction_norm": 0.0} for entry in TRACE]).texts
    assert "Weights and pseudo-labels" in alone["h2"]
    assert "interaction" not in " ".join(alone["p"])
    plain = [{key: value for key, value in entry.items() if "norm" not in key} for entry in TRACE]
    assert "Student and teacher" not in page(tmp_path / "plain", metrics("test"), plain).texts["h2"]


def test_predictions_that_changed(tmp_path: Path) -> None:
    found = page(tmp_path / "run", metrics("test", changes=CHANGES))
    assert "Predictions that changed" in found.texts["h2"]
    text = " ".join(found.texts["p"])
    assert "Of 256 unlabelled texts that were watched, 9 have another predicted class at the end than at the" in text
    assert "The true class of 6 of these is known: 1 were right at the start, 4 are at the end" in text
    assert {"fine film", "bad", "good"} <= {*found.texts["th"], *found.texts["td"]}
    none = metrics("test", changes={**CHANGES, "changed": 0, "examples": []})
    assert "Predictions that changed" not in page(tmp_path / "none", none).texts["h2"]


def test_rules_come_with_denominators(tmp_path: Path) -> None:
    def share(count: int, of: int) -> dict[str, int]:
        return {"count": count, "of": of}

    one = {name: share(1, 200) for name in ("coverage", "overlap", "conflict")} | {"accuracy": share(1, 2)}
    rules = {
        **one,
        "rules": [{"name": "greeting", "polarity": {"good": 1}, **one}],
        "labeled": share(1, 200),
        "labels": {"good": 1},
        "other_gold": {},
    }
    weak_labels = {"labeled": share(50, 200), "accuracy": share(30, 40)}
    found = page(tmp_path / "run", metrics("test", rules=rules, weak_labels=weak_labels))
    assert "25.0% of 200 texts have a weak label" in " ".join(found.texts["p"])
    assert "Right: 75.0% of 40" in " ".join(found.texts["p"])
    assert "Coverage, overlap and conflict are shares of 200 texts" in found.texts["p"]
    assert {"greeting", "50.0% of 2"} <= {*found.texts["th"], *found.texts["td"]}


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    def written(name: str, texts: list[str]) -> Reader:
        mistakes = [{"text": text, "label": text, "predicted": text, "confidence": 0.9} for text in texts]
        examples = [{"text": text, "before": text, "after": text, "label": text} for text in texts]
        eye = np.eye(len(texts), dtype=int).tolist()
        found = metrics("test", notes=texts, mistakes=mistakes, model=texts[0], confusion=eye)
        return page(tmp_path / name, found | {"classes": texts, "changes": {**CHANGES, "examples": examples}})

    hostile = written("hostile", HOSTILE)
    assert hostile.tags == written("harmless", ["harmless"] * len(HOSTILE)).tags
    assert set(HOSTILE) <= {*hostile.texts["p"]}  # as notes
    assert set(HOSTILE) <= {*hostile.texts["th"]}  # as classes


def test_the_service_is_shown_only_where_there_is_an_onnx_file_and_is_python(tmp_path: Path) -> None:
    found = metrics("test", classes=("it's", 'a "b"'))
    assert "In a service, without torch" not in page(tmp_path / "run", found).texts["h2"]
    (tmp_path / "run" / "model").mkdir()
    (tmp_path / "run" / "model" / "model.onnx").touch()
    pre = page(tmp_path / "run", found).texts["pre"]
    (service,) = [text for text in pre if "onnxruntime" in text]
    assert "it's" in service
    compile(service, "service", "exec")


def test_settings_and_versions_are_at_the_end(tmp_path: Path) -> None:
    found = page(tmp_path / "run", metrics("test"))
    assert found.texts["h2"][-2:] == ["Settings", "Origin"]
    assert (tmp_path / "run" / "config.yaml").read_text() in found.texts["pre"][-1]
    assert "torch" in found.texts["th"]


def test_written_again_it_is_the_same_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    page(tmp_path / "run", metrics("dev", "test"), TRACE)
    before = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    app = typer.Typer()
    app.command()(report)
    done = CliRunner().invoke(app, [str(tmp_path / "run")])
    assert (done.exit_code, done.output) == (0, f"{tmp_path / 'run' / 'report.html'}\n")
    assert {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()} == before


def test_pictures_are_inside(tmp_path: Path) -> None:
    sources = page(tmp_path / "run", metrics("dev", "test"), TRACE).attributes("src")
    assert len(sources) == 4  # curves, confusion, reliability, game
    for source in sources:
        assert base64.b64decode(str(source).removeprefix("data:image/png;base64,")).startswith(b"\x89PNG")


def test_many_classes_have_a_table_and_no_picture(tmp_path: Path) -> None:
    many = 40
    found = metrics("test", confusion=np.eye(many, dtype=int).tolist())
    assert len(page(tmp_path / "run", found | {"classes": [f"c{c}" for c in range(many)]}).attributes("src")) == 1


def test_a_folder_that_is_no_finished_run_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="finished run"):
        write_report(tmp_path)


def test_a_record_without_the_confusion_of_its_scores_is_one_line_and_no_page(tmp_path: Path) -> None:
    found = metrics("test")
    del found["confusion"]
    with pytest.raises(FileError, match=r"metrics\.json is damaged: confusion: field required"):
        page(tmp_path / "run", found)
    assert not (tmp_path / "run" / "report.html").exists()


RULES = {
    **{name: {"count": 1, "of": 2} for name in ("coverage", "overlap", "conflict", "labeled", "accuracy")},
    "labels": {"good": 1},
    "other_gold": {},
}
DAMAGES: dict[str, tuple[dict[str, Any], str]] = {
    "no seeds": ({"seeds": None}, "seeds: input should be a valid list"),
    "empty seeds": ({"seeds": []}, "seeds: list should have at least 1 item"),
    "a seed that was not trained": ({"kept_seed": 9}, "kept_seed: 9 is not one of the seeds"),
    "no measures": ({"measures": {}}, "measures: dictionary should have at least 1 item"),
    "another measure": ({"measures": {"f1": "F1"}}, "test.scores: a seed has no f1"),
    "no scores": ({"test": {"rows": 3, "scores": None}}, "test.scores: input should be a valid list"),
    "scores of one seed of two": ({"test": {"rows": 3, "scores": SCORES[:1]}}, "test.scores: 1 entries for 2 seeds"),
    "rows in words": ({"test": {"rows": "three", "scores": SCORES}}, "test.rows: input should be a valid integer"),
    "a score in words": (
        {"test": {"rows": 3, "scores": [SCORES[0], {"accuracy": "good", "macro_f1": 0.5}]}},
        "test.scores.1.accuracy: input should be a valid number",
    ),
    "starts of three seeds of two": ({"start_on_dev": SCORES + SCORES[:1]}, "start_on_dev: 3 entries for 2 seeds"),
    "steps of one seed of two": ({"best_steps": [5]}, "best_steps: 1 entries for 2 seeds"),
    "a number of classes": ({"classes": 3}, "classes: input should be a valid list"),
    "three classes of two": ({"classes": ["a", "b", "c"]}, "confusion: not 3 rows and columns"),
    "a confusion that is not square": ({"confusion": [[3, 1], [2]]}, "confusion: not 2 rows and columns"),
    "no confusion": ({"confusion": None}, "confusion: field required"),
    "no calibration": ({"calibration": None}, "calibration: field required"),
    "many watched": ({"changes": {"watched": "many", "changed": 3}}, "changes.watched: input should be a valid int"),
    "a mistake without its text": ({"mistakes": [{"label": "bad"}]}, "mistakes.0.text: field required"),
    "rules without a list": ({"rules": RULES}, "rules.rules: field required"),
    "no budget": ({"label_budget": {"train": 3}}, "label_budget.dev: field required"),
    "a kind of another task": ({"kind": "gcn"}, "kind: 'gcn' is not one of frozen, finetuned, textcnn, vampire"),
    "a field that is not known": ({"accuracy": 0.5}, "accuracy: extra inputs are not permitted"),
    "notes that are no texts": ({"notes": [3]}, "notes.0: input should be a valid string"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_metrics_are_one_line_and_no_page(tmp_path: Path, damage: str) -> None:
    change, message = DAMAGES[damage]
    with pytest.raises(FileError, match=r"metrics\.json is damaged: ") as error:
        page(tmp_path / "run", metrics("test") | change)
    assert f"metrics.json is damaged: {message}" in str(error.value)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "run" / "report.html").exists()


NODE_DAMAGES: dict[str, tuple[dict[str, Any], str]] = {
    "no graph": ({"graph": None}, "graph: input should be a valid dictionary"),
    "links of two classes of three": ({"counts": [[1, 0], [0, 1]]}, "links.counts: not 3 rows and columns"),
    "a neighbourhood too few": ({"neighbourhoods": []}, "links.neighbourhoods: 0 entries, not 5"),
    "a share of nothing": ({"wrong_as_neighbours": {"count": 1}}, "links.wrong_as_neighbours.of: field required"),
}


@pytest.mark.parametrize("damage", NODE_DAMAGES)
def test_damaged_metrics_of_a_graph_are_one_line(tmp_path: Path, damage: str) -> None:
    change, message = NODE_DAMAGES[damage]
    found = node_metrics()
    (found if "graph" in change else found["links"]).update(change)
    with pytest.raises(FileError) as error:
        page(tmp_path / "run", found)
    assert f"metrics.json is damaged: {message}" in str(error.value)
    assert "\n" not in str(error.value)


TOKEN_DAMAGES: dict[str, tuple[dict[str, Any], str]] = {
    "no types": ({"by_type": None}, "by_type: field required, as there are scores"),
    "no errors": ({"errors": None}, "errors: field required, as there are scores"),
    "a type without its F1": ({"by_type": {"PER": {"true": 3}}}, "by_type.PER.f1: field required"),
    "classes without a type": ({"classes": ["O"]}, "samples: type 'PER' is not among the classes"),
    "a span without its end": ({"samples": [{"words": ["a"], "spans": {"true": [[0]]}}]}, "samples.0.spans.true.0.1: "),
    "another way": ({"uncovered": {"chosen": "dev"}}, "uncovered.chosen: input should be 'ignore', 'O' or 'common'"),
    "rules without their words": ({"rules": {"rules": {}}}, "rules.tokens: field required"),
}


def token_metrics() -> dict[str, Any]:
    """What a run on sentences has measured."""
    scores = {"true": 3, "precision": 0.5, "recall": 0.5, "f1": 0.5}
    sample = {"words": ["Ann", "left"], "spans": {"true": [[0, 1, "PER"]], "model": []}}
    tokens = {"task": "tokens", "unit": "words", "measures": {"accuracy": "token accuracy"}, "entities": True}
    found = metrics("test", **tokens, sentences=9, by_type={"PER": scores}, errors={"PER": {"right": 1}})
    del found["confusion"], found["mistakes"]
    return found | {"classes": ["O", "B-PER", "I-PER"], "samples": [sample]}


@pytest.mark.parametrize("damage", TOKEN_DAMAGES)
def test_damaged_metrics_of_sentences_are_one_line(tmp_path: Path, damage: str) -> None:
    change, message = TOKEN_DAMAGES[damage]
    with pytest.raises(FileError) as error:
        page(tmp_path / "run", token_metrics() | change)
    assert f"metrics.json is damaged: {message}" in str(error.value)
    assert "\n" not in str(error.value)
    assert "Results per type" in page(tmp_path / "whole", token_metrics()).texts["h2"]


OTHERS = "model: {}\nmethod: {}\ntraining: {}\n"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("config.yaml", "- a\n", "is not a run's folder: config.yaml cannot be read"),
        ("config.yaml", "data: {}\n", "config.yaml is damaged: it has no model; copy the run's folder again"),
        ("config.yaml", f"data: 3\n{OTHERS}", "config.yaml: data=3: input should be a valid dictionary"),
        ("config.yaml", f"data: {{train: [a]}}\n{OTHERS}", "data.train=['a']: input should be a valid string"),
        ("environment.json", "[]", "environment.json is damaged; copy the run's folder again"),
        ("environment.json", '{"command": "drift"}', "environment.json is damaged"),
        ("environment.json", "{", "environment.json cannot be read"),
        ("trace.jsonl", '{"step": 3}\n', "trace.jsonl is damaged"),
        ("trace.jsonl", '{"phase": "game", "step": 3, "dev": {"f1": 0.5}}\n', "step 3 has no accuracy"),
        ("trace.jsonl", '{"phase": "game", "step": 3, "dev": 0.5}\n', "trace.jsonl is damaged"),
        ("trace.jsonl", '{"phase": "game", "step": 3, "leader_norm": 1}\n', "step 3 lacks diagnostics of the game"),
        ("trace.jsonl", '{"phase": "game", "step": 3, "loss": "low"}\n', "trace.jsonl is damaged"),
    ],
)
def test_other_damaged_files_are_one_line_and_no_page(tmp_path: Path, name: str, content: str, message: str) -> None:
    page(tmp_path / "run", metrics("test"))
    (tmp_path / "run" / "report.html").unlink()
    (tmp_path / "run" / name).write_text(content)
    with pytest.raises(FileError) as error:
        write_report(tmp_path / "run")
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "run" / "report.html").exists()


def test_a_line_that_a_crash_cut_short_is_left_out(tmp_path: Path) -> None:
    whole = page(tmp_path / "run", metrics("dev", "test"), TRACE)
    trace = tmp_path / "run" / "trace.jsonl"
    trace.write_text(trace.read_text() + '{"phase": "game", "st')
    assert Reader(write_report(tmp_path / "run").read_text(encoding="utf-8")).texts == whole.texts


def test_links_are_what_counting_them_one_by_one_gives() -> None:
    generator = np.random.default_rng(0)
    pairs = generator.integers(0, 60, (2, 70))
    pairs = pairs[:, pairs[0] != pairs[1]]
    edges = np.unique(np.concatenate([pairs, pairs[::-1]], axis=1), axis=1)
    graph = small_graph(60, edges=edges, labels=generator.integers(-1, 3, 60))
    one_way = Graph(**{**vars(graph), "edges": graph.edges[:, graph.edges[0] < graph.edges[1]]})
    rows = np.flatnonzero(graph.labels >= 0)[::2]
    predicted = generator.integers(0, 3, len(rows))
    counts = np.zeros((3, 3), dtype=int)
    around: dict[int, list[int]] = {node: [] for node in range(60)}
    for node, neighbour in graph.edges.T.tolist():
        if graph.labels[node] >= 0 and graph.labels[neighbour] >= 0:
            counts[graph.labels[node], graph.labels[neighbour]] += 1
            around[node].append(int(graph.labels[neighbour]))
    kinds = {name: [0, 0] for name in NEIGHBOURHOODS}
    followed = [0, 0]
    for node, said in zip(rows.tolist(), predicted.tolist(), strict=True):
        own, near = int(graph.labels[node]), around[node]
        name = "no neighbour of known class"
        if near:
            share = near.count(own) / len(near)
            name = "all of its class" if share == 1 else "none of its class" if share == 0 else "half or fewer"
            name = "more than half" if 0.5 < share < 1 else name
        kinds[name][0] += said == own
        kinds[name][1] += 1
        if said != own and near:
            followed[0] += near.count(said) == max(map(near.count, near))
            followed[1] += 1
    assert min(of for _, of in kinds.values()) > 0  # every kind is there
    for each in (graph, one_way):  # links go both ways, whichever way they were given
        found = judge_links(each, rows, predicted)["links"]
        assert found["counts"] == counts.tolist()
        assert [[share["count"], share["of"]] for share in found["neighbourhoods"]] == list(kinds.values())
        assert list(found["wrong_as_neighbours"].values()) == followed
    json.dumps(found)


def test_the_graph_of_a_node_run(tmp_path: Path) -> None:
    found = page(tmp_path / "run", node_metrics())
    assert found.texts["h2"][1:3] == ["Results per class", "The graph"]
    text = " ".join(found.texts["p"])
    assert "80.0% of 40 links" in text
    assert "47.1% would" in text  # (13 / 40)² + (24 / 40)² + (3 / 40)²
    assert "Of the 4 misclassified test nodes with neighbours of known class, 3 (75%)" in text
    assert "no neighbour of known class" not in found.texts["th"]  # there is no such node
    cells = found.texts["td"]
    assert cells[cells.index("76.9% of 13") :][:3] == ["76.9% of 13", "law (3)", "law (1)"]
    assert cells[cells.index("83.3% of 24") :][:3] == ["83.3% of 24", "art (3)", "-"]  # never wrong
    assert any("Link matrix" in str(alt) for alt in found.attributes("alt"))


@pytest.mark.parametrize("counts", [None, np.zeros((3, 3), dtype=int).tolist()])
def test_a_graph_of_which_nothing_is_known_has_no_section(tmp_path: Path, counts: Any) -> None:
    found = node_metrics()
    if counts is None:
        del found["links"]
    else:
        found["links"]["counts"] = counts
    assert "The graph" not in page(tmp_path / "run", found).texts["h2"]


def test_what_became_of_predictions_is_told_of_the_kept_seed(tmp_path: Path) -> None:
    page(tmp_path / "run", metrics("test"))
    nobody, gold = [0, 0, 0, 0, 0], [[-1] * 5, [0, 1, 1, 0, -1]]  # the second seed is kept, and knows four
    looks = {0: [0, 0, 0, 1, 0], 20: [1, 1, 0, 1, 1], 100: [0, 1, 1, 1, 0]}
    write_looks(tmp_path / "run", {step: [nobody, predicted] for step, predicted in looks.items()}, gold)
    found = page(tmp_path / "run", metrics("test"))
    assert "Predictions over the game" in found.texts["h2"]
    text = " ".join(found.texts["p"])
    assert "Of 4 texts in the game with a known class, the student was right on 25.0 % at step 0" in text
    assert "75.0 % at step 100: 2 changed from wrong to right, 0 from right to wrong" in text
    cells = found.texts["td"]
    first = cells.index("25.0 %")
    assert cells[first : first + 9] == ["25.0 %", "-", "-", "25.0 %", "1", "1", "75.0 %", "2", "0"]


@pytest.mark.parametrize(
    ("looks", "gold"),
    [({0: [0, 1]}, [0, 1]), ({0: [0, 1], 5: [1, 1]}, None), ({0: [0, 1], 5: [1, 1]}, [-1, -1])],
    ids=["one step", "nothing known", "no class known"],
)
def test_predictions_that_tell_nothing_are_left_out(tmp_path: Path, looks: dict[int, Any], gold: Any) -> None:
    page(tmp_path / "run", metrics("test"))
    write_looks(tmp_path / "run", looks, gold)
    assert "Predictions over the game" not in page(tmp_path / "run", metrics("test")).texts["h2"]


def test_of_many_looks_some_are_drawn_and_a_damaged_one_is_one_line(tmp_path: Path) -> None:
    page(tmp_path / "run", metrics("test"))
    write_looks(tmp_path / "run", {step: [0, 1, 1] for step in range(0, 1300, 10)}, [0, 1, 0])
    steps = page(tmp_path / "run", metrics("test")).texts["th"]
    assert steps[steps.index("step") + 4 :][:6] == ["0", "260", "520", "770", "1,030", "1,290"]
    (tmp_path / "run" / "predictions" / "step-001290.npz").write_bytes(b"PK\x03\x04 and no more")
    with pytest.raises(FileError, match=r"step-001290\.npz cannot be read"):
        write_report(tmp_path / "run")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"gold": [0, 1]}, r"step-000020\.npz cannot be read"),
        ({"probabilities": np.eye(2)[[0, 1, 1]], "gold": [0, 1]}, r"step-000020\.npz cannot be read"),
        ({"probabilities": np.eye(2)[[0, 1, 1]][None], "gold": [0, 1, 1]}, r"step-000020\.npz cannot be read"),
        ({"probabilities": np.eye(2)[[0, 1, 1]], "gold": [0, 1, 1]}, "steps have different rows"),
    ],
    ids=["no probabilities", "rows and classes differ", "a seed too few", "other rows than before"],
)
def test_predictions_that_do_not_fit_are_one_line(tmp_path: Path, arrays: dict[str, Any], message: str) -> None:
    page(tmp_path / "run", metrics("test"))
    write_looks(tmp_path / "run", {0: [0, 1]}, [0, 1])
    np.savez(tmp_path / "run" / "predictions" / "step-000020.npz", **arrays)
    with pytest.raises(FileError, match=message) as error:
        write_report(tmp_path / "run")
    assert "\n" not in str(error.value)


def test_the_result_stands_as_a_bar_beside_simple_answers_and_the_start(tmp_path: Path) -> None:
    content = metrics("test")
    content["test"]["baselines"] = {"majority class": {"accuracy": 0.5, "macro_f1": 0.3}}
    page(tmp_path / "run", content | {"notes": ["warning: few rows", "a note"]})
    text = html.unescape((tmp_path / "run" / "report.html").read_text(encoding="utf-8"))
    low, high = wilson_interval(0.5, 10)
    assert f"50.0 % ({100 * low:.1f} to {100 * high:.1f})" in text
    assert text.index("majority class</span>") < text.index("result</span>")
    assert text.count('class="bar strong"') == 1
    assert '<p class="warning">warning: few rows</p>' in text
    assert "few labels (" in text


def test_diagnostics_settings_and_origin_are_folded_away(tmp_path: Path) -> None:
    page(tmp_path / "run", metrics("test"), TRACE)
    text = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    for heading in ("Student and teacher", "Settings", "Origin"):
        section = text[text.index(f">{heading}</h2>") :]
        assert section.index("<details>") < section.index("</section>")
    results = text[text.index(">Results</h2>") :]
    assert "<details>" not in results[: results.index("</section>")]
