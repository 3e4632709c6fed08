"""The journal: what was acknowledged survives any end of the process; damage is reported, not guessed away."""

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from drift.annotate.journal import Journal
from drift.errors import FileError, StateError

HEADER = {"texts": "abc"}
WRITER = """
import sys
from drift.annotate.journal import Journal
with Journal(sys.argv[1], {"texts": "abc"}) as journal:
    number = len(journal.events)
    while True:
        journal.append({"do": "label", "number": number, "note": "ä" * (number % 50)})
        sys.stdout.write(f"{number}\\n"); sys.stdout.flush()  # acknowledged
        number += 1
"""


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    with Journal(tmp_path / "j", HEADER) as journal:
        assert journal.events == []
        journal.append({"do": "note", "text": "two\nlines, ümlaut, \u2028"})
    with Journal(tmp_path / "j", HEADER) as journal:
        assert journal.events == [{"do": "note", "text": "two\nlines, ümlaut, \u2028"}]


def test_kill_at_any_moment_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    path, generator = tmp_path / "j", random.Random(0)
    acknowledged = -1
    for _ in range(4):
        process = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE)
        assert process.stdout is not None
        first = process.stdout.readline()  # it has begun
        time.sleep(generator.uniform(0.0, 0.15))
        process.send_signal(signal.SIGKILL)
        rest, _ = process.communicate()
        lines = (first + rest).splitlines(keepends=True)
        acknowledged = max([acknowledged, *(int(line) for line in lines if line.endswith(b"\n"))])
        with Journal(path, HEADER) as journal:
            numbers = [event["number"] for event in journal.events]
        assert numbers == list(range(len(numbers)))  # nothing is missing, twice, or out of order
        assert len(numbers) > acknowledged
    assert acknowledged > 0


@pytest.mark.parametrize("torn", [b"{", b'{"do":"label","rows":[1]}', b'{"do": "l\xc3'])
def test_a_line_that_was_cut_off_is_removed(tmp_path: Path, torn: bytes) -> None:
    with Journal(tmp_path / "j", HEADER) as journal:
        journal.append({"do": "first"})
    with (tmp_path / "j").open("ab") as file:
        file.write(torn)
    with Journal(tmp_path / "j", HEADER) as journal:
        assert journal.events == [{"do": "first"}]
        journal.append({"do": "second"})
    with Journal(tmp_path / "j", HEADER) as journal:
        assert [event["do"] for event in journal.events] == ["first", "second"]


def test_damage_in_the_middle_is_an_error_that_names_the_line(tmp_path: Path) -> None:
    with Journal(tmp_path / "j", HEADER) as journal:
        journal.append({"do": "first"})
    lines = (tmp_path / "j").read_bytes().splitlines(keepends=True)
    (tmp_path / "j").write_bytes(lines[0] + b"not json\n" + lines[1])
    with pytest.raises(FileError, match=":2 is damaged"):
        Journal(tmp_path / "j", HEADER)
    (tmp_path / "j").write_bytes(b"id,label\n1,a\n")
    with pytest.raises(FileError, match=r"damaged|not a journal"):
        Journal(tmp_path / "j", HEADER)


def test_a_journal_of_other_texts_is_refused(tmp_path: Path) -> None:
    Journal(tmp_path / "j", HEADER).close()
    with pytest.raises(StateError, match="other texts"):
        Journal(tmp_path / "j", {"texts": "another"})
    Journal(tmp_path / "j", HEADER).close()  # the refusal left the lock free


def test_a_second_process_is_refused_until_the_first_has_ended(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path / "j")], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    with pytest.raises(StateError, match=f"process {process.pid}"):
        Journal(tmp_path / "j", HEADER)
    process.kill()
    process.communicate()
    Journal(tmp_path / "j", HEADER).close()


def test_a_full_disk_leaves_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system refuses to flush: the event is not kept, and the next one is."""
    journal = Journal(tmp_path / "j", HEADER)
    journal.append({"do": "first"})
    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        with pytest.raises(FileError, match="not saved"):
            journal.append({"do": "lost"})
    journal.append({"do": "second"})
    journal.close()
    events = [json.loads(line) for line in (tmp_path / "j").read_text().splitlines()[1:]]
    assert [event["do"] for event in events] == ["first", "second"]
