"""Rules for texts: the votes of each form of rule, and the error messages about invalid files."""

import functools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from drift.errors import ConfigError, DataError, DriftError, FileError, LabelError
from drift.weak import ABSTAIN, RuleSet, casting, rule

POLITICS = {"name": "politics", "label": "World", "has": ["president", "prime minister"]}
GAMES = {"name": "games", "label": "Sports", "has": ["team"]}


def votes(rules: RuleSet, *texts: str | None) -> list[list[str | None]]:
    """The votes by class name, one list per text."""
    return [[None if code == ABSTAIN else rules.classes[code] for code in row] for row in rules.votes(texts).tolist()]


def one(texts: list[str | None], **keys: object) -> list[bool]:
    """For each text, whether a single rule votes."""
    rules = RuleSet([{"name": "r", "label": "yes", **keys}])
    return (rules.votes(texts)[:, 0] != ABSTAIN).tolist()


def written(folder: Path, text: str, name: str = "rules.yaml") -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def test_keywords_match_anywhere_in_any_case_by_default() -> None:
    texts: list[str | None] = ["The TEAM won", "steamed fish", "a team", "none"]
    assert one(texts, has=["Team"]) == [True, True, True, False]
    assert one(texts, has=["team"], whole_words=True) == [True, False, True, False]
    assert one(texts, has=["team"], case_sensitive=True) == [False, True, True, False]
    assert one(texts, has=["TEAM"], case_sensitive=True, whole_words=True) == [True, False, False, False]


def test_keywords_with_spaces_and_punctuation() -> None:
    assert one(["the Prime Minister said", "primeminister", "prime  minister"], has=["prime minister"]) == [
        True,
        False,
        False,
    ]
    assert one(["at war now", "warm", "war"], has=[" war "]) == [True, False, False]
    assert one(["the u.n. said", "u.n.x"], has=["u.n."], whole_words=True) == [True, False]
    assert one(["prime ministers", "a prime minister!"], has=["prime minister"], whole_words=True) == [False, True]


def test_patterns() -> None:
    texts: list[str | None] = ["it cost $5", "Cost", "nothing"]
    assert one(texts, matches=r"\$\d+|^cost$") == [True, True, False]
    assert one(texts, matches=r"^cost$", case_sensitive=True) == [False, False, False]


def test_a_prefix_then_an_expression_at_most_n_characters_later() -> None:
    pairs = {"prefix": ["would ", "can't wait to "], "expression": [" again", " (2x)"], "within": 5}
    texts: list[str | None] = [
        "I WOULD 12345 again",
        "would 123456 again",
        "again I would ",
        "can't wait to\n go (2x)",
        "can't wait to \nsee (2x)",
    ]
    assert one(texts, pairs=pairs) == [True, False, False, False, True]


def test_a_pair_too_large_for_re2_is_refused_before_any_text_is_read() -> None:
    with pytest.raises(ConfigError, match="rule 'r': pairs: too large for one pattern; lower `within`"):
        one(["a"], pairs={"prefix": ["p" * 3_000_000], "expression": ["e"]})


def test_negation_withholds_a_vote_and_absence_can_be_a_reason() -> None:
    texts: list[str | None] = ["good", "not good", "fine"]
    assert one(texts, has=["good"], unless={"matches": r"\bnot\b"}) == [True, False, False]
    assert one(texts, unless={"has": ["good"]}) == [False, False, True]


def test_of_several_cases_the_first_that_holds_votes() -> None:
    cases = [{"label": "neg", "has": ["bad", "not good"]}, {"label": "pos", "has": ["good"]}]
    rules = RuleSet([{"name": "mood", "cases": cases}])
    assert rules.classes == ("neg", "pos")
    assert votes(rules, "good", "not good", "good and bad", "so") == [["pos"], ["neg"], ["neg"], [None]]


def test_a_column_of_labels_votes_even_where_the_text_is_missing() -> None:
    rules = RuleSet([GAMES, {"name": "older", "column": "old"}], ["Sports", "World"])
    cast = rules.votes(["team", "team", None, ""], {"old": ["World", None, "Sports", float("nan")]})
    assert cast.tolist() == [[0, 1], [0, -1], [-1, 0], [-1, -1]]


def test_errors_about_columns() -> None:
    rules = RuleSet([{"name": "older", "column": "old"}], ["Sports", "World"])
    with pytest.raises(DataError, match="no column 'old', which a rule reads; did you mean 'olds'"):
        rules.votes(["a"], {"olds": ["World"]})
    with pytest.raises(DataError, match="1 values for 2 texts"):
        rules.votes(["a", "b"], {"old": ["World"]})
    with pytest.raises(LabelError, match="row 12: column 'old' has 'Sport'; did you mean 'Sports'"):
        rules.votes(["a", "b"], {"old": ["World", "Sport"]}, first_row=10)


