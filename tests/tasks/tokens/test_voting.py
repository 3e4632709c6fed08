"""Rules that vote in a trained tagger: how, and that the run's folder alone is enough."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

import drift
from drift.data.labels import UNLABELED
from drift.errors import FileError
from drift.tasks.tokens.voting import WITHOUT_DEV, add_votes, best_weight, voted, votes_of
from drift.weak import TokenRuleSet, rule
from drift.weak.token_matching import Sentence
from tests.runs.small import metrics_of, small_fit
from tests.runs.small_tokens import CLASSES, small_sentences, small_word_encoder

pytest.importorskip("transformers", reason="needs transformers: pip install 'drift-ssl[text]'")

RULES = [
    {"name": "places", "gazetteer": "places.csv"},
    {"name": "people", "type": "PER", "phrases": ["john", "mary smith"], "case": "exact", "plural": True},
    {"name": "nothing", "type": "O", "token": r"^\.$", "weight": 2},
    {"name": "doctors", "type": "PER", "pattern": "Dr [A-Z]"},
]
SENTENCES = [["London", "and", "paris", "."], ["mary", "smith", "johns", "John"], ["Dr", "B", "PD", "pd"]]


@rule
def nobody(tokens: list[str]) -> list[tuple[int, int, str]]:
    return []


@pytest.fixture
def rules(tmp_path: Path) -> TokenRuleSet:
    table = 'phrase,type,case\nlondon,LOC,\n"paris, france",LOC,\nparis,LOC,lower\nPD,PER,\n'
    (tmp_path / "places.csv").write_text(table, encoding="utf-8")
    return TokenRuleSet([*RULES, nobody], ["LOC", "PER"], folder=tmp_path, votes="token", ties="order")


def test_saved_rules_find_the_same_and_no_code_is_kept(rules: TokenRuleSet, tmp_path: Path) -> None:
    kept = rules.declarative()
    assert kept is not None
    assert kept.names == rules.names[:-1]
    kept.save(tmp_path / "saved")
    (tmp_path / "places.csv").unlink()
    opened = TokenRuleSet.from_folder(tmp_path / "saved")
    assert (opened.names, opened.types, opened.votes, opened.ties) == (kept.names, kept.types, "token", "order")
    assert opened.weights.tolist() == kept.weights.tolist()
    for tokens in SENTENCES:
        assert opened.find(Sentence(tokens)) == rules.find(Sentence(tokens))[:-1]
    assert TokenRuleSet([nobody], ["LOC"]).declarative() is None
    assert votes_of(rules, 0) is None


def test_a_vote_multiplies_the_odds_of_its_tag() -> None:
    probabilities = np.random.default_rng(0).dirichlet(np.ones(3), (2, 4))  # two seeds
    codes = np.array([2, UNLABELED, 0, UNLABELED])
    combined = add_votes(probabilities, codes, 1.5)
    np.testing.assert_array_equal(combined[:, [1, 3]], probabilities[:, [1, 3]])
    for word, code in ((0, 2), (2, 0)):
        before, after = (each[:, word, code] / (1 - each[:, word, code]) for each in (probabilities, combined))
        np.testing.assert_allclose(after / before, np.exp(1.5))
    np.testing.assert_allclose(add_votes(probabilities, codes, 0), probabilities)


def test_dev_chooses_the_weight() -> None:
    codes, labels = np.array([0, 0, 1, 1]), np.array([0, 0, 1, 1])
    probabilities = np.array([[[0.2, 0.8], [0.9, 0.1], [0.3, 0.7], [0.1, 0.9]]])

    def right(p: np.ndarray) -> dict[str, float]:
        return {"f1": float((p.argmax(-1) == labels).mean())}

    weight, scores = best_weight(probabilities, codes, right)
    assert (weight, scores[0.0], scores[2.0]) == (2.0, 0.75, 1.0)
    assert best_weight(probabilities, 1 - codes, right)[0] == 0.0


def test_votes_are_the_tags_of_the_rules(rules: TokenRuleSet) -> None:
    codes = voted(rules, [*SENTENCES[:1], [], ["mary", "smith"]], CLASSES, entities=True)
    assert codes.tolist() == [1, UNLABELED, 1, 0, 3, 4]
    slots = voted(rules, [["mary", "smith"]], ["O", "LOC"], entities=False)  # PER is not known
    assert slots.tolist() == [UNLABELED, UNLABELED]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return small_word_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.mark.parametrize("with_dev", [False, True])
@pytest.mark.parametrize("finetune", [False, True])
def test_a_run_votes_in_its_scores_and_after_loading(
    encoder: str, rules: TokenRuleSet, tmp_path: Path, finetune: bool, with_dev: bool
) -> None:
    test = pandas.DataFrame(small_sentences(12, seed=1))
    dev: dict[str, Any] = {"dev": pandas.DataFrame(small_sentences(8, seed=2))} if with_dev else {}
    train = pandas.DataFrame({"tokens": small_sentences(30)["tokens"]})
    out = tmp_path / "run"
    run = small_fit(train, encoder, task="tokens", rules=rules, test=test, finetune=finetune, out=out, **dev)
    votes = metrics_of(out)["rule_votes"]
    assert (votes["weight"] == WITHOUT_DEV and "dev" not in votes) if not with_dev else len(votes["dev"]) == 5
    assert any("vote in the tagger" in note for note in run.notes)
    (tmp_path / "places.csv").unlink()
    opened = drift.load(out)
    for loaded, expected in zip(opened.predict_proba(SENTENCES), run.predict_proba(SENTENCES), strict=True):
        np.testing.assert_allclose(loaded, expected, atol=1e-6)
    if votes["weight"]:
        assert opened.model.votes.weight == pytest.approx(votes["weight"] / opened.model.temperature)
        assert (out / "model/rules/0.csv").is_file()
    scored = drift.evaluate(opened, test)
    assert scored["f1"] == pytest.approx(run.metrics["test"]["model"]["f1"])


def test_dictionaries_outside_the_folder_are_not_read(encoder: str, rules: TokenRuleSet, tmp_path: Path) -> None:
    out = tmp_path / "run"
    small_fit(pandas.DataFrame({"tokens": small_sentences(8)["tokens"]}), encoder, task="tokens", rules=rules, out=out)
    file = out / "model/rules/rules.yaml"
    content = json.loads(file.read_text())
    content["rules"][0]["gazetteer"] = "../../../places.csv"
    file.write_text(json.dumps(content))
    with pytest.raises(FileError, match=r"places\.csv.* is not a dictionary inside the folder"):
        drift.load(out)
