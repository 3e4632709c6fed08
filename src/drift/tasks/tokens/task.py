"""Runs on the words of sentences: one tag per word, from gold tags of a few sentences or weak tags of many."""

import copy
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import nn

from drift.data.cache import content_key
from drift.data.examples import Labeled
from drift.data.labels import UNLABELED
from drift.data.tags import OUTSIDE, repaired
from drift.errors import ConfigError
from drift.methods.method import INDEPENDENT_ROWS
from drift.methods.supervised import Supervised, SupervisedSettings
from drift.models.locating import words_default
from drift.tasks.base import Kind, Task
from drift.tasks.judging import excerpt
from drift.tasks.parts import HeldOut, Prepared, Usage
from drift.tasks.tokens.check import check_sentences
from drift.tasks.tokens.data import TaggedSentences, read_token_data, rules_of, sizes_of
from drift.tasks.tokens.judging import judge, weak_tag_shares, weak_tags_of
from drift.tasks.tokens.model import TokenModel
from drift.tasks.tokens.predict import evaluate_sentences, predict_sentences
from drift.tasks.tokens.record import TaggedWords, TokenRecord
from drift.tasks.tokens.report import type_sections, weak_tag_sections
from drift.tasks.tokens.service import service_lines, token_script
from drift.tasks.tokens.serving import token_service
from drift.tasks.tokens.settings import TokenDataSettings, TokenModelSettings
from drift.tasks.tokens.shares import faults, tagged_words
from drift.tasks.tokens.students import FINETUNED, FROZEN, KINDS, NOT_ENCODERS, Parts, TokenStudent
from drift.tasks.tokens.suggest import suggest_sentences
from drift.tasks.tokens.tagging import Tagging
from drift.tasks.tokens.uncovered import fillings, found_by, held_out_words, positive_score
from drift.tasks.tokens.voting import best_weight, voted, votes_of
from drift.tasks.tokens.words import LabeledWords
from drift.training.data import TrainingData
from drift.training.threads import threads
from drift.training.trainer import Trainer

CLEARLY = 2.0  # times as good a score makes `uncovered=common` the choice: where it is wrong, it does much harm