def test_functions_vote_and_their_faults_name_rule_and_row() -> None:
    @rule
    def shouting(text: str) -> str | None:
        return "angry" if text.isupper() else None

    @rule(name="length", weight=2)
    def by_length(text: str) -> str | None:
        return "calm" if 10 / (len(text) - 3) > 1 else None

    @rule
    def wrong(text: str) -> str:
        return "clam"

    rules = RuleSet([shouting, by_length], ["angry", "calm"])
    assert votes(rules, "AB!!", "a", None, "") == [["angry", "calm"], [None, None], [None, None], [None, None]]
    assert rules.weights.tolist() == [1, 2]
    with pytest.raises(DataError, match=r"row 2: rule .length. failed .ZeroDivisionError"):
        rules.votes(["ok, long enough", "abc"])
    with pytest.raises(LabelError, match="row 1: rule 'wrong' voted 'clam'; did you mean 'calm'"):
        RuleSet([wrong], ["angry", "calm"]).votes(["a"])


@pytest.mark.parametrize("missing", [None, "", float("nan")])
def test_texts_that_are_missing_get_no_vote(missing: str | None) -> None:
    assert one([missing], matches="^$") == [False]
    assert one([missing], unless={"has": ["x"]}) == [False]


def test_a_text_that_is_not_a_string_is_named() -> None:
    with pytest.raises(DataError, match="row 2: the text is 17, a int"):
        RuleSet([GAMES]).votes(["a", 17])


def test_votes_are_small_integers_and_empty_tables_have_none() -> None:
    many = [{"name": f"r{n}", "label": f"c{n}", "has": [f"word{n:03}"]} for n in range(200)]
    assert RuleSet(many[:127]).votes(["word126"])[0, 126] == 126
    assert RuleSet(many[:127]).votes([]).shape == (0, 127)
    assert RuleSet(many[:127]).votes([]).dtype == np.int8
    assert RuleSet(many).votes(["word199"])[0, 199] == 199


def test_yaml_keeps_words_that_yaml_would_turn_into_something_else(tmp_path: Path) -> None:
    path = written(tmp_path, "rules:\n- {name: on, label: no, has: [no, 76, 2020-01-01, null, 'yes']}\n")
    rules = RuleSet.from_yaml(path)
    assert rules.classes == ("no",)
    assert votes(rules, "no", "x76x", "2020-01-01", "null", "yes", "true") == [["no"]] * 5 + [[None]]


def test_yaml_round_trip(tmp_path: Path) -> None:
    pairs = {"prefix": ["no "], "expression": ["é"], "within": 3}
    rules = RuleSet(
        [
            {**POLITICS, "whole_words": True, "weight": 0.5, "unless": {"matches": "vice"}},
            {
                "name": "cases",
                "cases": [{"label": "Sports", "pairs": pairs}, {"label": "World", "has": ["null", " a"]}],
            },
            {"name": "older", "column": "old"},
        ],
        ["Sports", "World"],
        ties="order",
        strip_punctuation=True,
    )
    back = RuleSet.from_file(written(tmp_path, rules.to_yaml()))
    assert (back.rules, back.classes, back.ties, back.strip_punctuation) == (
        rules.rules, rules.classes, "order", True,
    )  # fmt: skip
    with pytest.raises(ConfigError, match=r"YAML cannot hold Python rules .shout"):
        RuleSet([rule(name="shout")(str.upper)], ["A"]).to_yaml()


DOCS = Path(__file__).parents[2] / "docs" / "rules.md"


