"""Imports point one way, and importing costs and changes nothing that was not asked for."""

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import drift

SOURCE = Path(drift.__file__).parent

# What each layer may import of the others; its own layer is always allowed. From the bottom to the top:
LEAVES = {"errors", "settings", "imports"}
DATA = LEAVES | {"core"}
MODELS = DATA | {"data"}
METHODS = MODELS | {"models", "weak"}
TRAINING = METHODS | {"methods"}
TASKS = TRAINING | {"training", "report", "quality"}
RUNS = TASKS | {"tasks", "presets", "version"}
ANNOTATE = RUNS | {"runs", "web"}
SERVICE = ANNOTATE | {"estimator"}
PAPER = RUNS | {"runs", "estimator"}
ALLOWED = {
    "errors": set(),
    "settings": {"errors"},
    "imports": {"errors", "settings"},
    "core": {"errors"},
    "data": DATA,
    "weak": MODELS,
    "models": MODELS,
    "quality": LEAVES | {"data"},
    "report": MODELS | {"version"},
    "presets": LEAVES,
    "methods": METHODS,
    "training": TRAINING,
    "estimator": TRAINING | {"training", "version"},
    "tasks": TASKS,
    "runs": RUNS,
    "web": {"errors"},
    "annotate": ANNOTATE,
    "service": SERVICE,
    "paper": PAPER,
    "cli": PAPER | {"paper", "annotate", "service"},
}
# Parts that are a layer of their own: the paper's presets are data that `drift.fit(preset=...)` reads.
LAYER_OF = {"drift.paper.presets": "presets", "drift.__main__": "cli"}


def files() -> list[Path]:
    """Every source file except the package's `__init__`, which names objects of all layers."""
    return [path for path in sorted(SOURCE.rglob("*.py")) if path != SOURCE / "__init__.py"]


def layer_of(module: str) -> str:
    """`drift.core.game` -> `core`; a name that `drift` exports belongs to the layer that defines it."""
    for prefix, layer in LAYER_OF.items():
        if module == prefix or module.startswith(f"{prefix}."):
            return layer
    name = module.split(".")[1] if "." in module else "version"
    if name in drift._HOME:
        return layer_of(drift._HOME[name])
    return "version" if name.startswith("__") else name


