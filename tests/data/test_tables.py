"""Tables of every format are read and written unchanged; errors are one line that names the position."""

import csv
import gzip
import io
import json
import math
import os
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drift.data.table_writer import TableWriter
from drift.data.tables import Chunk, column_names, read_chunks, source_name
from drift.errors import ConfigError, DataError, DriftError, FileError, LabelError, StateError

TEXT_ENDINGS = [".csv", ".tsv", ".csv.gz", ".tsv.gz"]
TYPED_ENDINGS = [".jsonl", ".ndjson", ".json-lines", ".jsonl.gz", ".parquet"]


def put(path: Path, content: str | bytes) -> Path:
    data = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def read(source: Any, **options: Any) -> dict[str, list[Any]]:
    """The whole table; checks that the chunks are consecutive."""
    whole: dict[str, list[Any]] = {}
    rows = 0
    for chunk in read_chunks(source, **options):
        assert chunk.first == rows
        assert {len(values) for values in chunk.columns.values()} == {len(chunk)}
        rows += len(chunk)
        for name, values in chunk.columns.items():
            whole.setdefault(name, []).extend(values)
    return whole


def write(path: Path, columns: dict[str, list[Any]], size: int = 3) -> None:
    with TableWriter(path) as table:
        for start in range(0, max(len(next(iter(columns.values()))), 1), size):
            table.write({name: values[start : start + size] for name, values in columns.items()})


# Reading


@pytest.mark.parametrize(
    ("name", "content", "columns"),
    [
        ("a.csv", 'text,label\n"a, b",1\n,\n', {"text": ["a, b", ""], "label": ["1", ""]}),
        ("a.csv", 'text,label\r\n"two\r\nlines",x\r\n', {"text": ["two\r\nlines"], "label": ["x"]}),
        ("a.csv", "text\rold\rmac", {"text": ["old", "mac"]}),
        ("a.csv", '\n\ntext\n\n"he said ""hi"""\n\n5" pipe\n', {"text": ['he said "hi"', '5" pipe']}),
        ("a.CSV", "text\nnan\nNone\n007\n", {"text": ["nan", "None", "007"]}),
        ("a.tsv", "text\tlabel\na, b\t1\n", {"text": ["a, b"], "label": ["1"]}),
        ("a.csv.gz", "text\nä\n", {"text": ["ä"]}),
        ("a.csv", b"\xef\xbb\xbftext,b\n\xc3\xa4,1\n", {"text": ["ä"], "b": ["1"]}),
        ("a.jsonl", b'\xef\xbb\xbf{"text": "a"}\n', {"text": ["a"]}),
        ("a.jsonl", '{"a": 1, "b": [null]}\n\n{"b": 3}\r\n{"a": 2.5}', {"a": [1, None, 2.5], "b": [[None], 3, None]}),
        ("a.ndjson.gz", '{"text": "\\ud83d\\ude00 \\u0000"}\n', {"text": ["😀 \0"]}),
    ],
)  # fmt: skip
def test_the_content_of_a_file(tmp_path: Path, name: str, content: str | bytes, columns: dict[str, list[Any]]) -> None:
    path = put(tmp_path / name, content)
    for size in (1, 2, 2048):
        assert read(path, size=size) == columns
    assert column_names(str(path)) == list(columns)


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "utf-16-le", "shift_jis"])
@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_another_encoding_is_an_argument(tmp_path: Path, encoding: str, ending: str) -> None:
    word = "テスト" if encoding == "shift_jis" else "café ਊ"[: 4 if encoding == "cp1252" else None]  # ਊ has a byte 0x0a
    content = f"text,n\n{word},1\n" if ending == "csv" else json.dumps({"text": word, "n": "1"}, ensure_ascii=False)
    path = put(tmp_path / f"a.{ending}", content.encode(encoding))
    assert read(path, encoding=encoding) == {"text": [word], "n": ["1"]}


