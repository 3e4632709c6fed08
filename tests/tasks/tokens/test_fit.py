"""`drift.fit` on words: the same sentences give the same tagger, and hidden tags change no bit of it."""

from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import drift
from drift.errors import DriftError, Interrupted, StateError
from drift.runs import run as execution
from drift.runs.result import Run
from drift.tasks.tokens.data import read_token_data
from drift.tasks.tokens.model import TokenModel
from drift.tasks.tokens.settings import TokenDataSettings, TokenModelSettings
from drift.tasks.tokens.students import FROZEN, Parts
from drift.training.callbacks import Callback, TrainingState
from drift.weak import TokenRuleSet
from tests.runs.small import COST, metrics_of, same_weights, small_fit
from tests.runs.small_tokens import CLASSES, read_jsonl, small_sentences, small_word_encoder, write_conll, write_jsonl
from tests.training.runs import stopped_after

transformers = pytest.importorskip("transformers", reason="needs transformers: pip install 'drift-ssl[text]'")
datasets = pytest.importorskip("datasets", reason="needs datasets: pip install 'drift-ssl[text]'")
pandas = pytest.importorskip("pandas")

Fit = Callable[..., Run]
SENTENCES = small_sentences(6, seed=9)["tokens"]
KINDS = pytest.mark.parametrize("finetune", [False, True], ids=["frozen", "finetuned"])
RULES = """\
task: tokens
rules:
  - {name: places, type: LOC, phrases: [london, new york, berlin]}
  - {name: people, type: PER, phrases: [john, mary smith]}
"""


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return small_word_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture
def fit(encoder: str) -> Fit:
    def small(train: Any, **options: Any) -> Run:
        tables = ("unlabeled", "dev", "test")
        frames = {name: pandas.DataFrame(options.pop(name)) for name in tables if isinstance(options.get(name), dict)}
        train = pandas.DataFrame(train) if isinstance(train, dict) else train
        return small_fit(train, encoder, **{"task": "tokens", "finetune": False, **options, **frames})

    return small


def test_the_same_sentences_give_the_same_tagger_in_every_format(fit: Fit, tmp_path: Path) -> None:
    table = small_sentences(12)
    frame = pandas.DataFrame(table)
    frame.to_parquet(tmp_path / "t.parquet")
    sources = [
        write_jsonl(tmp_path / "t.jsonl", table),
        write_conll(tmp_path / "t.conll", table),
        tmp_path / "t.parquet",
        datasets.Dataset.from_dict(table),
    ]
    run = fit(frame)
    assert all(same_weights(run, fit(source)) for source in sources)
    assert not same_weights(run, fit({**table, "ner_tags": table["ner_tags"][::-1], "tokens": table["tokens"][::-1]}))


@KINDS
def test_a_loaded_run_equals_the_saved_one(fit: Fit, tmp_path: Path, finetune: bool) -> None:
    out = tmp_path / "run"
    run = fit(small_sentences(20, labeled=8), dev=small_sentences(6, seed=1), out=out, finetune=finetune)
    opened = drift.load(out)
    assert isinstance(opened.model, TokenModel)
    assert (opened.model.kind, opened.classes) == ("finetuned" if finetune else "frozen", CLASSES)
    for loaded, expected in zip(opened.predict_proba(SENTENCES), run.predict_proba(SENTENCES), strict=True):
        np.testing.assert_array_equal(loaded, expected)
    assert opened.predict([["john", "lives"]]) == run.predict([["john", "lives"]])
    assert opened.metrics["calibration"]["temperature"] == opened.model.temperature != 1
    find = transformers.pipeline("token-classification", model=str(out / "model"), aggregation_strategy="simple")
    assert {each["entity_group"] for words in SENTENCES for each in find(" ".join(words))} <= {"LOC", "PER"}


