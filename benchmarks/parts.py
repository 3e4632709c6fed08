"""Rows per second per worker of `drift predict` on a folder of Parquet parts, and its memory.

    DRIFT_DATA=... DRIFT_MODELS=... python benchmarks/parts.py [--rows 300] [--run FOLDER]

A classifier of AG News on the default encoder; two parts of AG News, one after the other in this process with one
thread, as a worker computes them. Processor time, without opening the model. Prints one line of JSON.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

from cached_texts import texts_of
from drift.data.table_writer import TableWriter
from drift.runs.parts import predict_parts
from drift.training.plan import peak_memory


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--run", type=Path, required=True)
    options = parser.parse_args()
    texts, _ = texts_of("agnews", "test", 2 * options.rows + 1)
    with tempfile.TemporaryDirectory() as place:
        base = Path(place)
        seconds = []
        for name, rows in (("opening", texts[:1]), ("a", texts[1::2]), ("b", texts[2::2])):
            (base / name).mkdir()
            with TableWriter(base / name / "part.parquet") as table:
                table.write({"text": rows})
            began = time.process_time()
            predict_parts(options.run, base / name, base / f"{name}-out", n_jobs=1, text="text")
            seconds.append(time.process_time() - began)
    result = {
        "command": "python " + " ".join(Path(part).name for part in sys.argv),
        "rows": options.rows,
        "characters": round(sum(map(len, texts)) / len(texts)),
        "rows_per_second": [round(options.rows / each, 1) for each in seconds[1:]],
        "peak_memory_gb": round(peak_memory(), 2),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
