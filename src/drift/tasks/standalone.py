"""`use.py` in the folder of a model: the model without this package."""

import json
import re
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any

FILE = "use.py"
FOLDER: Any = PurePosixPath("@")  # stands for the folder of the model in generated lines


def quoted(path: Any) -> str:
    """A path as a string of Python."""
    return json.dumps(str(path), ensure_ascii=False)


def script(lines: Sequence[str], call: str, needs: str, note: str = "") -> str:
    """A Python file with these lines and a command line.

    lines: of Python; a path below `FOLDER` becomes one below the folder of the file. call: what the command prints for
    `text`. needs: packages. note: what the file leaves out.
    """
    body = re.sub(r'"@/([^"]+)"', r'HERE + "/\1"', "\n".join(lines)).replace('"@"', "HERE")
    about = f'Use this model without the package that trained it: python {FILE} "a text". Needs {needs}.'
    return (
        f'"""{about}{note}"""\n\nimport os\nimport sys\n\n'
        f"HERE = os.path.dirname(os.path.abspath(__file__))\n\n{body}\n\n\n"
        f'if __name__ == "__main__":\n    for text in sys.argv[1:]:\n        print({call})\n'
    )
