"""Settings searched on dev: what is searched, that the best is what is trained, and that a search can be taken up."""

import gc
import json
import shutil
import signal
import sys
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import drift
from drift.errors import ConfigError, DriftError, FileError, Interrupted, PackageError, StateError
from drift.methods import METHODS
from drift.runs import run as execution
from drift.runs.result import Run
from drift.runs.spec import RunSpec, read_stored
from drift.runs.tuning.search_space import NEED_COUPLING, Searched, search_space
from drift.runs.tuning.trials import Pruner, Trials
from drift.tasks.nodes.task import NodeTask
from drift.training.callbacks import GAME, START, TrainingState
from drift.training.plan import Plan
from tests.runs.small import same_weights, small_encoder, small_fit, small_table, write_csv
from tests.runs.small_graphs import STEPS, small_graph, write_npz

optuna = pytest.importorskip("optuna", reason="needs optuna: pip install 'drift-ssl[tune]'")

TRIALS = 5


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_npz(tmp_path_factory.mktemp("graph") / "graph.npz", small_graph(60))


def small_tune(graph: Any, *, n_trials: int = TRIALS, training: dict[str, Any] | None = None, **options: Any) -> Run:
    config = {"model": {"hidden": 5}, "training": {**STEPS, "learning_rate": 0.02, **(training or {})}}
    options = {"task": "nodes", "seeds": 2, "quiet": True, "config": config, **options}
    run = drift.tune(graph, n_trials=n_trials, **options)
    assert isinstance(run, Run)
    return run


@pytest.fixture(scope="module")
def tuned(graph: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, int]:
    """A search from beginning to end, and how often test was made ready to be scored."""
    made: list[int] = []
    prepare = NodeTask.prepare

    def counted(task: NodeTask) -> Any:
        prepared = prepare(task)
        return replace(prepared, test=lambda: made.append(1) or prepared.test())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NodeTask, "prepare", counted)
        run = small_tune(graph, out=tmp_path_factory.mktemp("tuned") / "run")
    return run, len(made)


def in_folder(run: Run) -> Path:
    assert run.path is not None
    return run.path


def test_the_first_trial_is_what_was_given_and_the_best_on_dev_is_trained(tuned: tuple[Run, int]) -> None:
    run, tests = tuned
    found = run.metrics["tuning"]
    usual = {"method.alpha": 0.9, "method.tau": 0.25, "training.learning_rate": 0.02}
    assert found["tried"][0]["settings"] == usual
    complete = [trial for trial in found["tried"] if trial["ended"] == "complete"]
    best = max(complete, key=lambda trial: trial["dev"])
    assert found["settings"] == best["settings"]
    config = yaml.safe_load((in_folder(run) / "config.yaml").read_text())
    assert [config["method"]["alpha"], config["method"]["tau"]] == list(best["settings"].values())[:2]
    assert config["training"]["learning_rate"] == best["settings"]["training.learning_rate"]
    dev = [seed["accuracy"] for seed in run.metrics["dev"]["scores"]]
    assert sum(dev) / len(dev) == best["dev"]  # trained again, it comes to the same
    assert tests == 1


def test_the_budget_is_in_the_metrics_the_notes_and_the_report(tuned: tuple[Run, int]) -> None:
    run, _ = tuned
    found = run.metrics["tuning"]
    looks = 3 + 1 + 3  # every second of 6 steps in both phases, and one at the start of the second
    for trial in found["tried"]:
        assert (trial["steps"], trial["looks"]) == (12, looks) or trial["ended"] == "pruned"
    assert found["trials"] == len(found["tried"]) == TRIALS
    assert found["steps"] == sum(trial["steps"] for trial in found["tried"])
    assert found["dev_looks"] == sum(trial["looks"] for trial in found["tried"])
    assert found["dev_labels"] == run.metrics["label_budget"]["dev"]
    note = f"all {found['dev_labels']} dev labels were used in {found['dev_looks']} evaluations"
    assert note in run.notes[-1]
    assert note in (in_folder(run) / "report.html").read_text(encoding="utf-8")
    metrics = json.loads((in_folder(run) / "metrics.json").read_text())
    assert metrics["tuning"] == found
    assert metrics["notes"] == run.notes


def cut(run: Run, target: Path, share: float) -> None:
    """The folder as a kill would have left it in the search: this much of its journal, in the middle of a line."""
    shutil.copytree(in_folder(run) / "tuning", target / "tuning")
    journal = target / "tuning" / "study.jsonl"
    whole = journal.read_bytes()
    end = whole.index(b"\n", int(share * len(whole)))
    journal.write_bytes(whole[: end - 3])


