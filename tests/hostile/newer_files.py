"""Files for `newer_cases.py`: tables, class files, dictionaries and filled labels that are wrong in many ways."""

import json
from pathlib import Path

import pyarrow
import pyarrow.parquet

TEXT_ROWS = ("stock market", "team game", "fund profit", "match goal")
WIDE = 10_000  # columns


def table(**columns: object) -> str:
    """A CSV table with `TEXT_ROWS` and other columns; a value that is no list stands in every row."""
    lists = [value if isinstance(value, list) else [value] * len(TEXT_ROWS) for value in columns.values()]
    lines = [",".join(["text", *columns])]
    lines += [",".join([text, *map(str, cells)]) for text, *cells in zip(TEXT_ROWS, *lists, strict=True)]
    return "\n".join(lines) + "\n"


def gazetteer(file: str, entity_type: str = "X") -> str:
    return f"task: tokens\nrules:\n- {{name: a, type: {entity_type}, gazetteer: {file}}}\n"


def rule_name(dictionary: str) -> str:
    """The name, without ending, of the rule file with this dictionary."""
    return f"rule{dictionary.replace('.', '')}"


DICTIONARIES = {
    "dictnophrase.csv": "word,kind\nstock,X\n",
    "dictcase.csv": "phrase,type,case\nstock,X,loud\n",
    "dicttype.csv": "phrase,type,aliases\n,X,shares\n",
    "dictempty.csv": "phrase,type\n",
    "dictnul.csv": "phrase,type\nsto\0ck,X\n",
    "dictnested.jsonl": '{"phrase": {"a": 1}, "type": ["X"]}\n',
    "dictmapping.jsonl": '{"phrase": "stock", "type": "X", "aliases": {"a": 1}}\n',
    "dictnone.jsonl": '{"phrase": "stock", "type": "X", "aliases": [null, [1]]}\n',
    "dictbroken.jsonl": '{"phrase": "stock"\n',
    "dictfake.parquet": "PAR1 nothing",
    "dictfake.csv.gz": "not gzip",
    "dicttabs.tsv": "X\tstock\ttoo much\n",
}
TEXTS: dict[str, str | bytes] = {
    **{f"{rule_name(name)}.yaml": gazetteer(name) for name in DICTIONARIES},
    **DICTIONARIES,
    "ruletypelist.yaml": gazetteer("dictcase.csv", "[X, Y]"),
    "rulefolder.yaml": gazetteer("."),
    "ruleup.yaml": gazetteer("../../../../../../../etc/nothing.csv"),
    # --classes FILE
    "classnumber.yaml": "3\n",
    "classnull.yaml": "null\n",
    "classnames.yaml": "[a, [b]]\n",
    "classnested.yaml": "a: {b: c}\nd: e\n",
    "classnumbers.yaml": "a: 3\nb: 4\n",
    "classmixed.yaml": "a: [x, 3]\nb: y\n",
    "classone.yaml": "a: only\n",
    "classtwice.yaml": "a: x\n' a ': y\n",
    "classempty.yaml": "'': x\nb: y\n",
    "classblank.json": "",
    "classbroken.json": '{"a": ',
    "classdate.yaml": "2020-13-45: x\nb: y\n",
    # --weak COLUMN=CONFIDENCE, probabilities
    "weak.csv": table(
        gpt=["money", "sport", "money", "sport"], sure=["0.9", "high", "0.5", "1"], over=["0.9", "1.5", "0.5", "1"],
        negative=["-1", "0.2", "0.5", "1"], nan=["nan", "0.2", "0.5", "inf"], blank="", same="money",
        p_money=["0.2", "0.3", "x", "1"], p_sport=["0.8", "0.7", "1", "0"], q_money="0.9", q_sport="0.9",
    ),
    "weakjson.jsonl": "".join(
        json.dumps({"text": text, "gpt": cell, "list": [1], "huge": 10**30, "deep": {"a": {"b": 1}}}) + "\n"
        for text, cell in zip(TEXT_ROWS, ({"money": 2}, {"money": "x"}, {"money": -1}, {}), strict=True)
    ),
    # --labels TABLE
    "filledinf.csv": "row,body,topic\ninf,stock market,money\n",
    "filledword.csv": "row,body,topic\nfirst,stock market,money\n",
    "filledother.csv": "row,body,topic\n1,no such text,money\n",
    "filledblank.csv": "row,body,topic\n1,stock market,\n",
    "fillednone.csv": "row,body\n1,stock market\n",
    "filledtext.csv": "row,topic\n1,money\n",
    "filledhuge.jsonl": '{"row": 1' + "0" * 5000 + ', "text": "stock market", "label": "money"}\n',
    "filledlist.jsonl": '{"row": [1], "body": "stock market", "topic": "money"}\n',
    # --guidelines FILE
    "guidelist.yaml": "- a\n- b\n",
    "guidenumber.yaml": "a: 3\n",
    "guidenested.yaml": "a: {b: c}\n",
    "guidetext.yaml": "only words\n",
    # tables
    "wide.csv": ",".join(f"c{column}" for column in range(WIDE)) + "\n" + ",".join(["1"] * WIDE) + "\n",
    "numbers.csv": "a,b\n1,2\n3,4\n",
    "loneret.csv": "text,label\rstock,money\rteam,sport\r",
    "bomonly.csv": b"\xef\xbb\xbf",
    "utf16.csv": "text,label\nstock,money\n".encode("utf-16"),
    "latin.csv": "text,label\nstöck,money\n".encode("cp1252"),
    "onlyheader.csv": "text,label\n",
    "onlycommas.csv": ",,,\n,,,\n",
    "longname.csv": "text," + "x" * 100_000 + "\nstock,1\nteam,2\n",
    "book.xlsx": b"PK\x03\x04 nothing",
    "jsonarray.json": '[{"text": "a"}]',
    "halfkey.jsonl": '{"\\ud800": "a", "text": "b"}\n',
    "hugenumber.jsonl": '{"text": "a", "label": 1' + "0" * 5000 + "}\n",
    "latekey.jsonl": '{"text": "a"}\n' * 1001 + '{"text": "a", "late": 1}\n',
    "nestedlabel.jsonl": "".join(json.dumps({"text": text, "label": {"a": [1]}}) + "\n" for text in TEXT_ROWS),
    "listlabel.jsonl": "".join(json.dumps({"text": text, "label": ["a"]}) + "\n" for text in TEXT_ROWS),
    "nestedtext.jsonl": "".join(json.dumps({"text": {"a": text}, "label": "b"}) + "\n" for text in TEXT_ROWS),
    "nulltext.jsonl": "".join(json.dumps({"text": None, "label": str(row % 2)}) + "\n" for row in range(4)),
    "emptyobject.jsonl": "{}\n{}\n",
    "emptytexts.csv": "text,label\n,money\n,sport\n",
    "allsame.csv": table(label="money"),
    "fewlabels.csv": table(label=["money", "sport", "", ""]),
    "eachown.csv": table(label=["a", "b", "c", "d"]),
    "configlabels.yaml": "task: text\ndata: {train: table.csv, labels: 5}\n",
    "configsplit.yaml": "task: text\ndata: {train: table.csv, split: 5}\n",
    "configencoding.yaml": "task: text\ndata: {train: table.csv, encoding: [a]}\n",
    "configscaling.yaml": "task: nodes\ndata: {train: graph.npz}\nmodel: {scaling: []}\n",
    "config.yaml": "task: text\ndata: {train: table.csv, labels: {a: 1}}\n",
}  # fmt: skip


