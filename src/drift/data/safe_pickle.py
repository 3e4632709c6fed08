"""Safe reading of pickles: arrays, sparse matrices, lists and dicts only; anything that could run code is refused."""

import pickle
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from drift.data.table_formats import first_line
from drift.errors import FileError

_REBUILD_ARRAY = np.empty(0).__reduce__()[0]  # its location differs between versions of numpy; arrays know it

# Under the names of old and new versions. A pickle cannot cause any other import.
ALLOWED: dict[str, Any] = {
    "builtins.list": list,
    "builtins.dict": dict,
    "__builtin__.list": list,  # Python 2
    "__builtin__.dict": dict,
    "collections.defaultdict": defaultdict,
    "numpy.ndarray": np.ndarray,
    "numpy.dtype": np.dtype,
    "numpy.core.multiarray._reconstruct": _REBUILD_ARRAY,
    "numpy._core.multiarray._reconstruct": _REBUILD_ARRAY,
    "scipy.sparse.csr.csr_matrix": csr_matrix,
    "scipy.sparse._csr.csr_matrix": csr_matrix,
}


def read_pickle(path: Path) -> Any:
    """The content of a pickle that holds only data. Strings of Python 2 are read as latin-1.

    The indices of a sparse matrix are not validated: do that before computing with it.
    """
    try:
        with path.open("rb") as file:
            return _DataUnpickler(file, encoding="latin1").load()
    except FileError as error:
        raise FileError(f"{path}: {error}") from None
    except OSError as error:
        raise FileError(f"{path} cannot be read ({error.strerror}); check the name") from error
    except Exception as error:  # damaged pickles raise nearly anything
        raise FileError(f"{path} is not a complete pickle ({first_line(error)}); copy it again") from error


class _DataUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        allowed = ALLOWED.get(f"{module}.{name}")
        if allowed is None:
            raise FileError(f"the pickle asks for {module}.{name}, which is not data; do not trust this file")
        return allowed