@pytest.mark.parametrize("example", re.findall(r"```yaml\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL))
def test_the_examples_in_the_docs_are_valid(tmp_path: Path, example: str) -> None:
    rules = RuleSet.from_yaml(written(tmp_path, example))
    assert len(rules.rules) == example.count("- name:")


def test_all_faults_of_a_file_are_reported_at_once_with_their_lines(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        """\
classes: [World, Sports]
tie: order
rules:
  - name: a
    label: Sport
    hass: [x]
  - name: a
    label: Sports
    matches: '(b'
  - label: World
    has: []
  - name: c
    cases:
      - {label: Words, pairs: {prefix: [a], expresion: [b]}}
  - {name: d, has: war, label: World, unless: {}}
  - {name: e, column: x, label: World}
  - {name: f, label: World, has: [x], matches: y}
  - {name: g, label: World}
  - {name: h, has: [x]}
  - {name: i, has: [''], label: World, weight: -1}
  - {name: j, matches: x, whole_words: yes, label: World}
  - word
""",
    )
    with pytest.raises(ConfigError) as error:
        RuleSet.from_yaml(path)
    messages = {line.removeprefix(f"{path}:") for line in str(error.value).splitlines()}
    assert messages == {
        "2: unknown key 'tie'; did you mean 'ties'?",
        "6: rule 'a': unknown key 'hass'; did you mean 'has'?",
        "4: rule 'a': 'Sport' is not among the classes; did you mean 'Sports'?",
        "7: rule 'a': another rule has this name; rename one of them",
        "9: rule 'a': matches: re2 cannot read the pattern '(b': missing ): (b",
        "10: rule number 3: name is missing",
        "11: rule number 3: has: it is empty; fill it in or leave it out",
        "12: rule 'c': 'Words' is not among the classes; did you mean 'World'?",
        "14: rule 'c': unknown key 'expresion'; did you mean 'expression'?",
        "14: rule 'c': expression is missing",
        "15: rule 'd': has: give a list, as in ['war']",
        "15: rule 'd': unless: unless needs `has`, `matches` or `pairs`",
        "16: rule 'e': `column` cannot be combined with label",
        "17: rule 'f': it has has and matches; use `cases`, or one rule for each",
        "18: rule 'g': it has no condition; give it `has`, `matches`, `pairs` or `unless`",
        "19: rule 'h': label is missing; name the class it votes for",
        "20: rule 'i': has: it is empty; fill it in or leave it out",
        "20: rule 'i': weight: input should be greater than or equal to 0, not '-1'",
        "21: rule 'j': whole_words goes with `has` only; in a pattern write \\b around the word",
        "22: rule number 12: give keys and values, not 'word'",
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty; write at least one rule"),
        ("rules: []", ":1: rules: it is empty"),
        ("classes: [a]", ":1: rules is missing"),
        ("- name: a", ":1: give keys and values"),
        ("rules:\n- {name: a, label: b, has: [x]", ":3: not YAML"),
        ("rules:\n- name: a\n  name: b", ":3: key 'name' is given twice; remove one"),
        ("classes: [a, a]\nrules: [{name: r, label: a, has: [x]}]", ":1: class 'a' is listed twice"),
        (
            "rules: [{name: r, column: x}]",
            ":1: rule 'r': it does not say which classes it can vote for; declare `classes`",
        ),
        ("rules: [{name: [a], label: b, has: [x]}]", ":1: rule ['a']: name: input should be a valid string"),
        ("rules:\n- name: a\n  label: b\n  has: |\n    x\n    y", ":4: rule 'a': has: give a list, as in ['x\\ny']"),
        ("rules: &a [*a]", "this alias refers to a value that contains it"),
        ("? [a]\n: b", ":1: a key must be a word"),
        ("rules: \x00", "not YAML"),
    ],
)
def test_files_without_valid_rules(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        RuleSet.from_yaml(written(tmp_path, text))
    assert message in str(error.value)
    assert len(str(error.value).splitlines()) == 1


def test_keywords_of_punctuation_only_are_refused_with_strip_punctuation(tmp_path: Path) -> None:
    text = """\
strip_punctuation: true
rules:
  - name: money
    label: a
    has: [cash,
          $]
  - name: cases
    cases:
      - label: a
        pairs:
          prefix: [so]
          expression: ['!!', good]
      - label: b
        matches: '!'
        unless:
          has: [" "]
"""
    with pytest.raises(ConfigError) as error:
        RuleSet.from_yaml(written(tmp_path, text))
    message = "is only punctuation, which strip_punctuation turns into spaces; leave it out"
    assert str(error.value).replace(str(tmp_path / "rules.yaml"), "").splitlines() == [
        f":6: rule 'money': has: '$' {message}",
        f":12: rule 'cases': expression: '!!' {message}",
        f":16: rule 'cases': has: ' ' {message}",
    ]
    kept = RuleSet.from_yaml(written(tmp_path, text.replace("true", "false")))
    assert votes(kept, "$") == [["a", None]]


def test_a_file_from_another_editor_reads_the_same(tmp_path: Path) -> None:
    text = "rules:\n- name: a\n  label: b\n  has: [é]\n- name: a\n"
    (tmp_path / "rules.yaml").write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    with pytest.raises(ConfigError, match=r":5: rule 'a': another rule has this name"):
        RuleSet.from_yaml(tmp_path / "rules.yaml")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for name in ("none.yaml", "none.py"):
        with pytest.raises(FileError, match="none"):
            RuleSet.from_file(tmp_path / name)
    (tmp_path / "latin.yaml").write_bytes("rules: é".encode("latin-1"))
    with pytest.raises(FileError, match="not UTF-8"):
        RuleSet.from_file(tmp_path / "latin.yaml")


def test_a_python_file_with_functions_and_keywords(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = """\
from drift.weak import RuleSet, rule
LIMIT = 3
@rule
def long(text):
    return "long" if len(text.split()) > LIMIT else None
rules = RuleSet([long, {"name": "brief", "label": "short", "has": ["brief"]}], classes=["long", "short"])
"""
    rules = RuleSet.from_file(written(tmp_path, code, "rules.py"))
    assert votes(rules, "a b c d", "in brief") == [["long", None], [None, "short"]]
    monkeypatch.setattr(casting, "TEXTS_PER_BATCH", 1)
    assert rules.votes(["a b c d", "in brief"], n_jobs=2).tolist() == [[0, -1], [-1, 1]]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("1 / 0", "failed .ZeroDivisionError"),
        ("x = ", "failed .SyntaxError"),
        ("raise SystemExit(3)", "failed .SystemExit: 3"),
        ("rules = []", "has no RuleSet; end it with"),
        ("from drift.weak import RuleSet\nrules = RuleSet([])", "rules: it is empty"),
    ],
)
def test_python_files_that_fail_are_named(tmp_path: Path, code: str, message: str) -> None:
    with pytest.raises(DriftError, match=message) as error:
        RuleSet.from_file(written(tmp_path, code, "mine.py"))
    assert "mine.py" in str(error.value)
    assert len(str(error.value).splitlines()) == 1


def test_a_weight_must_be_a_non_negative_number() -> None:
    for weight in (-1, "x", None, float("nan"), float("inf")):
        with pytest.raises(ConfigError, match=f"rule 'upper': weight={weight!r} is not a number >= 0"):
            rule(weight=weight)(str.upper)  # type: ignore[arg-type]
    assert rule(weight=np.float32(0.5))(str.upper).weight == 0.5


def test_a_rule_is_a_function_with_a_name() -> None:
    nameless = functools.partial(str.replace, "a")
    with pytest.raises(ConfigError, match=r"'' is not a name .*functools.*; give it one"):
        rule(nameless)
    assert rule(nameless, name="replaced").name == "replaced"
    with pytest.raises(ConfigError, match="3 is not a name"):
        rule(str.upper, name=3)  # type: ignore[call-overload]
    with pytest.raises(ConfigError, match="'shouting' is not a function"):
        rule("shouting")  # type: ignore[call-overload]


@pytest.mark.parametrize("value", [None, 3, "abc", {"name": "r"}])
def test_what_is_not_a_list_is_refused_in_one_line(value: Any) -> None:
    message = re.escape(f"{value!r} is not a list; give a list") + "$"
    with pytest.raises(ConfigError, match=f"^rules: {message}"):
        RuleSet(value)
    with pytest.raises(DataError, match=f"^texts: {message}"):
        RuleSet([GAMES]).votes(value)
    if value is not None:
        with pytest.raises(ConfigError, match=f"^classes: {message}"):
            RuleSet([GAMES], value)
    with pytest.raises(DataError, match=f"^column 'old': {message}"):
        RuleSet([{"name": "older", "column": "old"}], ["a"]).votes(["x"], {"old": value})


@pytest.mark.parametrize("n_jobs", [0, "2", 1.5, None])
def test_invalid_n_jobs_is_refused(n_jobs: Any) -> None:
    message = f"n_jobs={n_jobs!r} is not a number of processes; give 1 or more, or -1"
    with pytest.raises(ConfigError, match=re.escape(message)):
        RuleSet([GAMES]).votes(["a"], n_jobs=n_jobs)


def test_jobs_is_the_deprecated_name_of_n_jobs() -> None:
    with pytest.warns(FutureWarning, match="^jobs is deprecated; use n_jobs$") as warned:
        assert RuleSet([GAMES]).votes(["team"], jobs=2).tolist() == [[0]]
    assert warned[0].filename == __file__
    with pytest.warns(FutureWarning), pytest.raises(ConfigError, match="n_jobs=0 is not a number of processes"):
        RuleSet([GAMES]).votes(["team"], jobs=0)


def test_columns_may_be_a_frame() -> None:
    pandas = pytest.importorskip("pandas")
    rules = RuleSet([{"name": "older", "column": "old"}], ["Sports", "World"])
    assert rules.votes(["a", "b"], pandas.DataFrame({"old": ["World", None]})).tolist() == [[1], [-1]]