@pytest.mark.parametrize("ending", [*TEXT_ENDINGS, *TYPED_ENDINGS])
def test_a_text_of_a_hundred_thousand_words(tmp_path: Path, ending: str) -> None:
    columns = {"text": ["word, " * 100_000, "short"], "label": ["x", "y"]}
    write(tmp_path / f"long{ending}", columns)
    assert read(tmp_path / f"long{ending}") == columns


def test_a_data_frame_keeps_rows_columns_and_says_none_for_missing() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "text": ["a", None, "c"],
            "n": [1, 2, 3],
            "x": [0.5, math.nan, 2.0],
            "kind": pandas.Categorical(["u", "v", None]),
            "whole": pandas.array([1, None, 3], dtype="Int64"),
            7: [["t"], [], ["u", "v"]],
        },
        index=[5, 5, 1],
    )
    columns = {
        "text": ["a", None, "c"],
        "n": [1, 2, 3],
        "x": [0.5, None, 2.0],
        "kind": ["u", "v", None],
        "whole": [1, None, 3],
        "7": [["t"], [], ["u", "v"]],
    }
    assert read(frame, size=2) == columns
    assert column_names(frame) == list(columns)
    assert {type(value) for value in read(frame)["n"]} == {int}
    assert source_name(frame) == "the DataFrame"
    with pytest.raises(DataError, match=r"the DataFrame: two columns are called '7'"):
        read(pandas.DataFrame([[1, 2]], columns=[7, "7"]))
    with pytest.raises(DataError, match="the DataFrame has no rows"):
        read(frame[:0])
    with pytest.raises(DataError, match="the DataFrame: there are no columns"):
        read(frame[[]])


def test_a_dataset_is_read_in_its_order_whatever_its_format() -> None:
    datasets = pytest.importorskip("datasets")
    columns = {"text": [f"t{row}" for row in range(7)], "n": [0, 1, None, 3, 4, 5, 6]}
    dataset = datasets.Dataset.from_dict(columns)
    assert read(dataset, size=3) == columns
    order = [4, 0, 2]
    chosen = dataset.select(order).with_format("numpy")
    assert read(chosen, size=2) == {name: [values[row] for row in order] for name, values in columns.items()}
    assert source_name(chosen) == "the Dataset"
    with pytest.raises(ConfigError, match=r"the DatasetDict is not a table.*one split"):
        read(datasets.DatasetDict(train=dataset))


def test_a_class_label_of_a_dataset_is_the_name_of_the_class() -> None:
    datasets = pytest.importorskip("datasets")
    features = datasets.Features({"n": datasets.Value("int64"), "kind": datasets.ClassLabel(names=["money", "sport"])})
    dataset = datasets.Dataset.from_dict({"n": [0, 1, -1, 1], "kind": [1, 0, -1, None]}, features=features)
    assert read(dataset, size=3) == {"n": [0, 1, -1, 1], "kind": ["sport", "money", None, None]}
    assert read(dataset.select([1, 0]).with_format("numpy"))["kind"] == ["money", "sport"]
    plain = datasets.Dataset.from_dict({"n": [0, 0], "kind": [0, 2]})
    with pytest.raises(LabelError, match=r"^the Dataset, row 2: column 'kind' has class 2, and only 2 have names; fix"):
        read(plain.cast(features))