@pytest.mark.parametrize("share", [0.1, 0.55])
def test_a_search_that_was_killed_goes_on_to_the_same_end(tuned: tuple[Run, int], tmp_path: Path, share: float) -> None:
    run, _ = tuned
    cut(run, tmp_path / "run", share)
    with pytest.raises(ConfigError, match="begun with 1 trials at once; leave out --jobs to continue it"):
        drift.tune(out=tmp_path / "run", resume=True, quiet=True, n_jobs=2)
    again = drift.tune(out=tmp_path / "run", resume=True, quiet=True)  # with as many trials as it was begun with
    assert isinstance(again, Run)
    assert again.metrics["tuning"]["tried"] == run.metrics["tuning"]["tried"]
    assert again.metrics["test"] == run.metrics["test"]


def test_a_finished_search_is_not_made_again(tuned: tuple[Run, int], tmp_path: Path) -> None:
    run, _ = tuned
    shutil.copytree(in_folder(run), tmp_path / "run")
    journal = (tmp_path / "run" / "tuning" / "study.jsonl").read_text().count('"params"')
    again = drift.tune(out=tmp_path / "run", resume=True, quiet=True, n_trials=TRIALS)
    assert isinstance(again, Run)
    assert again.metrics["tuning"] == run.metrics["tuning"]
    assert (tmp_path / "run" / "tuning" / "study.jsonl").read_text().count('"params"') == journal
    with pytest.raises(ConfigError, match=f"the best of {TRIALS} trials was chosen; use a new folder for more"):
        drift.tune(out=tmp_path / "run", resume=True, quiet=True, n_trials=TRIALS + 1)


@pytest.mark.parametrize("cut_short", [False, True], ids=["finished", "cut short"])
def test_who_goes_on_with_the_run_alone_still_tells_of_the_search(
    tuned: tuple[Run, int], tmp_path: Path, cut_short: bool
) -> None:
    run, _ = tuned
    shutil.copytree(in_folder(run), tmp_path / "run")
    if cut_short:
        (tmp_path / "run" / "metrics.json").unlink()
    again = drift.fit(out=tmp_path / "run", resume=True, quiet=True)
    assert isinstance(again, Run)
    assert again.metrics["tuning"] == run.metrics["tuning"]
    assert again.notes[: len(run.notes)] == run.notes
    assert any("was finished before; nothing was trained" in note for note in again.notes) != cut_short
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert (metrics["tuning"], metrics["notes"]) == (run.metrics["tuning"], run.notes)


