"""Texts in CSV for spreadsheets cannot become formulas, and are read back unchanged."""

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import drift
from drift.data.formulas import JOINER, marked, restored
from drift.data.table_writer import TableWriter
from drift.data.tables import read_chunks
from tests.cli.conftest import Call, call  # noqa: F401 - a fixture
from tests.runs.small import small_encoder, small_fit, small_table, write_csv

DANGEROUS = [
    '=HYPERLINK("http://x")',
    "+1+cmd",
    "-2+3",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\n=1",
    "＝1+1",
    "  =1",
    " @x",
    "-",
    "- a",
]
HARMLESS = ["a", "", "'=1", "a=1", "-3.5", "+1", "-1e-5", "=" * 0, JOINER, JOINER + "a", "٣"]
ODD = st.text(st.sampled_from([JOINER, "=", "+", "-", "@", "\t", "\r", "\n", " ", "1", ".", "a", "'", '"', ",", "＝"]))


@pytest.mark.parametrize("text", DANGEROUS)
def test_a_text_that_could_be_a_formula_is_marked(text: str) -> None:
    assert marked(text) == JOINER + text
    assert restored(marked(text)) == text


@pytest.mark.parametrize("value", [*HARMLESS, None, 3, -1.5, True])
def test_other_values_and_numbers_stay(value: object) -> None:
    assert marked(value) == value


@given(ODD | st.text())
def test_every_text_is_restored(text: str) -> None:
    assert restored(marked(text)) == text
    if (written := marked(text)) == text and text:
        assert not text.startswith(tuple("=@＝＋－＠")), written


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.csv.gz"])
def test_a_table_for_spreadsheets_is_read_back_unchanged(tmp_path: Path, name: str) -> None:
    texts = [*DANGEROUS, *HARMLESS, JOINER + "=1", JOINER * 3 + "@"]
    columns = {"=text": texts, "n": list(range(len(texts))), "p": [-0.5] * len(texts)}
    with TableWriter(tmp_path / name, spreadsheet=True) as table:
        for rows in (slice(0, 5), slice(5, None)):
            table.write({key: values[rows] for key, values in columns.items()})
    (chunk,) = read_chunks(tmp_path / name)
    assert list(chunk.columns) == ["=text", "n", "p"]
    assert chunk.columns["=text"] == texts
    assert chunk.columns["p"] == ["-0.5"] * len(texts)


def test_the_file_has_a_mark_of_utf_8_and_no_formula(tmp_path: Path) -> None:
    with TableWriter(tmp_path / "t.csv", spreadsheet=True) as table:
        table.write({"@x": [*DANGEROUS, "ü"]})
    content = (tmp_path / "t.csv").read_bytes()
    assert content.startswith(b"\xef\xbb\xbf")
    with (tmp_path / "t.csv").open(encoding="utf-8-sig", newline="") as file:
        cells = [row[0] for row in csv.reader(file)]
    assert not [cell for cell in cells if cell.strip().startswith(tuple("=+-@＝＋－＠"))]


def test_without_the_option_texts_stay_as_they_are(tmp_path: Path) -> None:
    with TableWriter(tmp_path / "t.csv") as table:
        table.write({"x": ["=1"]})
    assert (tmp_path / "t.csv").read_text() == "x\n=1\n"


@pytest.mark.filterwarnings("ignore")
def test_every_verb_that_writes_a_table_of_texts(tmp_path: Path, call: Call) -> None:  # noqa: F811
    table = small_table(24, labeled=12)
    table["body"] = [f"{'=-+@'[row % 4]} {text}" for row, text in enumerate(table["body"])]
    table["body"][8:12] = table["body"][:4]  # copies, which a check finds
    source, encoder = write_csv(tmp_path / "table.csv", table), small_encoder(tmp_path / "encoder")
    run, rules = tmp_path / "run", tmp_path / "rules.yaml"
    small_fit(source, encoder, text="body", label="topic", out=run)
    rules.write_text("rules:\n- {name: a, label: money, has: [stock]}\n- {name: b, label: sport, has: [team]}\n")
    options = ("--text", "body", "--spreadsheet", "--quiet")
    for verb, column in {
        f"predict {run} {source}": "body",
        f"suggest {run} {source} -n 5": "body",
        f"label {source} --rules {rules}": "body",
        f"label {source} --classes money,sport --model {encoder}": "body",
        f"check {source} --label topic --encoder {encoder} --max-length 32": "text",
    }.items():
        out = tmp_path / "out.csv"
        assert call(*verb.split(" "), *options, "-o", str(out))[0] == 0, verb
        written = out.read_text(encoding="utf-8-sig")
        assert f"{JOINER}= " in written or f"{JOINER}+ " in written, verb
        (chunk,) = read_chunks(out)
        assert set(chunk.columns[column]) <= set(table["body"]), verb
    small_fit(
        None, encoder, from_run=run, labels=str(_filled(tmp_path / "out.csv", run, source)), out=tmp_path / "more"
    )


def _filled(path: Path, run: Path, source: str) -> Path:
    """Rows to label, filled in by a program that keeps the marks, as spreadsheets do."""
    drift.suggest(run, source, 4, out=path, text="body", spreadsheet=True)
    with path.open(encoding="utf-8-sig", newline="") as file:
        header, *rows = csv.reader(file)
    for row in rows:
        row[header.index("topic")] = "money"
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path