def test_parquet_of_others(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    kinds = arrow.array(["x", "y", "x", None]).dictionary_encode()
    table = arrow.table({"text": ["a", "b", "c", "d"], "kind": kinds, "n": arrow.array([1, 2, 3, 4], arrow.int8())})
    parquet.write_table(table, tmp_path / "a.parquet", row_group_size=3)
    expected = {"text": ["a", "b", "c", "d"], "kind": ["x", "y", "x", None], "n": [1, 2, 3, 4]}
    assert read(tmp_path / "a.parquet", size=2) == expected
    twice = arrow.Table.from_arrays([arrow.array([1]), arrow.array([2])], names=["a", "a"])
    parquet.write_table(twice, tmp_path / "twice.parquet")
    with pytest.raises(DataError, match=r"twice\.parquet: two columns are called 'a'"):
        read(tmp_path / "twice.parquet")


@pytest.mark.parametrize(
    ("name", "content", "kind", "message"),
    [
        ("a.csv", "text,label\na,b\nc\n", DataError, r"a\.csv:3: 1 fields, the header has 2; fix the line"),
        ("a.csv", 'text,label\n"a\nb",b\n1,2,3\n', DataError, r"a\.csv:4: 3 fields, the header has 2"),
        ("a.csv", 'text,label\na,b\n"c,d\ne,f\n', DataError, r"a\.csv:3: a quote .* not closed"),
        ("a.csv", 'text,label\na,b\n"c"d,e\n', DataError, r"a\.csv:3: a quote .* not at the end of its field"),
        ("a.csv", "text\na\nb\0c\n", DataError, r"a\.csv:3: a NUL byte; .*--encoding utf-16-le"),
        ("a.csv", "text,label,text\na,b,c\n", DataError, r"a\.csv:1: two columns are called 'text'"),
        ("a.csv", "text,,x\na,b,c\n", DataError, r"a\.csv:1: column 2 of 3 has no name"),
        ("a.csv", "", DataError, r"a\.csv is empty"),
        ("a.jsonl", "\n\n", DataError, r"a\.jsonl is empty"),
        ("a.csv", "text,label\n", DataError, r"a\.csv has no rows"),
        ("a.csv", b"text\nok\n\nna\xefve\n", DataError, r"a\.csv:4: byte 0xef is not utf-8; .*--encoding cp1252"),
        ("a.csv.gz", b"text\ncut \xc3", DataError, r"a\.csv\.gz:2: byte 0xc3 is not utf-8"),
        ("a.csv", "text\na\n".encode("utf-16"), DataError, r"a\.csv:1: byte 0xff is not utf-8; .*--encoding utf-16"),
        ("a.jsonl", b'{"a": "\xff"}\n', DataError, r"a\.jsonl:1: byte 0xff is not utf-8"),
        ("a.jsonl", '{"a": 1}\n{"a": \n', DataError, r"a\.jsonl:2: not JSON \(Expecting value at column 6"),
        ("a.jsonl", '{"a": 1}\n[1]\n', DataError, r"a\.jsonl:2: '\[1\]' is not an object"),
        ("a.jsonl", "[" * 100_000, DataError, r"a\.jsonl:1: not JSON"),
        ("a.jsonl", '{"a": ' + "1" * 5000 + "}", DataError, r"a\.jsonl:1: not JSON"),
        ("a.jsonl", '{"a": "cut \\uD83D"}', DataError, r"a\.jsonl:1: '\\ud83d' is half a character"),
        ("a.jsonl", '{"a": 1}\n' * 1000 + '\n{"a": 2, "b": 3}\n', DataError, r"a\.jsonl:1002: key 'b' is in none of"),
        ("a.jsonl", "{}\n{}\n", DataError, r"a\.jsonl:1: there are no columns"),
        ("a.jsonl", '{" ": 1}\n', DataError, r"a\.jsonl:1: column 1 of 1 has no name"),
        ("a.parquet", "text\na\n", FileError, r"a\.parquet is not a complete Parquet file"),
        ("a.parquet", "", FileError, r"a\.parquet is not a complete Parquet file"),
        ("a.xlsx", "", FileError, r"a\.xlsx: the name does not end in a format known here; use \.csv"),
        ("a.parquet.gz", "", FileError, r"a\.parquet\.gz: the name does not end in"),
    ],
)  # fmt: skip
def test_an_error_is_one_line_that_names_the_position(
    tmp_path: Path, name: str, content: str | bytes, kind: type[DriftError], message: str
) -> None:
    path = put(tmp_path / name, content)
    with pytest.raises(kind, match=message) as caught:
        read(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_a_path_that_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(FileError, match=r"folder\.csv is a folder"):
        read(tmp_path / "folder.csv")
    with pytest.raises(FileError, match=r"none\.csv is not there"):
        read(tmp_path / "none.csv")
    with pytest.raises(FileError, match=r"none\.parquet is not there"):
        read(tmp_path / "none.parquet")
    with pytest.raises(ConfigError, match="the list is not a table"):
        read(["a"])


def test_an_encoding_that_is_none(tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", "text\na\n")
    for encoding in ("klingon", "base64"):
        with pytest.raises(ConfigError, match=f"--encoding {encoding}: no such encoding"):
            read(path, encoding=encoding)


def test_utf_16_without_its_mark(tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", "text\na\n".encode("utf-16-le"))
    with pytest.raises(DataError, match=r"a\.csv:1: no byte order mark.*--encoding utf-16-le"):
        read(path, encoding="utf-16")


def test_the_line_of_a_byte_far_into_a_file(tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", "text\n" + "ä\n" * 5000 + "ok\n")
    path.write_bytes(path.read_bytes() + b"\xe4\n")
    with pytest.raises(DataError, match=r"a\.csv:5003: byte 0xe4"):
        read(path)


@pytest.mark.parametrize("damage", [lambda data: data[:-8], lambda data: data[: len(data) // 2], lambda data: b"no"])
@pytest.mark.parametrize("ending", [".csv.gz", ".jsonl.gz"])
def test_a_gzip_file_that_is_not_whole(tmp_path: Path, ending: str, damage: Any) -> None:
    path = tmp_path / f"a{ending}"
    write(path, {"text": [f"row {row * 7919 % 1000}" for row in range(1000)]})
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(FileError, match="is not a complete gzip file"):
        read(path)


def test_a_parquet_file_that_is_not_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write(path, {"text": [f"row {row}" for row in range(1000)]}, size=1000)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(FileError, match="is not a complete Parquet file"):
        read(path)


@pytest.mark.parametrize("ending", [".csv", ".jsonl"])
def test_memory_does_not_grow_with_the_file(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"a{ending}"
    write(path, {"text": ["x" * 500] * 10_000}, size=1000)

    def peak(rows: int) -> int:
        tracemalloc.start()
        seen = 0
        for chunk in read_chunks(path, size=100):
            seen += len(chunk)
            if seen >= rows:
                break
        assert seen == rows
        reached = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return reached

    assert peak(10_000) < peak(1000) + 100_000  # the file holds 5 MB of text


def test_memory_does_not_grow_with_a_parquet_group(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    path = tmp_path / "a.parquet"
    write(path, {"text": [str(row) * 100 for row in range(50_000)]}, size=50_000)
    assert path.stat().st_size < 23_000_000 < arrow.array(read(path)["text"]).nbytes
    taken = [arrow.total_allocated_bytes() for _ in read_chunks(path, size=100)]
    assert max(taken) < 5_000_000


@pytest.mark.skipif("DRIFT_DATA" not in os.environ, reason="DRIFT_DATA is not set")
def test_ag_news() -> None:
    path = Path(os.environ["DRIFT_DATA"]) / "agnews" / "test.jsonl.gz"
    assert column_names(path) == ["text", "label", "weak"]
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    assert read(path) == {name: [row[name] for row in rows] for name in ("text", "label", "weak")}
    assert len(rows) == 7600


# Writing

# All characters except unpaired surrogates and, in CSV, NUL, which it cannot hold.
characters = st.characters(exclude_categories=["Cs"])
awkward = st.sampled_from(
    ["", " ", "\n", "\r", "\r\n", '"', '""', ",", "\t", "'", "\ufeff", "\u2028", "a\nb", '"a', "#", "="]
)
texts = st.one_of(awkward, st.text(characters))
cells = st.one_of(awkward, st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
column = st.text("abcäß,\"' \n", min_size=1).filter(lambda name: name.strip() != "")
rarely = settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def tables(values: st.SearchStrategy[Any], *kinds: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, list[Any]]]:
    """Tables with at least one row; each column holds one type of value."""

    def filled(rows: int) -> st.SearchStrategy[dict[str, list[Any]]]:
        column_of = [st.lists(kind, min_size=rows, max_size=rows) for kind in (values, *kinds)]
        return st.dictionaries(column, st.one_of(column_of), min_size=1, max_size=4)

    return st.integers(1, 8).flatmap(filled)


@pytest.mark.parametrize("ending", TEXT_ENDINGS)
@rarely
@given(columns=tables(cells))
def test_written_and_read_strings_are_the_same(tmp_path: Path, ending: str, columns: dict[str, list[Any]]) -> None:
    path = tmp_path / f"a{ending}"
    write(path, columns)
    assert read(path, size=2) == columns


@pytest.mark.parametrize("ending", TYPED_ENDINGS)
@rarely
@given(
    columns=tables(
        st.none() | texts,
        st.none() | st.integers(-(2**63), 2**63 - 1),
        st.none() | st.floats(allow_nan=False, allow_infinity=False),
        st.none() | st.booleans(),
        st.none() | st.lists(texts, min_size=1),
    )
)
def test_written_and_read_values_are_the_same(tmp_path: Path, ending: str, columns: dict[str, list[Any]]) -> None:
    path = tmp_path / f"a{ending}"
    write(path, columns, size=8)  # one batch: a type that appears only in the second batch is an error in Parquet
    assert read(path, size=3) == columns


def test_values_that_a_format_cannot_represent(tmp_path: Path) -> None:
    columns = {"text": ["a", None, "c"], "score": [0.1, math.nan, None]}
    write(tmp_path / "a.csv", columns)
    assert (tmp_path / "a.csv").read_bytes() == b"text,score\na,0.1\n,nan\nc,\n"
    write(tmp_path / "a.jsonl", columns)
    assert read(tmp_path / "a.jsonl") == {"text": ["a", None, "c"], "score": [0.1, None, None]}
    write(tmp_path / "a.parquet", columns)
    score = read(tmp_path / "a.parquet")["score"]
    assert score[0] == 0.1
    assert math.isnan(score[1])
    assert score[2] is None
    write(tmp_path / "one.csv", {"text": [None, "a"]})
    assert read(tmp_path / "one.csv") == {"text": ["", "a"]}


def test_csv_is_read_by_other_programs(tmp_path: Path) -> None:
    rows = [['"', "a\rb"], ["x,y", "\n"], ["", "ä"]]
    write(tmp_path / "a.csv", {"a": [row[0] for row in rows], "b": [row[1] for row in rows]})
    content = (tmp_path / "a.csv").read_bytes().decode()
    assert list(csv.reader(io.StringIO(content, newline=""))) == [["a", "b"], *rows]
    assert content.count("\r") == 1


def test_dates_decimals_and_arrays_go_into_json(tmp_path: Path) -> None:
    import datetime
    import decimal

    import numpy as np

    day = datetime.date(2024, 2, 29)
    write(tmp_path / "a.jsonl", {"day": [day], "price": [decimal.Decimal("1.50")], "p": [np.array([0.5, 1.0])]})
    assert read(tmp_path / "a.jsonl") == {"day": ["2024-02-29"], "price": ["1.50"], "p": [[0.5, 1.0]]}


def test_parquet_types_are_those_of_the_first_batch(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    with TableWriter(path) as table:
        table.write({"weak": [None, None], "p": [0.5, 1.5], "tags": [["a"], []]})
        table.write({"weak": ["x", None], "p": [1, None], "tags": [[], None]})
    columns = {"weak": [None, None, "x", None], "p": [0.5, 1.5, 1.0, None], "tags": [["a"], [], [], None]}
    assert read(path) == columns


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ([1], [1.5], "column 'a' is double, in the first rows it was int64"),
        (["x"], [1], "a.*string vs int64"),
        ([{"k": 1}], [{"k": 1, "new": 2}], "column 'a' is struct"),
        (["x"], ["y", 1], "column 'a': "),
        ([2**70], [], "column 'a': "),
        (["cut \ud83d"], [], "surrogates not allowed"),
    ],
)
def test_a_batch_that_does_not_fit_parquet(tmp_path: Path, first: list[Any], second: list[Any], message: str) -> None:
    def both() -> None:
        with TableWriter(tmp_path / "a.parquet") as table:
            table.write({"a": first})
            table.write({"a": second})

    with pytest.raises(DataError, match=message) as caught:
        both()
    assert "\n" not in str(caught.value)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("a.csv", "a\0b", "NUL"),
        ("a.csv", "cut \ud83d", "surrogates not allowed"),
        ("a.jsonl", "cut \ud83d", "surrogates not allowed"),
        ("a.jsonl", math.inf, "not JSON compliant"),
        ("a.jsonl", b"\0", "bytes"),
    ],
)
def test_a_value_that_the_format_cannot_hold(tmp_path: Path, name: str, value: Any, message: str) -> None:
    with pytest.raises(DataError, match=rf"{name} cannot hold these rows \(.*{message}"):
        write(tmp_path / name, {"a": [value]})
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".csv.gz", ".parquet"])
@pytest.mark.parametrize("fault", [ValueError, OSError, KeyboardInterrupt])
@pytest.mark.parametrize("there", [True, False])
def test_a_fault_in_the_block_leaves_the_old_file_and_no_debris(
    tmp_path: Path, ending: str, fault: type[BaseException], there: bool
) -> None:
    path = tmp_path / f"a{ending}"
    if there:
        write(path, {"old": ["1"]})

    def fails_half_way() -> None:
        with TableWriter(path) as table:
            table.write({"new": ["2"]})
            assert os.listdir(tmp_path) != [path.name]
            raise fault

    with pytest.raises(fault) as caught:
        fails_half_way()
    assert type(caught.value) is fault
    assert os.listdir(tmp_path) == ([path.name] if there else [])
    assert not there or read(path) == {"old": ["1"]}


def test_a_table_may_be_written_over_itself_while_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "a.csv"
    write(path, {"n": [str(row) for row in range(100)]})

    def grown(chunks: Iterator[Chunk]) -> None:
        with TableWriter(path) as table:
            for chunk in chunks:
                table.write({**chunk.columns, "more": ["x"] * len(chunk)})

    grown(read_chunks(path, size=7))
    assert read(path) == {"n": [str(row) for row in range(100)], "more": ["x"] * 100}
    assert os.listdir(path.parent) == ["a.csv"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "a.csv").symlink_to(tmp_path / "elsewhere" / "b.csv")
    write(tmp_path / "a.csv", {"a": ["1"]})
    assert (tmp_path / "a.csv").is_symlink()
    assert read(tmp_path / "elsewhere" / "b.csv") == {"a": ["1"]}


def test_the_same_rows_make_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a.csv.gz", "b.csv.gz"):
        write(tmp_path / name, {"a": ["1", "2"]})
    assert (tmp_path / "a.csv.gz").read_bytes() == (tmp_path / "b.csv.gz").read_bytes()


def test_a_target_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(FileError, match=r"folder\.csv is a folder"):
        TableWriter(tmp_path / "folder.csv")
    with pytest.raises(FileError, match="does not end in a format"):
        TableWriter(tmp_path / "a.txt")
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match=r"a\.csv cannot be written"):
        write(tmp_path / "file" / "a.csv", {"a": ["1"]})


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
def test_columns_are_the_same_in_every_batch_and_there_is_one(tmp_path: Path, ending: str) -> None:
    def changes() -> None:
        with TableWriter(tmp_path / f"a{ending}") as table:
            table.write({"a": [1]})
            table.write({"b": [1]})

    def nothing() -> None:
        with TableWriter(tmp_path / f"a{ending}"):
            pass

    with pytest.raises(DataError, match=r"columns \['b'\] after \['a'\]"):
        changes()
    with pytest.raises(StateError, match="nothing was written"):
        nothing()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("text", ["text;label\na, b;c\n", '\n"text";"label"\n"a, b";c\n', 'text\tlabel\n"a, b"\tc\n'])
def test_a_csv_may_have_other_separators_than_commas(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    (chunk,) = read_chunks(tmp_path / "a.csv")
    assert chunk.columns == {"text": ["a, b"], "label": ["c"]}


def test_a_comma_in_a_header_counts_before_other_marks(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('a;b,"c\td"\n1;2,3\n', encoding="utf-8")
    (chunk,) = read_chunks(tmp_path / "a.csv")
    assert chunk.columns == {"a;b": ["1;2"], "c\td": ["3"]}
