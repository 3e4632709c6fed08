"""Docstrings as a corpus: which are used, what is masked, and that nothing is imported."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from drift.errors import DataError
from drift.paper.demos import docstrings as module
from drift.paper.demos.docstrings import LIBRARIES, LONGEST, SHORTEST, clean, docstrings

SOURCE = '''
"""Modules speak of themselves, and that is not taken at all."""
raise ImportError("this file must be read, never run")

def public():
    """A function that somebody outside may call today.

    A second paragraph is not taken.
    """
    def inner():
        """A function inside another one is not for anybody else."""

def _private():
    """A private function that nobody outside may call today."""

def short():
    """Too short."""

class Public:
    """A class that somebody outside may use today."""

    def method(self):
        """A method that somebody outside may use today."""

    def _method(self):
        """A private method that nobody outside may use today."""
'''
TAKEN = [
    "A function that somebody outside may call today.",
    "A class that somebody outside may use today.",
    "A method that somebody outside may use today.",
]


def package(folder: Path, name: str, **files: str) -> tuple[str, tuple[str, ...]]:
    """Make a package with files in its folder `part`; returns its entry in `LIBRARIES`."""
    part = folder / name / "part"
    (part / "tests").mkdir(parents=True)
    (folder / name / "__init__.py").write_text("")
    (folder / name / "elsewhere.py").write_text(
        f'def f():\n    """{name} says this outside of the part that counts."""'
    )
    (part / "tests" / "test.py").write_text(f'def f():\n    """{name} says this in a test that does not count."""')
    for stem, content in files.items():
        (part / f"{stem}.py").write_text(content)
    return name, ("part",)


def says(*texts: str) -> str:
    return "\n".join(f'def f{number}():\n    """{text}"""' for number, text in enumerate(texts))


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the import path; inside a package, a folder of this name would be skipped."""
    folder = tmp_path / "tests"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    return folder


def test_first_paragraphs_of_public_docstrings_are_used_and_nothing_is_run(
    shelf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = package(shelf, "spoken", b=SOURCE, a=says("The file with the first name comes first."), c="def f[:")
    monkeypatch.setattr(module, "LIBRARIES", {"spoken": library})
    assert [*module.package_texts(*library)] == ["The file with the first name comes first.", *TAKEN]
    assert sorted(docstrings(4, seed=0)["spoken"]) == sorted(["The file with the first name comes first.", *TAKEN])
    assert "spoken" not in sys.modules


def test_duplicates_are_dropped_and_shared_texts_left_out(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared, own = "Both of the packages say this sentence.", "Only the first package says this sentence."
    one = package(shelf, "one", a=says(shared, own, own))
    two = package(shelf, "two", a=says(shared, "Only the second package says this sentence."))
    monkeypatch.setattr(module, "LIBRARIES", {"one": one, "two": two})
    assert docstrings(1, seed=0) == {"one": [own], "two": ["Only the second package says this sentence."]}
    with pytest.raises(DataError, match=r"^one: 1 docstrings in its sources, 2 were asked for; ask for fewer$"):
        docstrings(2, seed=0)


def test_a_missing_library_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LIBRARIES", {"absent": ("no_such_package", ("part",))})
    with pytest.raises(DataError, match="absent: 0 docstrings"):
        docstrings(1, seed=0)


@pytest.mark.parametrize(
    ("written", "cleaned"),
    [
        ("NumPy's way, as in `np.linalg.norm`.", "library's way, as in library."),
        ("From :class:`~torch.nn.Module`, PyTorch and TorchScript", "From library, library and library"),
        ("scikit-learn, sklearn.svm, scikit learn,\nscikit-\nlearn", "library, library, library, library"),
        ("scipy.sparse or sp.sparse; SciPy", "library or library; library"),
        ("A tensor, an ndarray and an estimator", "A tensor, an ndarray and an estimator"),
        ("input, snp, sp and the spline np", "input, snp, sp and the spline library"),
        ("Over\n  two lines.\n\nMore.", "Over two lines."),
        ("word " * (LONGEST + 5), " ".join(["word"] * LONGEST)),
        ("", ""),
    ],
)
def test_cleaning(written: str, cleaned: str) -> None:
    assert clean(written) == cleaned


@pytest.fixture(scope="module")
def real() -> dict[str, list[str]]:
    return docstrings(500, seed=0)


def test_the_installed_libraries_have_enough_texts(real: dict[str, list[str]]) -> None:
    assert [*real] == [*LIBRARIES]
    texts = [text for of in real.values() for text in of]
    assert len(texts) == len(set(texts)) == 4 * 500
    assert all(SHORTEST <= len(text.split()) <= LONGEST for text in texts)


def test_no_text_names_a_library(real: dict[str, list[str]]) -> None:
    telling = re.compile(r"numpy|scipy|sklearn|scikit|torch|\bnp\b", re.IGNORECASE)
    assert [text for of in real.values() for text in of if telling.search(text)] == []


def test_the_seed_chooses_the_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LIBRARIES", {"numpy": ("numpy", ("polynomial",))})
    assert docstrings(20, seed=0) == docstrings(20, seed=0)
    assert docstrings(20, seed=0) != docstrings(20, seed=1)


def test_no_library_is_imported() -> None:
    code = (
        "import json, sys; from drift.paper.demos import docstrings as module;"
        " module.LIBRARIES = {'sklearn': ('sklearn', ('svm',)), 'scipy': ('scipy', ('fft',))};"
        " module.docstrings(10, seed=0); print(json.dumps([*sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"sklearn", "scipy", "torch"} & set(json.loads(done.stdout))
