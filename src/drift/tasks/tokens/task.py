"""Runs on the words of sentences: a tag a word, from gold tags of a few sentences or weak ones of many."""

import copy
from collections.abc import Mapping
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import nn

from drift.data.cache import content_key
from drift.data.examples import Labeled
from drift.data.labels import UNLABELED
from drift.methods.supervised import SupervisedSettings
from drift.tasks.base import HeldOut, Prepared, Task
from drift.tasks.judging import excerpt
from drift.tasks.tokens.data import TaggedSentences, read_token_data, sizes_of
from drift.tasks.tokens.judging import judge, weak_tag_shares
from drift.tasks.tokens.students import TokenStudent, token_student
from drift.tasks.tokens.tagging import Tagging
from drift.tasks.tokens.words import LabeledWords
from drift.training.data import TrainingData
from drift.training.threads import threads
from drift.training.trainer import Trainer


class TokenTask(Task):
    """See the module."""

    unit = "words"

    @property
    def measures(self) -> dict[str, str]:
        what = "entity F1" if self.data.entities else "slot token F1"
        return {"f1": what, "precision": "precision", "recall": "recall", "accuracy": "token accuracy"}

    def read(self, sources: Mapping[str, Any]) -> None:
        self.data = read_token_data(self.config.data, sources, seed=self.config.training.seed)
        self.uncovered: dict[str, Any] = {}

    def fingerprint(self) -> str:
        data = self.data
        parts = [part for part in (data.dev, data.test) if part is not None]
        tokens = chain(data.sentences.tokens, *(part.sentences.tokens for part in parts))
        codes = [data.gold, data.weak, *(part.codes for part in parts)]
        return content_key(map(repr, tokens), data.classes, [None if each is None else each.tolist() for each in codes])

    def prepare(self) -> Prepared:
        data = self.data
        student = token_student(
            self.kind,
            self.config.model,
            data.sentences,
            data.classes,
            entities=data.entities,
            seeds=self.seeds,
            progress=self.progress,
        )
        examples = student.examples(data.sentences)
        dev = self._held_out(student, data.dev)
        used = data.gold == UNLABELED if data.weak is None else np.ones(len(data.gold), dtype=bool)
        unlabeled = student.unlabeled(examples, used, data.gold) if used.any() else None

        def training(codes: np.ndarray) -> TrainingData:
            part = student.labeled(examples, codes)
            return TrainingData(part, unlabeled, None if dev is None else dev.part, weak=data.weak is not None)

        codes = data.gold if data.weak is None else self._covered(data.weak, student, training, dev)
        return Prepared(
            student.module,
            training(codes),
            dev,
            lambda: self._held_out(student, data.test),
            student.finished,
            notes=[],
        )

    def facts(self) -> dict[str, Any]:
        data = self.data
        found: dict[str, Any] = {
            "classes": data.classes,
            "entities": data.entities,
            "weak": data.weak is not None,
            "training_rows": len(data.gold),
            "sentences": len(data.sentences),
            "columns": {"text": self.config.data.tokens, "label": self.config.data.label},
        }
        if data.weak is not None:
            found |= {"weak_labels": weak_tag_shares(data), "uncovered": self.uncovered}
        if data.rules is not None:
            found["rules"] = data.rules.as_dict()
        return found

    def judge(self, part: str, probabilities: np.ndarray, model: Any) -> dict[str, Any]:
        held_out = self.data.test if part == "test" else self.data.dev
        assert held_out is not None
        return judge(self.data, held_out, probabilities, model, self.config.data.rules)

    def shown(self, thing: int) -> str:
        ends = np.cumsum(sizes_of(self.data.sentences))
        sentence = int(np.searchsorted(ends, thing, side="right"))
        tokens = self.data.sentences.tokens[sentence]
        return f"{tokens[thing - int(ends[sentence])]}: {excerpt(' '.join(tokens))}"

    def notes(self) -> list[str]:
        return list(self.data.notes)

    def _covered(self, weak: np.ndarray, student: TokenStudent, training: Any, dev: HeldOut | None) -> np.ndarray:
        """Weak tags, with those of words that none covers left unknown or taken for O: what dev says is better."""
        bare = weak == UNLABELED
        bare[self.data.train_words :] = False  # words that no rule has seen are not outside of everything
        if not bare.any():
            return weak
        ways = {"ignore": weak, "O": np.where(bare, self.data.outside, weak)}
        chosen: str = self.config.data.uncovered
        if chosen == "dev" and dev is None:
            # Where no weak tag is O, a start that ignores the other words never learns O.
            chosen = "ignore" if (weak == self.data.outside).any() else "O"
            self.data.notes.append(f"words without a weak tag: {chosen} (data.uncovered; there is no dev to choose by)")
        elif chosen == "dev":
            scores = {way: self._start_score(student.module, training(codes), dev) for way, codes in ways.items()}
            chosen = max(scores, key=lambda way: scores[way])
            self.uncovered["dev"] = scores
            told = ", ".join(f"{way} {100 * score:.2f}" for way, score in scores.items())
            self.data.notes.append(f"words without a weak tag: {chosen}, chosen by the start's F1 on dev ({told})")
        self.uncovered["chosen"] = chosen
        return ways[chosen]

    def _start_score(self, student: nn.Module, training: TrainingData, dev: HeldOut | None) -> float:
        """The mean dev score of the start alone."""
        assert dev is not None
        trainer = Trainer(
            copy.deepcopy(student),
            training,
            self.config.training,
            "supervised",
            SupervisedSettings(),
            dev.score,
            seeds=tuple(self.seeds) if self.stacked else None,
            quiet=True,
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
        kind = Labeled if examples.counts is None else LabeledWords
        return HeldOut(
            kind(examples, torch.arange(len(examples)), codes),
            Tagging(self.data.classes, part.sizes, self.data.entities),
        )