def test_a_frozen_tagger_predicts_as_its_trained_head_did(encoder: str) -> None:
    """The trained head reads standardised vectors; it is then folded into the head of the encoder."""
    sources = {"train": pandas.DataFrame(small_sentences(12))}
    config = TokenModelSettings(name=encoder, max_length=32)
    data = read_token_data(TokenDataSettings(), sources, seed=0)
    parts = Parts(config, data.classes, entities=True, seeds=(0, 1, 2), progress=None)
    student = FROZEN.build(parts, data.sentences)
    x = student.examples(data.sentences).x
    with torch.no_grad():
        for parameter in student.module.parameters():
            parameter.normal_(generator=torch.Generator().manual_seed(parameter.numel()))
        expected = student.module(x.expand(3, *x.shape)).softmax(-1)
    for trial in (2, 0):
        model = student.finish(student.module, trial)
        probabilities = np.concatenate(model.predict_proba(data.sentences.tokens))
        np.testing.assert_allclose(probabilities, expected[trial], atol=1e-5)


@KINDS
def test_tags_of_unlabelled_and_of_test_sentences_change_no_bit(fit: Fit, finetune: bool) -> None:
    more, test = small_sentences(8, seed=1), small_sentences(6, seed=2)
    wrong = [{**each, "ner_tags": [["O"] * len(tags) for tags in each["ner_tags"]]} for each in (more, test)]
    one = fit(small_sentences(8), unlabeled=more, test=test, finetune=finetune)
    other = fit(small_sentences(8), unlabeled=wrong[0], test=wrong[1], finetune=finetune)
    assert same_weights(one, other)
    assert one.metrics["test"] != other.metrics["test"]


def test_gold_tags_beside_weak_ones_change_no_bit(fit: Fit) -> None:
    table = small_sentences(12)
    table["noisy"] = [[tag if place % 3 else "O" for place, tag in enumerate(tags)] for tags in table["ner_tags"]]
    blank = {**table, "ner_tags": [["O"] * len(tags) for tags in table["ner_tags"]]}
    one, other = (fit(each, weak="noisy", label="ner_tags") for each in (table, blank))
    assert same_weights(one, other)
    assert one.metrics["label_budget"] == {"train": 0, "dev": 0, "total": 0}


def test_only_a_share_of_the_weak_tags_that_are_outside_is_learned(fit: Fit) -> None:
    table = small_sentences(300)
    table["noisy"] = table.pop("ner_tags")
    seen: list[float] = []

    class Counts(Callback):
        def on_step_end(self, state: TrainingState) -> None:
            for batch in state.batches:
                if batch.labeled is not None:
                    seen.append(float((batch.labeled[1] == 0).float().mean()))

    steps = {"initial_steps": 12, "steps": 0, "batch_size": 4000}
    for share in (1.0, 0.25):
        fit(table, weak="noisy", training=steps, callbacks=[Counts()], settings={"data": {"outside_share": share}})
    whole, less = np.mean(seen[:12]), np.mean(seen[12:])
    assert less / (1 - less) == pytest.approx(0.25 * whole / (1 - whole), rel=0.25)


@pytest.mark.parametrize("keep", [False, True])
def test_weak_tags_are_kept_in_the_game_if_asked(fit: Fit, keep: bool) -> None:
    table = small_sentences(8)
    table["noisy"] = table.pop("ner_tags")
    labeled: list[bool] = []

    class Sees(Callback):
        def on_step_end(self, state: TrainingState) -> None:
            if state.playing:
                labeled.extend(batch.labeled is not None for batch in state.batches)

    fit(table, weak="noisy", training={"keep_weak_labels": keep}, callbacks=[Sees()])
    assert labeled
    assert set(labeled) == {keep}


@KINDS
def test_the_budget_counts_every_tagged_word(fit: Fit, finetune: bool) -> None:
    train, dev = small_sentences(12, labeled=5), small_sentences(4, seed=1)
    words, dev_words = (sum(len(tags or ()) for tags in each["ner_tags"]) for each in (train, dev))
    run = fit(train, dev=dev, finetune=finetune)
    assert run.metrics["label_budget"] == {"train": words, "dev": dev_words, "total": words + dev_words}


