"""Rules for tokens: the spans that each form of rule finds, and the error messages about invalid files."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from drift.errors import ConfigError, DataError, FileError, LabelError
from drift.weak import rule
from drift.weak.token_matching import Sentence
from drift.weak.token_rules import TokenRuleSet

EXAMPLE = r"""
task: tokens
types: [Chemical, Disease, Dose]
votes: token
ties: order
rules:
  - name: dictionary
    gazetteer: words.txt
    case: lower
  - {name: one type, gazetteer: drugs.txt, type: Chemical, weight: 2}
  - {name: in place, phrases: [renal failure], type: Disease}
  - {name: doses, pattern: '\b\d+ ?mg\b', type: Dose}
  - {name: capitals, token: '^[A-Z]{2,}$', type: Chemical}
  - {name: nothing, token: '^[.,;:]$', type: O}
"""


def written(folder: Path, text: str, name: str = "rules.yaml") -> Path:
    (folder / "words.txt").write_text("Chemical\tASA\nDisease\tpain\n", encoding="utf-8")
    (folder / "drugs.txt").write_text("folic acid\n", encoding="utf-8")
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def one(tokens: list[str], *, text: str | None = None, **keys: Any) -> list[tuple[int, int]]:
    """Where a single rule votes."""
    spans = TokenRuleSet([{"name": "r", "type": "X", **keys}]).find(Sentence(tokens, text))[0]
    return [(span.start, span.end) for span in spans]


def test_a_file_with_every_form(tmp_path: Path) -> None:
    rules = TokenRuleSet.from_file(written(tmp_path, EXAMPLE))
    tokens = ["asa", "10", "mg", ",", "folic", "acid", "and", "EPO", "for", "renal", "failure", "."]
    spans = [[(span.start, span.end, span.type) for span in by_rule] for by_rule in rules.find(Sentence(tokens))]
    assert spans == [
        [(0, 1, "Chemical")],
        [(4, 6, "Chemical")],
        [(9, 11, "Disease")],
        [(1, 3, "Dose")],
        [(7, 8, "Chemical")],
        [(3, 4, "O"), (11, 12, "O")],
    ]
    assert rules.types == ("Chemical", "Disease", "Dose")
    assert (rules.votes, rules.ties, rules.names[0]) == ("token", "order", "dictionary")
    assert rules.weights.tolist() == [1, 2, 1, 1, 1, 1]


def test_types_are_taken_from_the_rules_where_they_are_not_declared(tmp_path: Path) -> None:
    text = EXAMPLE.replace("types: [Chemical, Disease, Dose]\n", "").replace("votes: token\nties: order\n", "")
    rules = TokenRuleSet.from_yaml(written(tmp_path, text))
    assert rules.types == ("Chemical", "Disease", "Dose")
    assert (rules.votes, rules.ties) == ("span", "abstain")


def test_a_match_that_cuts_a_token_is_ignored() -> None:
    tokens = ["take", "10mg", "or", "20", "mg", "daily"]
    assert one(tokens, pattern=r"\d+ ?mg") == [(1, 2), (3, 5)]
    assert one(tokens, pattern=r"\d+") == [(3, 4)]
    assert one(tokens, pattern=r"mg") == [(4, 5)]
    assert one(tokens, pattern=r"e 10mg") == []
    assert one(tokens, pattern=r" mg dai") == []


def test_space_around_a_match_is_no_part_of_it_and_an_empty_match_is_nothing() -> None:
    assert one(["20", "mg", "daily"], pattern=r" mg ") == [(1, 2)]
    assert one(["20", "mg"], pattern=r"\s|x*") == []
    assert one([], pattern="a*") == []


def test_patterns_match_case_by_default() -> None:
    assert one(["ab", "AB"], pattern="AB") == one(["ab", "AB"], token="AB") == [(1, 2)]
    assert one(["ab", "AB"], pattern="(?i)AB") == one(["ab", "AB"], token="(?i)AB") == [(0, 1), (1, 2)]


def test_a_token_pattern_is_found_anywhere_in_the_token() -> None:
    assert one(["abc", "xabc", "x"], token="abc") == [(0, 1), (1, 2)]
    assert one(["abc", "xabc", "x"], token="^abc$") == [(0, 1)]


def test_patterns_see_the_text_where_there_is_one() -> None:
    tokens = ["10", "mg", "(", "daily", ")"]
    assert one(tokens, pattern=r"10mg") == []
    assert one(tokens, pattern=r"10mg|\(daily\)", text="10mg  (daily)") == [(0, 2), (2, 5)]
    with pytest.raises(DataError, match=r"sentence 1: the text does not have the token 'mg' where it should"):
        one(tokens, pattern="a", text="10 kg")


def test_positions_are_right_beyond_ascii() -> None:
    assert one(["naïve", "Ωmega", "β", "\ud800"], pattern="Ω|β|naïve Ωmega") == [(0, 2), (2, 3)]
    assert one(["naïve", "β"], text="naïveβ", pattern=".$") == [(1, 2)]


def by_function(answer: Any) -> list[tuple[int, int, str]]:
    rules = TokenRuleSet([rule(lambda tokens: answer, name="f")], ["X", "Y"])
    return [(span.start, span.end, span.type) for span in rules.find(Sentence(["a", "b", "c"], number=7))[0]]


def test_functions_get_the_tokens_and_return_spans() -> None:
    @rule(weight=3)
    def titled(tokens: list[str]) -> list[tuple[int, int, str]]:
        return [(index + 1, index + 2, "Person") for index, token in enumerate(tokens[:-1]) if token == "Dr."]

    rules = TokenRuleSet([titled], ["Person"])
    assert [span.start for span in rules.find(Sentence(["Dr.", "No", "and", "Dr.", "Who"]))[0]] == [1, 4]
    assert (rules.names, rules.weights.tolist()) == (["titled"], [3])
    assert by_function(None) == by_function([]) == []
    assert by_function([(np.int64(1), 3, "X"), (0, 1, "O")]) == [(1, 3, "X"), (0, 1, "O")]


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (
            ["X"],
            DataError,
            r"sentence 7: rule 'f' failed \(ValueError: .*it must return a list of \(start, end, type\)",
        ),
        ([(0, "1", "X")], DataError, r"rule 'f' failed \(TypeError"),
        ([(0, 4, "X")], DataError, r"rule 'f': Span\(start=0, end=4, type='X'\) is not within the 3 tokens"),
        ([(1, 1, "X")], DataError, "is not within the 3 tokens"),
        ([(0, 2, "X"), (1, 3, "Y")], DataError, "overlaps .* keep one"),
        ([(0, 1, "x")], LabelError, r"sentence 7: rule 'f' voted 'x'; did you mean 'X'\?"),
        ([(0, 1, None)], LabelError, "voted None"),
    ],
)
def test_invalid_answers_of_functions(answer: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        by_function(answer)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("- {name: r, phrases: [a]}", r"yaml:7: rule 'r': type is missing; name the type it votes for"),
        ("- {name: r, type: Dose}", r"yaml:7: rule 'r': it has none of gazetteer, phrases, pattern, token; give it"),
        ("- {name: r, type: Dose, token: a, pattern: a}", "rule 'r': it has pattern and token of"),
        ("- {name: r, type: Dose, tokn: a}", r"yaml:7: rule 'r': unknown key 'tokn'; did you mean 'token'"),
        ("- {name: r, type: Dose, token: '('}", r"yaml:7: rule 'r': token: re2 cannot read the pattern '\('"),
        ("- {name: r, type: Dose, token: a, case: lower}", "rule 'r': case goes with phrases; a pattern matches case"),
        ("- {name: r, type: Dose, phrases: [a], case: upper}", "rule 'r': case: .* not 'upper'"),
        (
            "- {name: r, type: Dosis, token: a}",
            r"yaml:7: rule 'r': 'Dosis' is not among the types; did you mean",
        ),
        ("- {name: r, type: Dose, phrases: [' ']}", "rule 'r': the phrase ' ' of type 'Dose' is empty"),
        ("- {name: r, gazetteer: none.txt}", r"yaml:7: rule 'r': .*none\.txt cannot be read"),
        ("- {name: r, gazetteer: drugs.txt}", r"rule 'r': .*drugs\.txt:1: 'folic acid' is not TYPE, a tab"),
        ("- {name: r, gazetteer: words.txt, type: Dose}", r"rule 'r': .*words\.txt:1: .* is not a phrase alone"),
        ("- {name: dictionary, token: a, type: O}", r"yaml:\d+: rule 'dictionary': another rule has this name"),
        ("- {token: a, type: O}", r"yaml:7: rule number 1: name is missing"),
        ("- {name: r, token: a, type: O, weight: -1}", "rule 'r': weight: .* not '-1'"),
        ("- just words", "rule number 1: give keys and values, not 'just words'"),
    ],
)
def test_faults_of_a_rule_name_file_line_rule_and_field(tmp_path: Path, line: str, message: str) -> None:
    path = written(tmp_path, EXAMPLE.replace("rules:\n", f"rules:\n  {line}\n"))
    with pytest.raises(ConfigError, match=message) as caught:
        TokenRuleSet.from_file(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("votes: token", "votes: word", "yaml:4: votes: .*'span' or 'token', not 'word'"),
        ("ties: order", "tise: order", "yaml:5: unknown key 'tise'; did you mean 'ties'"),
        ("[Chemical, ", "[Chemical, O, ", "types: O is not an entity type; leave it out"),
        ("[Chemical, ", "[Chemical, Dose, ", "types: 'Dose' is listed twice"),
        ("[Chemical, Disease, Dose]", "[Chemical, Dose]", r"words\.txt:2: 'Disease' is not among the types"),
    ],
)
def test_faults_of_the_whole_file(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        TokenRuleSet.from_file(written(tmp_path, EXAMPLE.replace(old, new)))


def test_all_faults_are_reported_at_once(tmp_path: Path) -> None:
    text = EXAMPLE.replace("votes: token", "votes: word").replace("type: Dose}", "type: Dosis}").replace("lower", "low")
    with pytest.raises(ConfigError) as caught:
        TokenRuleSet.from_file(written(tmp_path, text))
    lines = [line.partition("rules.yaml:")[2].partition(":")[0] for line in str(caught.value).split("\n")]
    assert lines == ["4", "9", "12"]


def test_missing_rules_and_types(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="rules: rules: it is empty; write at least one rule"):
        TokenRuleSet([])
    with pytest.raises(ConfigError, match="rule 'f': it does not say which types it can vote for; declare `types`"):
        TokenRuleSet([rule(lambda tokens: None, name="f")])


def test_rules_for_texts_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "rules:\n  - {name: games, label: Sports, has: [team]}\n")
    with pytest.raises(ConfigError, match="these rules are for texts, not for tokens; write `task: tokens`"):
        TokenRuleSet.from_file(path)


def test_python_files(tmp_path: Path) -> None:
    body = "from drift.weak.token_rules import TokenRuleSet\nrules = TokenRuleSet([{}])\n"
    entry = "{'name': 'a', 'token': 'a', 'type': 'X'}"
    assert TokenRuleSet.from_file(written(tmp_path, body.replace("{}", entry), "good.py")).names == ["a"]
    for_texts = "from drift.weak import RuleSet\nrules = RuleSet([{'name': 'a', 'label': 'b', 'has': ['c']}])\n"
    for wrong, message in [
        (body, r"wrong\.py: rules: rule number 1: name is missing"),
        (for_texts, "has no TokenRuleSet; end it with"),
        ("1 / 0", "failed .ZeroDivisionError"),
    ]:
        with pytest.raises(ConfigError, match=message):
            TokenRuleSet.from_file(written(tmp_path, wrong, "wrong.py"))
    with pytest.raises(FileError, match="is not there"):
        TokenRuleSet.from_file(tmp_path / "none.py")


def test_a_dictionary_alone_is_a_file_of_rules(tmp_path: Path) -> None:
    (tmp_path / "terms.csv").write_text("phrase,type\nfolic acid,Chemical\npain,Disease\n", encoding="utf-8")
    rules = TokenRuleSet.from_file(tmp_path / "terms.csv")
    assert rules.types == ("Chemical", "Disease")
    assert [span.type for span in rules.find(Sentence(["Folic", "acid", "pain"]))[0]] == ["Chemical", "Disease"]


def test_types_of_a_dictionary_are_checked_with_their_row(tmp_path: Path) -> None:
    (tmp_path / "terms.csv").write_text("phrase,type\nacid,Chemical\npain,Desease\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"terms\.csv, row 2: 'Desease' is not among the types.*Disease"):
        TokenRuleSet([{"name": "r", "gazetteer": "terms.csv"}], ["Chemical", "Disease"], folder=tmp_path)


def test_plurals() -> None:
    assert one(["drugs", "therapy", "therapies"], phrases=["drug", "therapy"], plural=True) == [(0, 1), (1, 2), (2, 3)]
    with pytest.raises(ConfigError, match="plural goes with phrases"):
        TokenRuleSet([{"name": "r", "type": "X", "token": "x", "plural": True}])
