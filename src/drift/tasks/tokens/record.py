"""The record of a run on the words of sentences."""

from typing import Literal

from drift.tasks.record import RunRecord
from drift.tasks.record_parts import Part
from drift.weak.diagnostics import Share


class TypeScores(Part):
    """Scores of one type of entity or slot. true: how many there are."""

    f1: float
    precision: float
    recall: float
    true: int


class WeakTagShares(Part):
    """How many words have a weak tag. sentences, by_type: on sentences with gold tags, how good the weak ones are."""

    labeled: Share
    sentences: int | None = None
    by_type: dict[str, TypeScores] | None = None


class Uncovered(Part):
    """How words without a weak tag are treated. dev: F1 of θinit on dev for each way, if dev chose."""

    chosen: Literal["ignore", "O", "common"] | None = None
    dev: dict[Literal["ignore", "O", "common"], float] | None = None


class TaggedWords(Part):
    """Shares of words with a tag other than O: in the tags that were learned, and predicted by the model."""

    labels: float
    model: float


class RuleVotes(Part):
    """Rules that vote in the tagger. dev: F1 by weight, if dev chose. without: F1 without votes, by part."""

    weight: float
    dev: dict[str, float] | None = None
    without: dict[Literal["dev", "test"], float]


class Sample(Part):
    """A sentence with spans `[start, end, type]` by their origin, such as "true", "weak" and "model"."""

    words: list[str]
    spans: dict[str, list[tuple[int, int, str]]]


class BesideWeak(Part):
    """Sentences that either the weak tags or the model got right. where: "held-out" or "training"."""

    where: str
    sentences: list[Sample]


class SpanShares(Part):
    """Spans that rules find, and how many of them are right."""

    found: int
    precision: Share
    recall: Share
    f1: Share


class TokenShares(Part):
    """Words that rules tag. labeled: of all rules together."""

    coverage: Share
    overlap: Share
    conflict: Share
    labeled: Share | None = None


class RuleFacts(Part):
    """What a rule, or all rules together, tag. Written by `TokenSummary.as_dict`."""

    tokens: TokenShares
    together: SpanShares
    types: dict[str, SpanShares]


class RuleSetFacts(RuleFacts):
    """What all rules together tag, and each of them."""

    rules: dict[str, RuleFacts]


class TokenRecord(RunRecord):
    """entities: whether tags are B- and I-. by_type, errors: scores and kinds of errors by type."""

    entities: bool
    sentences: int
    columns: dict[str, str | None]
    by_type: dict[str, TypeScores] | None = None
    errors: dict[str, dict[str, int]] | None = None
    samples: list[Sample] | None = None
    weak_wrong_model_right: BesideWeak | None = None
    weak_right_model_wrong: BesideWeak | None = None
    weak_labels: WeakTagShares | None = None
    uncovered: Uncovered | None = None
    tagged_words: TaggedWords | None = None
    rules: RuleSetFacts | None = None
    rule_votes: RuleVotes | None = None

    def faults(self) -> list[str]:
        faults = super().faults()
        required = {"by_type": self.by_type, "errors": self.errors, "calibration": self.calibration}
        if self.held_out is not None:
            missing = [name for name, value in required.items() if value is None]
            faults += [f"{name}: field required, as there are scores" for name in missing]
        types = {tag[2:] if self.entities else tag for tag in self.classes}
        compared = [each for each in (self.weak_wrong_model_right, self.weak_right_model_wrong) if each is not None]
        shown = [*(self.samples or []), *(sample for each in compared for sample in each.sentences)]
        marked = {name for sample in shown for spans in sample.spans.values() for _, _, name in spans}
        return faults + [f"samples: type {name!r} is not among the classes" for name in sorted(marked - types)]