@KINDS
def test_every_word_of_a_long_sentence_is_scored(fit: Fit, finetune: bool) -> None:
    long = {"tokens": [["john", "lives", "in"] * 200], "ner_tags": [["B-PER", "O", "O"] * 200]}
    short = small_sentences(3, seed=2)
    test = {name: [*short[name][:2], *long[name], short[name][2]] for name in long}
    run = fit(small_sentences(12), test=test, finetune=finetune)
    truth = [tag for tags in test["ner_tags"] for tag in tags]
    assert run.metrics["test"]["rows"] == len(truth) > 600
    assert run.metrics["by_type"]["PER"]["true"] == sum(tag == "B-PER" for tag in truth)
    predicted = [tag for tags in run.predict(test["tokens"]) for tag in tags]
    right = np.mean([one == other for one, other in zip(predicted, truth, strict=True)])
    assert run.metrics["test"]["model"]["accuracy"] == pytest.approx(right)


def test_slots_are_plain_names_and_words_without_a_vote_are_outside(fit: Fit, tmp_path: Path) -> None:
    """As in MIT-R: no B- and I-, and weak tags that are never O."""
    tables = []
    for seed in range(3):
        table = small_sentences(16, seed=seed)
        slots = [[tag.removeprefix("B-").removeprefix("I-") for tag in tags] for tags in table["ner_tags"]]
        noisy = [[None if tag == "O" else tag for tag in tags] for tags in slots]
        tables.append({"tokens": table["tokens"], "tags": slots, "noisy": noisy})
    train, dev, test = tables
    training = {"initial_steps": 60, "steps": 0, "batch_size": 64, "initial_learning_rate": 0.05}
    run = fit(train, weak="noisy", dev=dev, test=test, training=training)
    assert run.classes == ["O", "LOC", "PER"]
    assert run.metrics["measures"]["f1"] == "slot token F1"
    assert run.metrics["uncovered"]["chosen"] == "O"
    scores = drift.evaluate(run, pandas.DataFrame(test))
    kept = run.record.model_scores("test")
    assert {name: scores[name] for name in kept} == pytest.approx(kept)
    drift.predict(run, pandas.DataFrame(test), tmp_path / "out.jsonl")
    entities = [each for row in read_jsonl(tmp_path / "out.jsonl") for each in row["entities"]]
    assert entities
    assert {each["label"] for each in entities} <= {"LOC", "PER"}


@pytest.fixture
def by_rules(fit: Fit, tmp_path: Path) -> Fit:
    """A run with rules that never vote for O. uncovered: how words without a vote are treated."""
    (tmp_path / "rules.yaml").write_text(RULES)

    def run(uncovered: str = "dev", **options: Any) -> Run:
        table = {"tokens": small_sentences(16)["tokens"]}
        settings = {"data": {"uncovered": uncovered}}
        return fit(table, **{"rules": tmp_path / "rules.yaml", "settings": settings, **options})

    return run


def test_words_without_a_weak_tag_are_treated_as_the_setting_says(by_rules: Fit) -> None:
    start = {"initial_steps": 60, "steps": 0, "batch_size": 64, "initial_learning_rate": 0.05}
    ignored, outside = (by_rules(way, training=start) for way in ("ignore", "O"))
    plain = [["lives", "in", "the"]]
    assert not any(tag == "O" for tags in ignored.predict(plain) for tag in tags)  # no training tag is O
    assert outside.predict(plain) == [["O", "O", "O"]]
    assert (ignored.metrics["uncovered"], outside.metrics["uncovered"]) == ({"chosen": "ignore"}, {"chosen": "O"})
    assert ignored.metrics["weak_labels"]["labeled"] == outside.metrics["weak_labels"]["labeled"]