def imported(path: Path) -> Iterator[str]:
    """Absolute names of what a file imports, inside functions too; `from drift import x` and `drift.x` are both x."""
    package = ("drift", *path.relative_to(SOURCE).parent.parts)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    binds_drift = False
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name != "drift")
            binds_drift |= any(alias.name == "drift" for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            stem = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(part for part in (stem, node.module) if part)
            yield from (f"drift.{alias.name}" for alias in node.names) if module == "drift" else (module,)
    for node in ast.walk(tree) if binds_drift else ():
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "drift":
            yield f"drift.{node.attr}"


def file_layer(path: Path) -> str:
    return layer_of(".".join(("drift", *path.relative_to(SOURCE).with_suffix("").parts)))


@pytest.mark.parametrize("path", files(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_one_way(path: Path) -> None:
    layer = file_layer(path)
    assert layer in ALLOWED, f"{layer} is a new layer: say in ALLOWED what it may import"
    used = {layer_of(name) for name in imported(path) if name.split(".")[0] == "drift"}
    assert used - {layer} <= ALLOWED[layer]


TASK_NAMES = {"text", "tokens", "nodes"}
# Where a task may be named: its own folder, the command line, and the table of how cells of the paper are run.
MAY_NAME_TASKS = ("tasks/", "cli/", "paper/bench/configs.py")


def task_dispatch(tree: ast.AST) -> Iterator[int]:
    """Lines that compare something called task, kind or unit with a string, or test the class of a task."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            names = {ast.unparse(side).replace("dtype.kind", "").rpartition(".")[2] for side in sides}
            strings = {each.value for side in sides for each in ast.walk(side) if isinstance(each, ast.Constant)}
            if names & {"task", "task_name"} and strings & TASK_NAMES:
                yield node.lineno
            if names & {"kind", "kind_name"} and any(isinstance(value, str) for value in strings):
                yield node.lineno
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance":
            classes = ast.unparse(node.args[1])
            yield from [node.lineno] if any(name in classes for name in ("TextTask", "TokenTask", "NodeTask")) else []


@pytest.mark.parametrize("path", files(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_only_a_task_and_the_command_line_know_tasks_by_name(path: Path) -> None:
    name = path.relative_to(SOURCE).as_posix()
    if name.startswith(MAY_NAME_TASKS):
        return
    own = [
        module for module in imported(path) if module.startswith(tuple(f"drift.tasks.{task}." for task in TASK_NAMES))
    ]
    assert not own, f"{name} imports {own}: use drift.tasks.TASKS, or move the code into the task's folder"
    lines = list(task_dispatch(ast.parse(path.read_text(encoding="utf-8"))))
    assert not lines, f"{name}:{lines}: put what differs between tasks or kinds into Task or Kind"


def test_the_task_rule_sees_dispatch() -> None:
    for code in (
        'if task == "nodes": pass',
        'x = config.task in ("text",)',
        'kind in ("gcn", "grand")',
        "job.kind == 'a'",
    ):
        assert list(task_dispatch(ast.parse(code))) == [1]
    assert list(task_dispatch(ast.parse("isinstance(task, NodeTask)"))) == [1]
    assert not list(task_dispatch(ast.parse('kind is FROZEN\ncolumn == "text"\ntask.name == name')))


@pytest.mark.parametrize("task", sorted(TASK_NAMES))
def test_a_task_does_not_import_another(task: str) -> None:
    others = tuple(f"drift.tasks.{other}" for other in TASK_NAMES - {task})
    for path in (SOURCE / "tasks" / task).glob("*.py"):
        assert not [module for module in imported(path) if module.startswith(others)], path


@pytest.mark.parametrize("path", sorted((SOURCE / "core").glob("*.py")), ids=lambda path: path.name)
def test_core_needs_torch_and_nothing_else(path: Path) -> None:
    outside = {name.split(".")[0] for name in imported(path)} - {"drift"}
    assert outside <= {"torch", *sys.stdlib_module_names}


def test_the_table_of_layers_has_no_circle() -> None:
    reached: dict[str, set[str]] = {}

    def below(layer: str, above: tuple[str, ...]) -> set[str]:
        assert layer not in above, f"{' -> '.join((*above, layer))} is a circle"
        if layer not in reached:
            parts = [below(each, (*above, layer)) | {each} for each in ALLOWED.get(layer, set())]
            reached[layer] = set().union(*parts)
        return reached[layer]

    assert below("cli", ()) >= {"core", "errors", "training"}


def test_reading_imports_sees_every_form(tmp_path: Path) -> None:
    body = "import drift, os.path\nfrom drift import Game\ndef f():\n    from drift.cli import main\n    drift.core.x\n"
    nested = SOURCE / "data" / "not_there.py"
    path = tmp_path / "file.py"
    path.write_text(body)

    class Elsewhere(type(path)):  # read from one place, named as if in another
        def relative_to(self, *_: object) -> Path:
            return nested.relative_to(SOURCE)

    assert set(imported(Elsewhere(path))) == {"os.path", "drift.Game", "drift.cli", "drift.core"}
    assert layer_of("drift.Game") == "core"
    assert layer_of("drift.__version__") == layer_of("drift") == "version"


def in_a_new_process(code: str) -> dict:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


HEAVY = ("torch", "sklearn", "scipy", "matplotlib", "numpy", "pandas")


@pytest.mark.parametrize(
    "code",
    [
        "import drift; dir(drift)",
        "import sys; from drift.cli.main import run; sys.argv = ['drift', '--help']; attempt(run)",
        "import sys; from drift.cli.main import run; sys.argv = ['drift', 'demo', '--help']; attempt(run)",
        "import sys; from drift.cli.main import run; sys.argv = ['drift', '--version']; attempt(run)",
    ],
    ids=["import drift", "--help", "demo --help", "--version"],
)
def test_the_front_door_does_not_wait_for_heavy_packages(code: str) -> None:
    attempt = "def attempt(call):\n    try: call()\n    except SystemExit as end: assert end.code in (0, None)\n"
    loaded = in_a_new_process(f"{attempt}{code}\nimport json, sys; print(json.dumps([*sys.modules]))")
    assert "drift" in loaded
    assert not set(HEAVY) & set(loaded)


def test_importing_core_changes_no_global_state() -> None:
    look = "[torch.random.get_rng_state().tolist(), random.getstate(), torch.get_num_threads()," + (
        " str(torch.get_default_dtype()), torch.is_grad_enabled(), torch.are_deterministic_algorithms_enabled()]"
    )
    code = f"import json, random, torch\nbefore = {look}\nimport drift.core\nprint(json.dumps(before == {look}))"
    assert in_a_new_process(code) is True


def test_every_name_of_the_front_door_opens() -> None:
    for name in drift.__all__:
        assert getattr(drift, name) is not None
    with pytest.raises(AttributeError, match="DriftClassifier"):
        drift.NoSuchThing  # noqa: B018
