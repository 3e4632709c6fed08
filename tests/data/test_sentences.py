"""Sentences are the same from every source, and every error is one line that names the position."""

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drift.data.sentences import Sentences, read_sentences, word_offsets
from drift.data.tags import Span, faults, spans_of
from drift.errors import ConfigError, DataError, DriftError, FileError, LabelError

TOKENS = [["EU", "rejects", "German", "call"], ["New", "York", "Paris"]]
LABELS: list[Any] = [["B-ORG", "O", "B-MISC", "O"], ["B-LOC", "I-LOC", "B-LOC"]]
WEAK: list[Any] = [["B-ORG", None, None, None], ["O", "B-LOC", None]]
ROWS = [
    {"tokens": words, "labels": gold, "weak": votes} for words, gold, votes in zip(TOKENS, LABELS, WEAK, strict=True)
]

needs_data = pytest.mark.skipif("DRIFT_DATA" not in os.environ, reason="DRIFT_DATA does not say where real data are")

Write = Callable[[str, Any], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a text, or rows as JSON lines, to a file of this name."""

    def written(name: str, content: Any) -> Path:
        path = tmp_path / name
        text = content if isinstance(content, str) else "".join(json.dumps(row) + "\n" for row in content)
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
        return path

    return written


def columns(*sentences: list[tuple[str, ...]], separator: str = " ") -> str:
    return "\n".join("".join(separator.join(line) + "\n" for line in sentence) for sentence in sentences)


def refused(error: type[DriftError], source: Any, **options: Any) -> str:
    with pytest.raises(error) as caught:
        read_sentences(source, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_tables_of_every_kind_say_the_same(write: Write, tmp_path: Path) -> None:
    frame = pandas.DataFrame(ROWS)
    frame.to_parquet(tmp_path / "rows.parquet")
    sources = [
        write("rows.jsonl", ROWS),
        write("rows.jsonl.gz", ROWS),
        tmp_path / "rows.parquet",
        frame,
        pandas.read_parquet(tmp_path / "rows.parquet"),  # lists come as arrays
        datasets.Dataset.from_list(ROWS),
    ]
    for source in sources:
        read = read_sentences(source)
        assert (read.tokens, read.labels, read.weak) == (TOKENS, LABELS, WEAK)
        assert (read.texts, read.offsets, read.scheme, read.notes) == (None, None, "IOB2", [])


@pytest.mark.parametrize("name", ["rows.conll", "rows.txt", "rows.bio.gz"])
@pytest.mark.parametrize("separator", [" ", "\t", "   "])
def test_conll_columns_say_the_same(write: Write, name: str, separator: str) -> None:
    sentences = [
        [(token, "NN", weak or "_", label) for token, weak, label in zip(*sentence, strict=True)]
        for sentence in zip(TOKENS, WEAK, LABELS, strict=True)
    ]
    text = "-DOCSTART- -X- O O\n\n\n" + columns(*sentences, separator=separator) + "-DOCSTART- -X- O O\n"
    for written in (text, text.replace("\n", "\r\n"), "\ufeff" + text.rstrip()):
        read = read_sentences(write(name, written), weak="3")
        assert (read.tokens, read.labels, read.weak) == (TOKENS, LABELS, WEAK)


def test_columns_are_named_or_numbered(write: Write) -> None:
    path = write("rows.conll", "B-LOC x EU O\n")
    assert read_sentences(path, tokens="3", label="1").tokens == [["EU"]]
    assert read_sentences(path, tokens="3", label="1").labels == [["B-LOC"]]
    assert read_sentences(path, tokens="3", label="").labels == [None]
    assert read_sentences(path, tokens="3", label="4", weak="1").weak == [["B-LOC"]]
    table = write("rows.jsonl", [{"form": ["EU"], "gold": ["B-LOC"], "guess": [None], "labels": ["O"]}])
    read = read_sentences(table, tokens="form", label="gold", weak="guess")
    assert (read.tokens, read.labels, read.weak) == ([["EU"]], [["B-LOC"]], [None])
    assert read_sentences(table, tokens="form", label="").labels == [None]


def test_a_file_of_tokens_alone_is_unlabelled(write: Write) -> None:
    read = read_sentences(write("rows.txt", "New\nYork\n\nParis\n"))
    assert (read.tokens, read.labels, read.weak) == ([["New", "York"], ["Paris"]], [None, None], [None, None])


def test_the_last_free_column_is_the_label(write: Write) -> None:
    read = read_sentences(write("rows.conll", "EU B-ORG O\n"), weak="3")
    assert (read.labels, read.weak) == ([["B-ORG"]], [["O"]])


@pytest.mark.parametrize("scheme", [None, "given"])
@pytest.mark.parametrize(
    ("name", "tags", "stored"),
    [
        ("IOB1", "I-LOC I-LOC B-LOC O I-PER", "B-LOC I-LOC B-LOC O B-PER"),
        ("IOB2", "B-LOC I-LOC B-LOC O B-PER", "B-LOC I-LOC B-LOC O B-PER"),
        ("BIOES", "B-LOC E-LOC S-LOC O S-PER", "B-LOC I-LOC B-LOC O B-PER"),
        ("IO", "Loc Loc Loc O Per", "Loc Loc Loc O Per"),
    ],
)
def test_every_scheme_is_stored_as_iob2_or_plain_names(
    write: Write, scheme: str | None, name: str, tags: str, stored: str
) -> None:
    path = write("rows.conll", columns([("x", tag) for tag in tags.split()]))
    read = read_sentences(path, scheme=scheme and name)
    assert read.labels == [stored.split()]
    assert read.scheme == ("IO" if name == "IO" else "IOB2")


def test_io_is_stored_without_its_prefix(write: Write) -> None:
    read = read_sentences(write("rows.conll", "a I-LOC\nb I-LOC\nc O\nd _\n"), scheme="IO")
    assert read.labels == [["LOC", "LOC", "O", None]]


def test_no_tag_is_not_o_and_no_tags_are_no_labels(write: Write) -> None:
    assert read_sentences(write("a.conll", "a\tB-X\nb\t\nc\t_\n\nd\t_\n")).labels == [["B-X", None, None], None]
    rows = [{"tokens": ["a"], "labels": ["O"]}, {"tokens": ["a"], "labels": [None]}, {"tokens": ["a"]}]
    assert read_sentences(write("a.jsonl", rows)).labels == [["O"], None, None]


def test_class_numbers_get_the_names_of_their_dataset() -> None:
    names = ["O", "B-LOC", "I-LOC"]
    features = datasets.Features(
        {
            "tokens": datasets.Sequence(datasets.Value("string")),
            "ner_tags": datasets.Sequence(datasets.ClassLabel(names=names)),
        }
    )
    rows = {"tokens": [["New", "York", "is", "big"], ["x"]], "ner_tags": [[1, 2, 0, -1], None]}
    read = read_sentences(datasets.Dataset.from_dict(rows, features=features))
    assert read.labels == [["B-LOC", "I-LOC", "O", None], None]


def test_numbers_without_names_are_refused(write: Write) -> None:
    message = refused(LabelError, write("rows.jsonl", [{"tokens": ["a", "b"], "ner_tags": [0, 3]}]))
    assert "rows.jsonl, row 1, token 1: 0 is not the name of a tag" in message


def test_texts_with_spans_become_tokens_with_tags(write: Write) -> None:
    text = "He saw New York, Paris."
    rows = [
        {
            "text": text,
            "spans": [[17, 22, "LOC"], {"start": 7, "end": 15, "label": "LOC"}],
            "weak_spans": [[7, 10, "PER"]],
        },
        {"text": "Nothing here", "spans": []},
        {"text": "Not labelled"},
    ]
    for source in (write("rows.jsonl", rows), pandas.DataFrame(rows)):
        read = read_sentences(source)
        assert read.tokens[0] == ["He", "saw", "New", "York", ",", "Paris", "."]
        assert read.labels == [["O", "O", "B-LOC", "I-LOC", "O", "B-LOC", "O"], ["O", "O"], None]
        assert read.weak == [[None, None, "B-PER", None, None, None, None], None, None]
        assert read.texts == [row["text"] for row in rows]
        assert read.offsets is not None
        assert [text[start:end] for start, end in read.offsets[0]] == read.tokens[0]


@given(text=st.text(max_size=60))
def test_words_cover_all_but_space_and_never_overlap(text: str) -> None:
    offsets = word_offsets(text)
    flat = [bound for pair in offsets for bound in pair]
    assert flat == sorted(flat)
    assert "".join(text[start:end] for start, end in offsets) == "".join(text.split())
    for start, end in offsets:
        assert end - start == 1 or all(char.isalnum() or char == "_" for char in text[start:end])


@given(data=st.data(), text=st.text(alphabet="ab ,\u00e9\u4e2d", min_size=1, max_size=30))
def test_spans_of_characters_come_back_from_the_tags(data: st.DataObject, text: str) -> None:
    offsets = word_offsets(text)
    bounds = sorted(data.draw(st.sets(st.integers(0, len(offsets)), max_size=6)))
    spans = [Span(start, end, "X") for start, end in zip(bounds[::2], bounds[1::2], strict=False)]
    written = [[offsets[span.start][0], offsets[span.end - 1][1], "X"] for span in spans]
    frame = pandas.DataFrame({"text": [text, "one more"], "spans": [written, []]})
    assert spans_of(read_sentences(frame).labels[0 if offsets else -1] or []) == spans


@pytest.mark.parametrize(
    ("spans", "message"),
    [
        ([[4, 6, "X"]], "row 1: span 4-6 'Yo' cuts the token 'York'"),
        ([[0, 4, "X"]], "row 1: span 0-4 'New ' begins or ends with a space"),
        ([[3, 8, "X"]], "row 1: span 3-8 ' York' begins or ends with a space"),
        ([[0, 3, "X"], [0, 8, "Y"]], "row 1: span 0-8 Y overlaps 0-3 X"),
        ([[4, 9, "X"]], "row 1: span 4-9 is not within the 8 characters"),
        ([[-4, 8, "X"]], "row 1: span -4-8 is not within"),
        ([[4, 4, "X"]], "row 1: span 4-4 is not within"),
        ([[0, 3, "O"]], "row 1: span 0-3 is labelled O"),
        ([[0, 3]], "row 1: '[0, 3]' is not a span such as"),
        ([{"start": 0, "end": 3}], "is not a span such as"),
        ([{"start": 0.5, "end": 3, "label": "X"}], "is not a span such as"),
        (["X"], "row 1: 'X' is not a span such as"),
    ],
)
@pytest.mark.parametrize("column", ["spans", "weak_spans"])
def test_invalid_spans(write: Write, column: str, spans: list[Any], message: str) -> None:
    assert message in refused(LabelError, write("rows.jsonl", [{"text": "New York", column: spans}]))


@pytest.mark.parametrize(
    ("row", "error", "message"),
    [
        ({"tokens": ["a", "b"], "labels": ["O"]}, LabelError, "rows.jsonl, row 2: 2 tokens and 1 labels"),
        ({"tokens": ["a"], "weak": []}, LabelError, "rows.jsonl, row 2: 1 tokens and 0 weak tags"),
        ({"tokens": ["a", 3]}, DataError, "rows.jsonl, row 2, token 2: 3 is not a string"),
        ({"tokens": "a b"}, DataError, "rows.jsonl, row 2: the tokens are 'a b', not a list"),
        ({"tokens": ["a"], "labels": "O"}, DataError, "rows.jsonl, row 2: the labels are 'O', not a list"),
        ({"tokens": ["a", "b"], "labels": ["O", "U-X"]}, LabelError, "row 2, token 2: 'U-X' is not a tag of IOB2"),
        ({"tokens": ["a"], "weak": ["LOC"]}, LabelError, "row 2, token 1: 'LOC' is not a tag of IOB2"),
        ({"tokens": ["a"], "labels": [["O"]]}, LabelError, "row 2, token 1: ['O'] is not the name of a tag"),
    ],
)
def test_invalid_rows(write: Write, row: dict[str, Any], error: type[DriftError], message: str) -> None:
    assert message in refused(error, write("rows.jsonl", [ROWS[0], row]))


@pytest.mark.parametrize(
    ("text", "options", "error", "message"),
    [
        ("a O\nb\n", {}, DataError, "rows.conll:2: 1 columns, the first line has 2"),
        ("a O\n\nb\tO x\n", {}, DataError, "rows.conll:3: 3 columns, the first line has 2"),
        ("a O\n\nb O\nc X-LOC\n", {}, LabelError, "rows.conll:4: 'X-LOC' is not a tag of IOB2"),
        ("a B-LOC\nb S-LOC\n", {"scheme": "IOB2"}, LabelError, "rows.conll:2: 'S-LOC' is not a tag of IOB2"),
        ("a O\n", {"label": "3"}, ConfigError, "rows.conll has no column '3'"),
        ("a O\n", {"label": "tag"}, ConfigError, "rows.conll has no column 'tag'"),
        ("a O\n", {"label": "1"}, ConfigError, "each must be a column of its own"),
        ("a O\n", {"scheme": "BILOU"}, ConfigError, "'BILOU' is not one of"),
        ("a O\n", {"encoding": "utf-88"}, ConfigError, "utf-88: no such encoding"),
        ("a \0\n", {}, DataError, "rows.conll:1: a NUL byte"),
        ("", {}, DataError, "rows.conll has no tokens"),
        ("-DOCSTART- O\n\n \n", {}, DataError, "rows.conll has no tokens"),
    ],
)
def test_invalid_columns(
    write: Write, text: str, options: dict[str, str], error: type[DriftError], message: str
) -> None:
    assert message in refused(error, write("rows.conll", text), **options)


def test_invalid_files(write: Write, tmp_path: Path) -> None:
    (tmp_path / "latin.conll").write_bytes("a O\ncaf\u00e9 O\n".encode("cp1252"))
    assert "latin.conll:2: byte 0xe9 is not utf-8" in refused(DataError, tmp_path / "latin.conll")
    assert read_sentences(tmp_path / "latin.conll", encoding="cp1252").tokens == [["a", "caf\u00e9"]]
    (tmp_path / "cut.conll.gz").write_bytes(gzip.compress(b"a O\n")[:-6])
    assert "not a complete gzip file" in refused(FileError, tmp_path / "cut.conll.gz")
    assert "is not there" in refused(FileError, tmp_path / "none.conll")
    assert "has no rows" in refused(DataError, pandas.DataFrame({"tokens": []}))
    assert "has no column 'tokens'" in refused(ConfigError, write("rows.jsonl", [{"token": ["a"]}]))
    assert "is not a table" in refused(ConfigError, [["a"]])


def test_sentences_without_tokens_are_left_out_and_counted(write: Write) -> None:
    read = read_sentences(write("rows.jsonl", [ROWS[0], {"tokens": [], "labels": []}, {"tokens": None}]))
    assert read.tokens == TOKENS[:1]
    assert "2 of 3 sentences have no tokens" in read.notes[0]
    texts = read_sentences(pandas.DataFrame({"text": ["a", " ", None]}))
    assert texts.texts == ["a"]
    assert "2 of 3" in texts.notes[0]
    assert "has no tokens" in refused(DataError, pandas.DataFrame({"tokens": [[]]}))


def test_misplaced_tags_are_kept_with_a_note(write: Write) -> None:
    read = read_sentences(write("rows.conll", "a B-X\nb O\nc I-X\n\nd B-X\ne I-Y\n"))
    assert read.labels == [["B-X", "O", "I-X"], ["B-X", "I-Y"]]
    (note,) = read.notes
    assert "rows.conll:3: 'I-X' is not part of an entity that IOB2 allows" in note
    assert "2 tags are kept" in note


def test_selected_sentences_keep_all_their_fields() -> None:
    read = read_sentences(pandas.DataFrame({"text": ["a b", "c", "d"], "spans": [[[0, 1, "X"]], [], None]}))
    chosen = read.select([2, 0])
    assert (chosen.tokens, chosen.labels) == ([["d"], ["a", "b"]], [None, ["B-X", "O"]])
    assert (chosen.texts, chosen.offsets) == (["d", "a b"], [[(0, 1)], [(0, 1), (2, 3)]])
    assert read.select(range(3)) == read
    assert len(read.select([])) == 0
    assert Sentences("x", TOKENS, LABELS, WEAK).select([1]).weak == WEAK[1:]


@needs_data
@pytest.mark.parametrize(
    ("name", "train", "scheme", "types", "labelled", "weak"),
    [
        ("wikigold", 1142, "IOB2", {"LOC", "MISC", "ORG", "PER"}, True, True),
        ("webpage", 385, "IOB2", set(), False, True),
        ("bc5cdr", 4560, "IOB2", {"Chemical", "Disease"}, True, False),
        ("mitr", 6674, "IO", None, True, True),
    ],
)
def test_real_sentences(name: str, train: int, scheme: str, types: set[str] | None, labelled: bool, weak: bool) -> None:
    path = Path(os.environ["DRIFT_DATA"]) / name / "train.jsonl.gz"
    read = read_sentences(path)
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    assert len(read) == train == len(rows)
    assert (read.scheme, read.notes) == (scheme, [])
    assert read.tokens == [row["tokens"] for row in rows]
    assert [tags or [] for tags in read.labels] == [row.get("labels", []) for row in rows]
    assert [sum(tag is not None for tag in tags or []) for tags in read.weak] == [
        sum(tag is not None for tag in row.get("weak") or []) for row in rows
    ]
    assert any(read.labels) == labelled
    assert any(read.weak) == weak
    assert not any(faults(tags, scheme) for tags in read.labels if tags)
    actual = {span.type for tags in read.labels if tags for span in spans_of(tags, scheme)}
    assert len(actual) == 8 if types is None else actual == types