class TokenTask(Task):
    """One tag per word."""

    name = "tokens"
    unit = "words"
    title, hub_task = "Tagger", "token-classification"
    offers = frozenset({INDEPENDENT_ROWS})
    data_settings, model_settings, record_type = TokenDataSettings, TokenModelSettings, TokenRecord
    kinds = KINDS
    finetunes = True
    usage = Usage(
        [
            "predict RUN new.jsonl -o tagged.jsonl",
            "evaluate RUN tagged_by_hand.jsonl",
            "suggest RUN new.jsonl -o to-tag.jsonl",
        ],
        [
            'run.predict([["Ann", "left", "Bern"]])  # a list of tags for each sentence',
            "# Without this package: transformers.pipeline('token-classification', model=..., the folder `model`)",
        ],
    )

    load_model = staticmethod(TokenModel.load)
    predict_chunks, evaluate = staticmethod(predict_sentences), staticmethod(evaluate_sentences)
    check, suggest = staticmethod(check_sentences), staticmethod(suggest_sentences)
    result_sections, weak_label_sections = staticmethod(type_sections), staticmethod(weak_tag_sections)
    standalone = staticmethod(token_script)
    service_lines, service = staticmethod(service_lines), staticmethod(token_service)

    @classmethod
    def choose_kind(cls, model: Mapping[str, Any], *, finetune: bool) -> Kind:
        frozen, name = model.get("frozen"), model.get("name")
        if name in NOT_ENCODERS:
            raise ConfigError(f"{name!r} is not a kind of model for tokens; give one that `drift models` lists")
        return FROZEN if (not finetune if frozen is None else frozen) else FINETUNED

    @classmethod
    def complete(cls, settings: dict[str, Any], kind: Kind) -> dict[str, Any]:
        # Otherwise the machine would decide again when the run is resumed or repeated.
        model = {"name": "default", **settings.get("model", {}), "frozen": kind is FROZEN}
        return {**settings, "model": model | ({"name": words_default()} if model["name"] == "default" else {})}

    @classmethod
    def hint(cls, option: str) -> str:
        if option == "labels_per_class":
            return "words are labelled by the sentence: use data.labeled_rows, which counts sentences"
        return "name the column of words with --tokens" if option == "text" else ""

    @property
    def measures(self) -> dict[str, str]:
        f1 = "entity F1" if self.data.entities else "slot token F1"
        return {"f1": f1, "precision": "precision", "recall": "recall", "accuracy": "token accuracy"}

    def read(self, sources: Mapping[str, Any]) -> None:
        self.rules = rules_of(self.config.data, sources)
        self.data = read_token_data(self.config.data, {**sources, "rules": self.rules}, seed=self.config.training.seed)
        self.use_classes(self.data.classes)
        self.votes = votes_of(self.rules, self.config.model.rule_votes)
        self.voting: dict[str, Any] = {"without": {}}
        self.uncovered: dict[str, Any] = {}
        self.tagged_words: TaggedWords | None = None

    def fingerprint(self) -> str:
        data = self.data
        parts = [part for part in (data.dev, data.test) if part is not None]
        tokens = chain(data.sentences.tokens, *(part.sentences.tokens for part in parts))
        codes = [data.gold, data.weak, *(part.codes for part in parts)]
        return content_key(map(repr, tokens), data.classes, [None if each is None else each.tolist() for each in codes])

    def prepare(self) -> Prepared:
        data = self.data
        parts = Parts(self.config.model, data.classes, data.entities, self.seeds, self.progress)
        student: TokenStudent = self.kind.build(parts, data.sentences)
        examples = student.examples(data.sentences)
        dev = self._held_out(student, data.dev)
        used = data.gold == UNLABELED if data.weak is None else np.ones(len(data.gold), dtype=bool)
        unlabeled = student.unlabeled(examples, used, data.gold) if used.any() else None

        def training(codes: np.ndarray) -> TrainingData:
            part = student.labeled(examples, codes)
            student.begin(part)
            return TrainingData(part, unlabeled, None if dev is None else dev.part, weak=data.weak is not None)

        codes = data.gold if data.weak is None else self._with_uncovered(data.weak, student, training, dev)
        return Prepared(
            student.module,
            training(codes),
            dev,
            lambda: self._held_out(student, data.test),
            student.finish,
            notes=list(student.notes),
        )

    def refine(self, part: str, probabilities: np.ndarray, score: Callable[[np.ndarray], Any]) -> np.ndarray:
        """The probabilities with the votes of the rules, whose weight dev chooses."""
        held_out = self.data.test if part == "test" else self.data.dev
        if self.votes is None or held_out is None:
            return probabilities
        codes = voted(self.votes.rules, held_out.sentences.tokens, self.data.classes, entities=self.data.entities)
        if part == "dev" and self.config.model.rule_votes == "auto":
            weight, scores = best_weight(probabilities, codes, score)
            self.votes = replace(self.votes, weight=weight)
            self.voting["dev"] = {f"{weight:g}": f1 for weight, f1 in scores.items()}
        self.voting["without"][part] = float(np.mean([score(each)["f1"] for each in probabilities]))
        return self.votes.added(probabilities, codes)

    def facts(self) -> dict[str, Any]:
        data = self.data
        facts: dict[str, Any] = {
            "classes": data.classes,
            "entities": data.entities,
            "weak": data.weak is not None,
            "training_rows": len(data.gold),
            "sentences": len(data.sentences),
            "columns": {"text": self.config.data.tokens, "label": self.config.data.label},
            "tagged_words": self.tagged_words,
        }
        if data.weak is not None:
            facts |= {"weak_labels": weak_tag_shares(data), "uncovered": self.uncovered}
        if data.rules is not None:
            facts["rules"] = data.rules.as_dict()
        if self.votes is not None:
            facts["rule_votes"] = {"weight": self.votes.weight, **self.voting}
        return facts

    def judge(self, part: str, probabilities: np.ndarray, model: Any) -> dict[str, Any]:
        held_out = self.data.test if part == "test" else self.data.dev
        assert held_out is not None
        return judge(self.data, held_out, probabilities, model, self.rules)

    def baselines(self, part: str) -> dict[str, np.ndarray]:
        """The rules, or the weak tags of the table if it has some; words without a tag are O."""
        held_out = self.data.test if part == "test" else self.data.dev
        assert held_out is not None
        tags = weak_tags_of(self.data, held_out, self.rules)
        if tags is None:
            return {}
        code_of = {tag: code for code, tag in enumerate(self.data.classes)}
        filled = [[tag or OUTSIDE for tag in sentence or ()] for sentence in tags]
        valid = map(repaired, filled) if self.data.entities else filled
        codes = [code_of.get(str(tag), self.data.outside) for sentence in valid for tag in sentence]
        return {"rules" if self.rules is not None else "weak tags": np.eye(len(code_of))[codes]}

    def describe(self, target: int) -> str:
        ends = np.cumsum(sizes_of(self.data.sentences))
        sentence = int(np.searchsorted(ends, target, side="right"))
        tokens = self.data.sentences.tokens[sentence]
        return f"{tokens[target - int(ends[sentence])]}: {excerpt(' '.join(tokens))}"

    def notes(self) -> list[str]:
        notes = [*self.data.notes, *(() if self.tagged_words is None else faults(self.tagged_words))]
        if self.votes is None:
            return notes
        weight, without = self.votes.weight, self.voting["without"]
        listed = "".join(f"; F1 on {part} without them {100 * f1:.2f}" for part, f1 in without.items())
        if not weight:
            return [*notes, "the rules do not vote in the tagger: it is better without them on dev"]
        said = f"the rules vote in the tagger, with weight {weight:g} (model.rule_votes{listed})"
        return [*notes, f"{said}; they are in the run's folder, but not in model.onnx"]

    def refined_model(self, model: TokenModel) -> TokenModel:
        """The tagger with transitions, and with rules that vote."""
        votes = self.votes if self.votes is not None and self.votes.weight else None
        refined = replace(model, votes=votes, restart=self.data.restart)
        self.tagged_words = tagged_words(self.data, refined.predict)
        return refined

    def _with_uncovered(
        self,
        weak: np.ndarray,
        student: TokenStudent,
        training: Callable[[np.ndarray], TrainingData],
        dev: HeldOut | None,
    ) -> np.ndarray:
        """Weak tags, with words that have none either left unknown or taken for O; dev decides which."""
        outside, tokens = self.data.outside, self.data.sentences.tokens
        filled = fillings(tokens, weak, outside=outside, covered=self.data.train_words)
        if (filled["O"] == weak).all():
            return self._with_less_outside(weak)
        ways = {way: self._with_less_outside(codes) for way, codes in filled.items()}
        chosen: str = self.config.data.uncovered
        if chosen == "dev" and dev is None:
            chosen, why = self._without_dev(weak, student, training)
            self.data.notes.append(f"words without a weak tag: {chosen} (data.uncovered; {why})")
        elif chosen == "dev":
            scores = {way: self._start_score(student.module, training(codes), dev) for way, codes in ways.items()}
            chosen = max(scores, key=lambda way: scores[way])
            self.uncovered["dev"] = scores
            listed = ", ".join(f"{way} {100 * score:.2f}" for way, score in scores.items())
            self.data.notes.append(f"words without a weak tag: {chosen}, chosen by the start's F1 on dev ({listed})")
        self.uncovered["chosen"] = chosen
        return ways[chosen]

    def _without_dev(
        self, weak: np.ndarray, student: TokenStudent, training: Callable[[np.ndarray], TrainingData]
    ) -> tuple[str, str]:
        """How to treat words without a weak tag, and why, without gold tags.

        If no weak tag is O, a start that ignores the other words never learns O. Whether all of them or only common
        ones are O is found with tagged words that are held out: a tagger should find them, and not much else.
        """
        outside, tokens = self.data.outside, self.data.sentences.tokens
        if (weak == outside).any():
            return "ignore", "some weak tags are O, and there is no dev to choose by"
        if not getattr(self.config.model, "probe", False) or self.kind is FROZEN:
            return "O", "there is no dev to choose by"
        held_out = held_out_words(tokens, tagged=weak != UNLABELED, seed=self.config.training.seed)
        hidden = np.where(held_out, UNLABELED, weak)
        scores = {}
        for way, codes in fillings(tokens, hidden, outside=outside, covered=self.data.train_words).items():
            if way != "ignore":
                examples = training(self._with_less_outside(codes)).labeled.examples  # fits the last layer
                found, words = found_by(student.module, examples, outside=outside)
                scores[way] = positive_score(found, held_out[words])
        chosen = "common" if scores["common"] > CLEARLY * scores["O"] else "O"
        listed = ", ".join(f"{way} {score:.2f}" for way, score in scores.items())
        return chosen, f"by how well held-out tagged words are found, r²/P: {listed}"

    def _with_less_outside(self, codes: np.ndarray) -> np.ndarray:
        """Weak tags of which only a share of those that are O is left."""
        share = self.config.data.outside_share
        random = np.random.default_rng(self.config.training.seed).random(len(codes))
        return np.where((codes == self.data.outside) & (random >= share), UNLABELED, codes)

    def _start_score(self, student: nn.Module, training: TrainingData, dev: HeldOut | None) -> float:
        """The mean dev score of θinit."""
        assert dev is not None
        trainer = Trainer(
            copy.deepcopy(student),
            training,
            self.config.training,
            Supervised,
            SupervisedSettings(),
            dev.score,
            seeds=self.seeds if self.kind.stacked else None,
        )
        with threads(self.config.training.threads):
            outcome = trainer.run()
        assert outcome.best is not None
        return float(np.mean([trial["f1"] for trial in outcome.best]))

    def _held_out(self, student: TokenStudent, part: TaggedSentences | None) -> HeldOut | None:
        if part is None:
            return None
        examples = student.examples(part.sentences)
        codes = torch.from_numpy(part.codes)
        rows_type = Labeled if examples.counts is None else LabeledWords
        return HeldOut(
            rows_type(examples, torch.arange(len(examples)), codes),
            Tagging([*self.data.classes, *part.unknown], part.sizes, self.data.entities, self.data.restart),
            None if student.exact else lambda model: np.concatenate(model.predict_proba(part.sentences.tokens)),
        )