@KINDS
def test_dev_chooses_how_they_are_treated_and_both_scores_are_recorded(by_rules: Fit, finetune: bool) -> None:
    options = {"dev": small_sentences(8, seed=1), "finetune": finetune, "training": {"initial_steps": 20}}
    run = by_rules("dev", **options)
    scores, chosen = run.metrics["uncovered"]["dev"], run.metrics["uncovered"]["chosen"]
    assert set(scores) == {"ignore", "O", "common"}
    assert scores[chosen] == max(scores.values())
    assert any(note.startswith(f"words without a weak tag: {chosen}, chosen by the start's F1") for note in run.notes)
    named = by_rules(chosen, **options)
    assert same_weights(run, named)  # that both were tried changes nothing
    starts = named.metrics["start_on_dev"]
    assert scores[chosen] == pytest.approx(np.mean([each["f1"] for each in starts]))


def test_without_dev_words_without_a_weak_tag_are_outside_unless_some_weak_tag_is_o(by_rules: Fit, fit: Fit) -> None:
    assert by_rules("dev").metrics["uncovered"] == {"chosen": "O"}
    table = {"tokens": [["john", "lives", "here"]] * 6, "noisy": [["B-PER", None, "O"]] * 6}
    run = fit(table, weak="noisy")
    assert run.metrics["uncovered"] == {"chosen": "ignore"}
    assert any("there is no dev to choose by" in note for note in run.notes)
    whole = fit({**table, "noisy": [["B-PER", "O", "O"]] * 6}, weak="noisy")
    assert whole.metrics["uncovered"] == {}


def test_words_of_the_unlabelled_table_are_not_taken_for_outside(by_rules: Fit) -> None:
    more = {"tokens": [["john", "and", "london"]] * 20}
    options = {"method": "supervised", "finetune": True}
    assert same_weights(by_rules("O", **options), by_rules("O", unlabeled=more, **options))


@KINDS
def test_rules_may_be_an_object(by_rules: Fit, tmp_path: Path, finetune: bool) -> None:
    """It gives the same tagger as the file, and the same example sentences."""
    options = {"test": small_sentences(8, seed=1), "finetune": finetune}
    one = by_rules("O", **options)
    other = by_rules("O", rules=TokenRuleSet.from_file(tmp_path / "rules.yaml"), **options)
    assert same_weights(one, other)
    assert one.metrics["weak_wrong_model_right"] == other.metrics["weak_wrong_model_right"]
    assert one.metrics["rules"] == other.metrics["rules"]


