"""A corpus that needs no download: docstrings of installed libraries, with the libraries' names masked.

Source files are parsed, never imported.
"""

import ast
import importlib.util
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from drift.errors import DataError

# By library: its package, and the parts whose subjects overlap with the other libraries. Other parts would be too easy.
LIBRARIES = {
    "numpy": ("numpy", ("_core", "fft", "lib", "linalg", "ma", "polynomial")),
    "scikit-learn": (
        "sklearn",
        (
            "cluster",
            "covariance",
            "decomposition",
            "ensemble",
            "feature_extraction",
            "feature_selection",
            "gaussian_process",
            "linear_model",
            "manifold",
            "metrics",
            "mixture",
            "model_selection",
            "neighbors",
            "neural_network",
            "preprocessing",
            "svm",
            "tree",
        ),
    ),
    "scipy": (
        "scipy",
        ("cluster", "fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "sparse", "stats"),
    ),
    "torch": ("torch", ("amp", "autograd", "distributions", "nn", "optim", "sparse", "utils/data")),
}
MASK = "library"
SHORTEST, LONGEST = 6, 60  # words: shorter texts are left out, longer ones are cut

_NAMES = re.compile(
    r"[\w.]*(?:numpy|scipy|sklearn|scikit[-_\s]*learn|torch)\w*(?:\.\w+)*|\b(?:np|sp)(?:\.\w+)+|\bnp\b",
    re.IGNORECASE,
)
_MARKUP = re.compile(r":\w+:(?=`)|`~?")  # roles and quotes, which differ between libraries


def docstrings(per_library: int, *, seed: int) -> dict[str, list[str]]:
    """Random texts of each library: first paragraphs of the docstrings of public functions and classes.

    per_library: number of texts per library. The same seed and versions give the same texts.

    The names of all four libraries and their aliases are masked, alone, inside a word or before a dot: `np.linalg.norm`
    and "PyTorch" both become "library". Words such as "tensor" or "estimator" stay. A text that occurs in two libraries
    is left out.
    """
    all_texts = {name: list(dict.fromkeys(package_texts(*library))) for name, library in LIBRARIES.items()}
    counts = Counter(text for texts in all_texts.values() for text in texts)
    generator = np.random.default_rng(seed)
    chosen = {}
    for library, texts in all_texts.items():
        unique = [text for text in texts if counts[text] == 1]
        if len(unique) < per_library:
            raise DataError(
                f"{library}: {len(unique)} docstrings in its sources, {per_library} were asked for; ask for fewer"
            )
        chosen[library] = [unique[row] for row in generator.permutation(len(unique))[:per_library]]
    return chosen


def clean(docstring: str) -> str:
    """The first paragraph on one line: masked, without markup, and cut after `LONGEST` words."""
    paragraph = docstring.strip().split("\n\n")[0]
    masked = _NAMES.sub(MASK, _MARKUP.sub("", paragraph))
    return " ".join(masked.split()[:LONGEST])


def package_texts(package: str, parts: tuple[str, ...]) -> Iterator[str]:
    """Texts of a package, in the order of parts, files and lines."""
    for part in parts:
        for file in _files(package, part):
            try:
                tree = ast.parse(file.read_bytes())
            except SyntaxError:  # some files are for newer versions of Python
                continue
            texts = map(clean, _public_docstrings(tree))
            yield from (text for text in texts if len(text.split()) >= SHORTEST)


def _files(package: str, part: str) -> list[Path]:
    """Source files in the order of their names, without tests. Empty if the package is not installed."""
    roots = getattr(importlib.util.find_spec(package), "submodule_search_locations", None) or []
    files = ((root, file) for root in roots for file in Path(root, part).rglob("*.py"))
    return sorted(file for root, file in files if "tests" not in file.relative_to(root).parts)


def _public_docstrings(tree: ast.Module | ast.ClassDef) -> Iterator[str]:
    """Docstrings of functions, classes and methods whose names do not begin with an underscore."""
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
            if docstring := ast.get_docstring(node):
                yield docstring
            if isinstance(node, ast.ClassDef):
                yield from _public_docstrings(node)
