"""A corpus that is already there: what the docstrings of installed libraries say, without the libraries' names.

Sources are parsed, never imported.
"""

import ast
import importlib.util
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from drift.errors import DataError

# By package, the parts in which the libraries speak of like things; anything else would give them away by its subject.
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
SHORTEST, LONGEST = 6, 60  # words: fewer say too little, and what follows the longest is left out

_NAMES = re.compile(
    r"[\w.]*(?:numpy|scipy|sklearn|scikit[-_\s]*learn|torch)\w*(?:\.\w+)*|\b(?:np|sp)(?:\.\w+)+|\bnp\b",
    re.IGNORECASE,
)
_MARKUP = re.compile(r":\w+:(?=`)|`~?")  # roles and quotes; each library has habits of its own


def docstrings(per_library: int, *, seed: int) -> dict[str, list[str]]:
    """So many random texts of each library: the first paragraphs of what its functions and classes say.

    Masked are the names of all four libraries and their aliases, alone, inside a word or before a dot: `np.linalg.norm`
    and "PyTorch" both become "library". Words such as "tensor" or "estimator" stay. A text that two libraries share is
    left out. The same seed and versions give the same texts.
    """
    found = {library: list(dict.fromkeys(_texts(package, parts))) for library, (package, parts) in LIBRARIES.items()}
    owners = Counter(text for texts in found.values() for text in texts)
    generator = np.random.default_rng(seed)
    chosen = {}
    for library, texts in found.items():
        own = [text for text in texts if owners[text] == 1]
        if len(own) < per_library:
            raise DataError(
                f"{library}: {len(own)} docstrings in its sources, {per_library} were asked for; ask for fewer"
            )
        chosen[library] = [own[place] for place in generator.permutation(len(own))[:per_library]]
    return chosen


def clean(docstring: str) -> str:
    """The first paragraph on one line, masked, without markup, and at most `LONGEST` words of it."""
    paragraph = docstring.strip().split("\n\n")[0]
    masked = _NAMES.sub(MASK, _MARKUP.sub("", paragraph))
    return " ".join(masked.split()[:LONGEST])


def _texts(package: str, parts: tuple[str, ...]) -> Iterator[str]:
    """In the order of parts, files and lines."""
    for part in parts:
        for file in _files(package, part):
            try:
                tree = ast.parse(file.read_bytes())
            except SyntaxError:  # libraries ship files for Pythons newer than this one
                continue
            texts = map(clean, _public_docstrings(tree))
            yield from (text for text in texts if len(text.split()) >= SHORTEST)


def _files(package: str, part: str) -> list[Path]:
    """In the order of their names. A package that is not there has none."""
    roots = getattr(importlib.util.find_spec(package), "submodule_search_locations", None) or []
    files = ((root, file) for root in roots for file in Path(root, part).rglob("*.py"))
    return sorted(file for root, file in files if "tests" not in file.relative_to(root).parts)


def _public_docstrings(tree: ast.Module | ast.ClassDef) -> Iterator[str]:
    """Of functions, classes and methods whose names do not begin with an underscore."""
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
            if docstring := ast.get_docstring(node):
                yield docstring
            if isinstance(node, ast.ClassDef):
                yield from _public_docstrings(node)