def test_ctrl_c_says_how_to_go_on_and_the_trial_is_made_again(
    graph: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []
    on_evaluate = Pruner.on_evaluate

    def pressed(self: Pruner, state: TrainingState, scores: Any) -> None:
        looks.append(1)
        if len(looks) == 10:  # in the second trial
            signal.raise_signal(signal.SIGINT)
        on_evaluate(self, state, scores)

    monkeypatch.setattr(Pruner, "on_evaluate", pressed)
    with pytest.raises(Interrupted, match=r"stopped in trial 2 of 2; continue with drift fit --tune --resume -o .*run"):
        small_tune(graph, n_trials=2, out=tmp_path / "run")
    again = drift.tune(out=tmp_path / "run", resume=True, quiet=True)
    assert isinstance(again, Run)
    found = again.metrics["tuning"]
    assert found["trials"] == 2
    assert found["steps"] > sum(trial["steps"] for trial in found["tried"])  # what was stopped was spent, too


def test_players_of_a_trial_are_gone_before_the_next(graph: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alive: list[Any] = []
    train = Trials.train

    def watched(self: Trials, study: Any, trial: Any, task: Any, prepared: Any) -> None:
        assert not [ref for ref in alive if ref() is not None]
        gc.disable()  # nothing but the search itself may collect
        train(self, study, trial, task, prepared)
        gc.enable()

    init = execution.Trainer.__init__

    def noted(self: Any, *arguments: Any, **options: Any) -> None:
        init(self, *arguments, **options)
        alive.extend(map(weakref.ref, (self.method.student, self.method.teacher)))

    monkeypatch.setattr(Trials, "train", watched)
    monkeypatch.setattr(execution.Trainer, "__init__", noted)
    before = optuna.logging.get_verbosity()
    small_tune(graph, n_trials=3)
    assert len(alive) == 2 * 4  # three trials and the last run
    assert optuna.logging.get_verbosity() == before


def test_a_trial_below_the_median_of_others_ends_early() -> None:
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    method: Any = None  # the pruner does not use it
    study = optuna.create_study(direction="maximize", pruner=optuna.pruners.MedianPruner(n_startup_trials=2))
    start, game = (TrainingState(method, phase=phase) for phase in (START, GAME))

    def evaluated(score: float) -> list[dict[str, float]]:
        """Scores of two seeds with this mean; those of other measures would prune every trial."""
        return [{"accuracy": score + spread, "macro_f1": 0.0} for spread in (-0.05, 0.05)]

    for score in (0.8, 0.9):
        trial = study.ask()
        pruner = Pruner(trial, "accuracy")
        for _ in range(3):
            pruner.on_evaluate(start, evaluated(0.0))  # the first phase decides nothing
            pruner.on_evaluate(game, evaluated(score))
            pruner.on_log(game, {"phase": GAME, "step": 1, "loss": 1.0})
        assert pruner.evaluations == 6
        study.tell(trial, score)
        assert study.trials[-1].intermediate_values == pytest.approx(dict.fromkeys(range(3), score))
    poor = Pruner(study.ask(), "accuracy")
    poor.on_evaluate(start, evaluated(0.0))
    with pytest.raises(optuna.TrialPruned):
        poor.on_evaluate(game, evaluated(0.84))
    fair = Pruner(study.ask(), "accuracy")
    fair.on_evaluate(game, evaluated(0.86))
    optuna.logging.set_verbosity(before)


def spec_of(content: dict[str, Any]) -> RunSpec:
    """The spec of a stored configuration, with the defaults of its settings and not of its task."""
    config = read_stored(content, "here")
    spec = RunSpec.resolve([], task=content["task"], method=content["method"]["name"])
    return spec.with_config(config)


@pytest.mark.parametrize(
    ("method", "training", "searched"),
    [
        ({"name": "drift"}, {}, ["method.alpha", "method.tau", "training.learning_rate"]),
        ({"name": "supervised"}, {}, ["training.learning_rate"]),
        ({"name": "supervised"}, {"initial_learning_rate": 0.1}, ["training.initial_learning_rate"]),
        ({"name": "drift"}, {"initial_learning_rate": 0.1}, ["method.alpha", "method.tau", "training.learning_rate"]),
    ],
)
def test_what_is_searched_is_what_the_method_has(
    method: dict[str, Any], training: dict[str, Any], searched: list[str]
) -> None:
    spec = spec_of({"task": "nodes", "method": method, "training": training})
    space = search_space(spec)
    assert [each.path for each in space] == searched
    for each in space:
        usual = each.usual(spec.config)
        assert usual is not None
        assert each.setting(usual) == pytest.approx(spec.described()[each.group][each.name])


@pytest.mark.parametrize(("method", "left"), [("uda", ["tau"]), ("mixtext", ["tau"]), ("uast", [])])
def test_what_only_a_coupled_teacher_uses_is_searched_with_one_alone(method: str, left: list[str]) -> None:
    def searched(**settings: Any) -> list[str]:
        spec = spec_of({"task": "text", "method": {"name": method, **settings}})
        return [each.name for each in search_space(spec) if each.group == "method"]

    assert searched() == left
    assert searched(coupling="differentiable") == ["alpha", "tau"]


def test_every_method_with_a_coupling_says_what_only_that_uses() -> None:
    assert set(NEED_COUPLING) == {
        name for name, each in METHODS.items() if "coupling" in each.settings_type.model_fields
    }


@pytest.mark.parametrize("method", NEED_COUPLING)
def test_what_is_not_searched_changes_nothing(method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("transformers", reason="needs transformers: pip install 'drift-ssl[text]'")
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path / "cache"))
    encoder, table = small_encoder(tmp_path / "encoder"), write_csv(tmp_path / "t.csv", small_table(40, labeled=8))
    names = {"text": "body", "label": "topic", "method": method}
    runs = [
        small_fit(table, encoder, **names, settings={"method": dict.fromkeys(NEED_COUPLING[method], value)})
        for value in (0.2, 0.8)
    ]
    assert same_weights(*runs)


def test_a_setting_outside_is_searched_for_inside() -> None:
    spec = spec_of({"task": "nodes", "method": {"name": "drift", "alpha": 1.0, "tau": 2.0}})
    assert [each.usual(spec.config) for each in search_space(spec)[:2]] == [None, None]


@given(st.floats(0.001, 0.5))
def test_what_is_drawn_for_alpha_is_an_alpha(drawn: float) -> None:
    alpha = Searched("method", "alpha", 0.001, 0.5, log=True, from_one=True).setting(drawn)
    assert 0.5 <= alpha <= 0.999
    assert alpha == pytest.approx(1 - drawn, abs=0.0006)


def test_without_a_folder_nothing_is_written(graph: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert small_tune(graph, n_trials=1, method="supervised").metrics["tuning"]["trials"] == 1
    assert not list(tmp_path.iterdir())


def test_a_dry_run_is_the_plan_of_one_trial(graph: Path, tmp_path: Path) -> None:
    plan = drift.tune(graph, task="nodes", dry_run=True, out=tmp_path / "run", quiet=True)
    assert isinstance(plan, Plan)
    assert "that is one of 20 trials" in plan.lines()[-1]
    assert not list(tmp_path.iterdir())


def test_the_old_names_of_parameters_still_work_with_a_warning(graph: Path) -> None:
    options = {"task": "nodes", "dry_run": True, "quiet": True}
    with pytest.warns(FutureWarning, match=r"tune\(trials=\.\.\.\) is now n_trials; use that name"):
        plan = drift.tune(graph, trials=7, **options)
    assert isinstance(plan, Plan)
    assert "that is one of 7 trials" in plan.lines()[-1]
    with (
        pytest.warns(FutureWarning, match=r"tune\(jobs=\.\.\.\) is now n_jobs; use that name"),
        pytest.raises(ConfigError, match="n_jobs is 0; give at least 1"),
    ):
        drift.tune(graph, jobs=0, **options)


def test_callbacks_are_called_in_the_run_with_the_best_settings(graph: Path) -> None:
    class Counting(drift.Callback):
        runs = steps = 0

        def on_run_end(self, state: TrainingState) -> None:
            self.runs, self.steps = self.runs + 1, state.total_steps

    counting = Counting()
    run = small_tune(graph, n_trials=2, callbacks=[counting])
    assert (counting.runs, counting.steps) == (1, run.metrics["steps"])


def test_all_trials_diverging_is_one_line(graph: Path, tmp_path: Path) -> None:
    with pytest.raises(StateError, match="all 2 trials diverged; lower training"):
        small_tune(graph, n_trials=2, training={"learning_rate": 1e30}, out=tmp_path / "run")


def test_mistakes_are_told_before_anything_is_trained(
    graph: Path, tuned: tuple[Run, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(kind: type[DriftError], message: str, source: Any = graph, **options: Any) -> None:
        with pytest.raises(kind, match=message) as error:
            small_tune(source, **options)
        assert "\n" not in str(error.value)

    none = {"data": {"dev_nodes": 0, "test_nodes": 6}}
    no_dev = write_npz(tmp_path / "no-dev.npz", small_graph(60, splits={}))
    refused(ConfigError, "there is no dev set; give one with --dev", no_dev, settings=none)
    refused(ConfigError, "there is no dev set; give one with --dev", "rows.csv", task="text", config={})
    refused(ConfigError, "n_trials is 0; try at least 1", n_trials=0)
    refused(ConfigError, "n_jobs is 0; give at least 1", n_jobs=0)
    refused(FileError, "holds no search to resume; search in a new folder", out=tmp_path / "new", resume=True)
    refused(FileError, "tuning is not empty; use --resume to continue it", out=in_folder(tuned[0]))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").touch()
    refused(FileError, "full is not empty; give another folder", out=tmp_path / "full")
    shutil.copytree(in_folder(tuned[0]) / "tuning", tmp_path / "run" / "tuning")
    other = {"batch_size": 7}
    refused(StateError, "a run with other settings", out=tmp_path / "run", resume=True, training=other)
    (tmp_path / "run" / "tuning" / "study.jsonl").write_text("[\n[\n")
    refused(FileError, r"study\.jsonl is damaged", out=tmp_path / "run", resume=True)
    with pytest.raises(FileError, match="nowhere/tuning is not there"):
        drift.tune(out=tmp_path / "nowhere", resume=True)
    monkeypatch.setenv("WORLD_SIZE", "2")
    refused(ConfigError, "searched in one process")
    monkeypatch.delenv("WORLD_SIZE")
    monkeypatch.setitem(sys.modules, "optuna", None)
    refused(PackageError, r"pip install 'drift-ssl\[tune\]'")