def write_parquets(folder: Path) -> None:
    """Parquet tables whose types are unusual."""
    texts = list(TEXT_ROWS)
    columns = {
        "pnested": {"text": [[text] for text in texts], "label": [{"a": 1}] * 4},
        "pbinary": {"text": [text.encode() for text in texts], "label": [b"\xff"] * 4},
        "pnorows": {"text": pyarrow.array([], pyarrow.string()), "label": pyarrow.array([], pyarrow.string())},
        "pnull": {"text": pyarrow.nulls(4), "label": pyarrow.nulls(4)},
        "pnumbers": {"text": [1, 2, 3, 4], "label": [1.5, float("nan"), 2.5, float("inf")]},
    }
    for name, each in columns.items():
        pyarrow.parquet.write_table(pyarrow.table(each), folder / f"{name}.parquet")
    pyarrow.parquet.write_table(pyarrow.table({}), folder / "pnocolumns.parquet")
    twice = pyarrow.Table.from_arrays([pyarrow.array(texts)] * 2, names=["text", "text"])
    pyarrow.parquet.write_table(twice, folder / "ptwice.parquet")
    sound = (folder / "pnumbers.parquet").read_bytes()
    (folder / "pcut.parquet").write_bytes(sound[:-40])


def write_newer(folder: Path) -> None:
    for name, content in TEXTS.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    write_parquets(folder)
