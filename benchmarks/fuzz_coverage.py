"""Inputs that reach new code, for every reader: `python benchmarks/fuzz_coverage.py --seconds 600`.

Needs atheris (`pip install atheris`). Each reader of `fuzz.py` runs in its own process. Inputs that reached new code
are kept in `fuzz/corpus/READER` and are the seeds of the next time; files that crash a reader are in `fuzz/crashes`.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

FOLDER = Path("fuzz")
LONGEST = 4096  # bytes of an input


def child(name: str, seconds: int) -> None:
    """Fuzz one reader in this process, which atheris ends."""
    import atheris  # type: ignore[import-not-found]

    with atheris.instrument_imports(include=["drift"]):
        import fuzz
    warnings.simplefilter("ignore")
    scratch, corpus = Path(tempfile.mkdtemp()), FOLDER / "corpus" / name.replace(" ", "-")
    corpus.mkdir(parents=True, exist_ok=True)
    (FOLDER / "crashes").mkdir(exist_ok=True)
    (corpus / "seed").write_bytes(fuzz.seeds(scratch)[name])

    def one(content: bytes) -> None:
        if fault := fuzz.attempt(name, content, scratch):
            raise RuntimeError(fault)

    prefix = FOLDER / "crashes" / f"{corpus.name}-"
    options = [f"-max_total_time={seconds}", f"-max_len={LONGEST}", f"-artifact_prefix={prefix}", "-rss_limit_mb=4096"]
    atheris.Setup([sys.argv[0], *options, "-print_final_stats=1", str(corpus)], one)
    atheris.Fuzz()


def run(seconds: float) -> int:
    """All readers, one after the other. Returns the number that crashed."""
    from fuzz import READERS

    crashed, total = 0, 0
    for name in READERS:
        command = [sys.executable, __file__, "--reader", name, "--seconds", str(seconds / len(READERS))]
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True, errors="replace")
        executed = re.search(r"number_of_executed_units: (\d+)", done.stderr)
        covered = re.findall(r"cov: (\d+)", done.stderr)
        count = int(executed[1]) if executed else 0
        crashed, total = crashed + (done.returncode != 0), total + count
        print(f"{name}: {count:,} inputs, {covered[-1] if covered else '?'} places in the code", flush=True)
        if done.returncode:
            print(done.stderr[-3000:], flush=True)
    print(f"{total:,} inputs, {crashed} of {len(READERS)} readers crashed")
    return crashed


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--reader")
    arguments = parser.parse_args()
    if arguments.reader:
        child(arguments.reader, max(1, round(arguments.seconds)))
    sys.exit(run(arguments.seconds) > 0)
