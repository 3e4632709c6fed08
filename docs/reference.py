"""Pages of the documentation that are made from the code: every command, every setting, the Python interface.

`mkdocs` calls the functions `on_*`; notebooks, README and other files of the root become pages, too.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from pydantic import BaseModel

import drift
from drift.cli.main import app
from drift.methods import METHODS
from drift.tasks import TASKS
from drift.training.settings import TrainingSettings

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

ROOT = Path(__file__).parents[1]
ROOT_PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "CONTRIBUTING.md": "contributing.md",
}
ROOT_FILES = ("CITATION.cff", "Makefile")  # linked, but no pages


def commands_page() -> str:
    """Every command with its description, arguments and options."""
    group: Any = typer.main.get_command(app)
    lines = ["# Commands", "", "Made from the program: `drift COMMAND --help` prints the same.", ""]
    for name, command in _commands(group, "drift"):
        lines += [f"## {name}", "", _description(command.help or ""), ""]
        rows = [_parameter(parameter) for parameter in command.params if not getattr(parameter, "hidden", False)]
        lines += ["| argument or option | meaning | default |", "|---|---|---|", *rows, ""]
    return "\n".join(lines)


def settings_page() -> str:
    """Every setting of a configuration file, by group, with its type, default and meaning."""
    lines = [
        "# Settings",
        "",
        "Made from the code. Set one with `--set group.name=value`, in Python with `settings={...}`, or write them into"
        " a YAML file for `--config`. `config.yaml` in the folder of a run has the values of that run. Defaults that"
        " depend on the task or the kind of model are in its `defaults.yaml`, and win over those shown here.",
        "",
    ]
    groups: list[tuple[str, type[BaseModel]]] = [("training", TrainingSettings)]
    for task in TASKS.values():
        groups.append((f"data, --task {task.name}", task.data_settings))
        groups.append((f"model, --task {task.name}", task.model_settings))
    groups += [(f"method, --method {name}", method.settings_type) for name, method in METHODS.items()]
    for title, settings in groups:
        rows = [_setting(name, field) for name, field in settings.model_fields.items()]
        if rows:
            lines += [f"## {title}", "", "| setting | type | default | meaning |", "|---|---|---|---|", *rows, ""]
    return "\n".join(lines)


def api_page() -> str:
    """The public names of the package, with their docstrings."""
    lines = ["# Python", "", "What `import drift` offers. Everything else may change between versions.", ""]
    for name in drift.__all__:
        if name != "__version__":
            lines += [f"## drift.{name}", "", f"::: {drift._HOME[name]}.{name}", ""]
    return "\n".join(lines)


def root_page(name: str) -> str:
    """A file of the root as a page: links into docs/ lose that folder, and other root files are where they are here."""
    text = (ROOT / name).read_text(encoding="utf-8")
    text = text.replace("](docs/", "](").replace("](../docs/", "](")
    text = re.sub(r"\]\(notebooks/(\w+)\.ipynb\)", r"](notebooks/\1.md)", text)
    for source, page in ROOT_PAGES.items():
        text = text.replace(f"]({source})", f"]({page})")
    for file in ROOT_FILES:
        text = re.sub(rf"\[([^\]]+)\]\({re.escape(file)}\)", r"\1", text)
    return text


def notebook_page(path: Path) -> str:
    """A notebook with its saved outputs."""
    parts = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        outputs = cell.get("outputs", [])
        if printed := "".join("".join(output["text"]) for output in outputs if output["output_type"] == "stream"):
            parts.append(f"```text\n{printed}```")
        for output in outputs:
            if (picture := output.get("data", {}).get("image/png")) is not None:
                parts.append(f"![Output](data:image/png;base64,{picture.strip()})")
    return "\n\n".join(parts).replace("](../docs/", "](../") + "\n"


def on_files(files: "Files", config: "MkDocsConfig") -> "Files":
    """Add the pages that are made here."""
    from mkdocs.structure.files import File

    made = {
        "reference/commands.md": commands_page(),
        "reference/settings.md": settings_page(),
        "reference/python.md": api_page(),
        **{page: root_page(name) for name, page in ROOT_PAGES.items()},
        **{f"notebooks/{path.stem}.md": notebook_page(path) for path in (ROOT / "notebooks").glob("*.ipynb")},
    }
    for path, content in made.items():
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Links from pages to files of the root lead to the pages made of them."""
    for source, page in ROOT_PAGES.items():
        markdown = markdown.replace(f"](../{source})", f"]({page})")
    return markdown


def _commands(group: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, f"{prefix} {name}")
        else:
            yield f"{prefix} {name}", command


def _description(text: str) -> str:
    """A docstring: its examples are indented, which Markdown takes for code."""
    return text.replace("<", "&lt;").strip()


def _parameter(parameter: Any) -> str:
    names = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
    default = parameter.default
    shown = "" if default in (None, False, "", ()) or callable(default) or parameter.required else f"`{default}`"
    return f"| {names} | {_cell(getattr(parameter, 'help', '') or '')} | {shown} |"


def _setting(name: str, field: Any) -> str:
    default = field.get_default(call_default_factory=True)
    shown = "" if default is None else f"`{default!r}`"
    annotation = getattr(field.annotation, "__name__", None) if isinstance(field.annotation, type) else None
    kind = annotation or re.sub(r"\b(?:typing|collections\.abc|pathlib)\.", "", str(field.annotation))
    return f"| `{name}` | {_cell(f'`{kind}`')} | {_cell(shown)} | {_cell(field.description or '')} |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
