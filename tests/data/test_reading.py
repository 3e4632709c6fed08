"""Text and YAML are read within limits of size, depth and number of values."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from drift.data import reading
from drift.data.reading import MOST_DEPTH, compose_yaml, parse_yaml, read_text
from drift.data.table_formats import pyarrow_modules
from drift.data.tables import read_chunks
from drift.errors import ConfigError, DriftError, FileError
from drift.runs.layers import read_assignments, read_config
from drift.weak import RuleSet

BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]\n" for level in range(1, 12)
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text("abc :#&*-[]{}\n", max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abc", min_size=1, max_size=3), inner),
    max_leaves=20,
)


@given(VALUES)
def test_within_the_limits_the_value_is_that_of_the_library(value: object) -> None:
    text = yaml.safe_dump(value)
    assert parse_yaml(text, "here") == yaml.safe_load(text)


def test_aliases_within_the_limits_are_accepted() -> None:
    assert parse_yaml("a: &x [1, 2]\nb: *x\nc: {<<: {d: *x}}", "here") == {"a": [1, 2], "b": [1, 2], "c": {"d": [1, 2]}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BOMB, r"here:6: more than 1,000,000 values, with aliases written out"),
        ("[" * 60 + "]" * 60, "here:1: lists and mappings are nested more than 50 deep"),
        ("[" * 1_000_000, "here:1: lists and mappings are nested more than 50 deep"),
        ("a: &x [1, *x]", "here:1: this alias refers to a value that contains it"),
        ("a: *x", "here:1: not YAML"),
        ("a: [1", "here:2: not YAML"),
        ("a: 2020-13-45", "here: not YAML"),
        ("? [a]\n: 1", "here:1: not YAML"),
        ("a: !!python/object/apply:os.system [true]", "here:1: not YAML"),
    ],
)
def test_a_document_beyond_a_limit_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as raised:
        parse_yaml(text, "here")
    assert "\n" not in str(raised.value)


def test_depth_counts_what_aliases_stand_for() -> None:
    """Every line adds one level to the one before; written out, the last is deeper than the limit."""
    levels = "".join(f"- &a{level} [{f'*a{level - 1}' if level else 1}]\n" for level in range(MOST_DEPTH + 2))
    with pytest.raises(ConfigError, match=rf"here:{MOST_DEPTH}: .* nested more than {MOST_DEPTH} deep"):
        compose_yaml(levels, "here")
    lines = levels.splitlines(keepends=True)[: MOST_DEPTH - 2]
    assert compose_yaml("".join(lines), "here") is not None


def test_the_same_limits_hold_for_rules_configurations_and_assignments(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.yaml"
    bomb.write_text(
        f"classes: [a, b]\nrules:\n- {{name: x, label: a, has: [b]}}\nextra:\n  {BOMB.replace(chr(10), chr(10) + '  ')}"
    )
    for read in (RuleSet.from_file, read_config):
        with pytest.raises(ConfigError, match="more than 1,000,000 values"):
            read(bomb)
    with pytest.raises(ConfigError, match="nested more than 50 deep"):
        read_assignments([f"data.text={'[' * 100}{']' * 100}"])
    assert read_assignments(["data.text=a: b: c"]) == {"data": {"text": "a: b: c"}}  # not YAML, but a text


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/full"])
def test_a_device_is_not_read(device: str) -> None:
    if not Path(device).exists():
        pytest.skip(f"no {device}")
    with pytest.raises(FileError, match=f"{device} is a device, not a file"):
        read_text(Path(device))


def test_text_has_its_marks_and_line_ends_removed(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes("\N{BYTE ORDER MARK}a\r\nb\rc\n".encode())
    assert read_text(tmp_path / "a") == "a\nb\nc\n"


@pytest.mark.parametrize(
    ("content", "message"), [(b"x" * 11, "larger than 0 MB; split it"), (b"a\xff", r"not UTF-8 \(byte 1\)")]
)
def test_a_file_that_is_too_large_or_not_text_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(FileError, match=message):
        read_text(tmp_path / "a", most=10)


def test_a_missing_file_and_an_impossible_name_are_one_line(tmp_path: Path) -> None:
    for name in ("missing", "a" * 300, "nul\0byte"):
        with pytest.raises(FileError, match=r"cannot be read|is not the name of a file") as raised:
            read_text(tmp_path / name)
        assert "\n" not in str(raised.value)


def test_a_large_document_is_refused_before_it_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_YAML", 2**21)
    with pytest.raises(ConfigError, match="here is larger than 2 MB"):
        parse_yaml(" " * (2**21 + 1), "here")


def test_a_table_whose_name_leads_to_a_device_is_refused(tmp_path: Path) -> None:
    (tmp_path / "endless.csv").symlink_to("/dev/zero")
    with pytest.raises(FileError, match=r"endless\.csv is a device, not a file"):
        next(iter(read_chunks(tmp_path / "endless.csv")))


def test_a_damaged_parquet_file_is_one_line(tmp_path: Path) -> None:
    """Parquet's own messages have several lines."""
    pyarrow, parquet = pyarrow_modules()
    parquet.write_table(pyarrow.table({"text": ["a", "b"]}), tmp_path / "t.parquet")
    sound, refusals = (tmp_path / "t.parquet").read_bytes(), []
    for at in range(4, len(sound) - 4, 7):
        (tmp_path / "t.parquet").write_bytes(sound[:at] + b"\xff" + sound[at + 1 :])
        try:
            list(read_chunks(tmp_path / "t.parquet"))
        except DriftError as error:
            refusals.append(str(error))
    assert len(refusals) > 10
    assert not any("\n" in message for message in refusals)