@pytest.mark.parametrize("after", [3, 6])
def test_an_interrupted_and_resumed_run_equals_the_whole_run_to_the_bit(
    fit: Fit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    table = write_jsonl(tmp_path / "train.jsonl", small_sentences(20, labeled=8))
    dev = write_jsonl(tmp_path / "dev.jsonl", small_sentences(6, seed=1))
    options = {"dev": dev, "finetune": True, "training": {"evaluate_every": 2}}
    whole = fit(table, out=tmp_path / "whole", **options)
    with monkeypatch.context() as patch:
        patch.setattr(execution, "Trainer", stopped_after(after))
        with pytest.raises(Interrupted, match="continue with drift fit --resume"):
            fit(table, out=tmp_path / "run", **options)
    assert not (tmp_path / "run/model").exists()
    resumed = drift.fit(out=tmp_path / "run", resume=True, quiet=True)
    assert isinstance(resumed, Run)
    assert same_weights(whole, resumed)
    one, other = ({**metrics_of(tmp_path / name), **COST} for name in ("whole", "run"))
    assert one == other
    assert (tmp_path / "whole/trace.jsonl").read_bytes() == (tmp_path / "run/trace.jsonl").read_bytes()


def test_a_run_is_not_resumed_with_other_tags(fit: Fit, tmp_path: Path) -> None:
    table = small_sentences(12)
    fit(write_jsonl(tmp_path / "t.jsonl", table), out=tmp_path / "run")
    table["ner_tags"][3] = ["O"] * len(table["ner_tags"][3])
    write_jsonl(tmp_path / "t.jsonl", table)
    with pytest.raises(StateError, match="the tables are not what they were when the run began"):
        drift.fit(out=tmp_path / "run", resume=True, quiet=True)


class Page(HTMLParser):
    """The tags of an HTML page, and the text of its marks."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.marks: list[str] = []
        self.open = False
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: Any) -> None:
        self.tags.append(tag)
        if tag == "mark":
            self.marks.append("")
            self.open = True

    def handle_endtag(self, tag: str) -> None:
        self.open = self.open and tag != "mark"

    def handle_data(self, data: str) -> None:
        if self.open:
            self.marks[-1] += data


def test_words_and_types_stay_text_on_the_page(fit: Fit, tmp_path: Path) -> None:
    word, name = '"><script>alert(1)</script>', "<img src=x onerror='alert(2)'>"
    table = {"tokens": [[word, "in", "london"]] * 8, "ner_tags": [[f"B-{name}", "O", "B-LOC"]] * 8}
    fit(table, test=table, out=tmp_path / "run")
    page = Page((tmp_path / "run/report.html").read_text(encoding="utf-8"))
    assert "script" not in page.tags
    assert page.tags.count("img") == page.tags.count("figure")  # only those of our figures
    assert page.marks[:2] == [f"{word}\N{NO-BREAK SPACE}{name}", "london\N{NO-BREAK SPACE}LOC"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "./none"}, "./none is not a model folder"),
        ({"model": "textcnn"}, "'textcnn' is not a kind of model for tokens"),
        ({"model": "vampire"}, "'vampire' is not a kind of model for tokens"),
        ({"settings": {"model": {"max_length": 65}}}, "max_length is 65"),
        ({"settings": {"model": {"layers": 3}}}, "model.layers is 3"),
        ({"settings": {"data": {"scheme": "BIO"}}}, "scheme 'BIO' is not one of IOB2"),
        ({"settings": {"data": {"labeled_rows": 13}}}, "12 sentences have tags"),
        ({"labels_per_class": 2}, "labeled_rows"),
        (
            {"settings": {"method": {"prior": {"O": 1.0}}}},
            "method.prior has no share for class 'B-LOC'",
        ),
    ],
)
def test_a_run_that_cannot_begin_leaves_nothing_behind(
    fit: Fit, tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(DriftError) as error:
        fit(small_sentences(12), out=tmp_path / "run", **options)
    assert message in str(error.value)
    assert len(str(error.value).splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_a_prior_by_tag_equals_the_list_in_class_order(fit: Fit) -> None:
    shares = dict(zip(CLASSES, (0.6, 0.15, 0.05, 0.15, 0.05), strict=True))

    def small(prior: Any) -> Run:
        return fit(small_sentences(12, labeled=4), settings={"method": {"prior": prior, "unbalanced_class": None}})

    listed = small(list(shares.values()))
    assert same_weights(listed, small(dict(reversed(shares.items()))))
    assert not same_weights(listed, small({**shares, "O": 0.55, "B-LOC": 0.2}))


@KINDS
def test_words_that_changed_their_tag_are_listed_with_their_sentences(fit: Fit, finetune: bool) -> None:
    train = small_sentences(12, labeled=4)
    run = fit(train, finetune=finetune, training={"steps": 6})
    changes = run.metrics["changes"]
    words = [word for sentence in train["tokens"][4:] for word in sentence]
    assert changes["watched"] == len(words)
    sentences = {" ".join(sentence) for sentence in train["tokens"][4:]}
    for each in changes["examples"]:
        word, _, sentence = each["text"].partition(": ")
        assert sentence in sentences
        assert word in sentence.split()
