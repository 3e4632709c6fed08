"""The docs name only what exists."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
EQUATIONS = (ROOT / "docs" / "equations.md").read_text()


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(drift(?:\.\w+)+)`", EQUATIONS))))
def test_every_function_beside_an_equation_exists(name: str) -> None:
    parts = name.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            found = getattr(found, part)
        assert callable(found)
        return
    pytest.fail(f"{name} is in no module")


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(tests/[\w/]+\.py(?:::\w+)?)`", EQUATIONS))))
def test_every_test_beside_an_equation_exists(name: str) -> None:
    file, _, function = name.partition("::")
    assert (ROOT / file).is_file()
    assert not function or f"def {function}(" in (ROOT / file).read_text()


def test_every_equation_of_the_method_section_has_a_row() -> None:
    assert {f"| Eq. {n} |" for n in range(1, 10)} <= set(re.findall(r"\| Eq\. \d \|", EQUATIONS))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []
