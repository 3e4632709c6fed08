"""Judge the kept tagger on known tags: scores by type, calibration and examples; and the quality of weak tags."""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from drift.data.labels import UNLABELED
from drift.data.tags import Span, spans_of
from drift.tasks.judging import judge_confidence
from drift.tasks.tokens.data import TaggedSentences, TokenData, rule_tags, sizes_of, words_of
from drift.tasks.tokens.model import TokenModel
from drift.tasks.tokens.tagging import Tagging
from drift.weak.diagnostics import Share

Tags = Sequence[str | None]

SAMPLES = 10  # sentences that are kept to show
MOST_WORDS = 60  # words of such a sentence
COMPARED = 500  # training sentences on which weak tags and the model are compared, if there are no rules to apply


def judge(
    data: TokenData, part: TaggedSentences, probabilities: np.ndarray, model: TokenModel, rules: Any
) -> dict[str, Any]:
    """Scores and errors by type, calibration before and after the temperature, and sentences to show.

    probabilities: `(words, C)`, before the temperature. rules: a file or a TokenRuleSet; None without rules.
    """
    tagging = Tagging([*data.classes, *part.unknown], part.sizes, data.entities, model.restart)
    labels = part.codes
    codes = tagging.decoded(probabilities)
    truth, predicted = tagging.sentences(labels), tagging.sentences(codes)
    judged: dict[str, Any] = {
        "by_type": tagging.by_type(codes, labels),
        "errors": errors_by_type(truth, predicted, data.scheme),
        "calibration": judge_confidence(probabilities, labels, model.temperature),
        "samples": _samples(part.sentences.tokens, {"true": truth, "model": predicted}, data.scheme, _has_entities),
    }
    if data.weak is not None:
        tokens, tags, where = _beside_weak(data, part, truth, predicted, model, rules)
        for name, wanted in COMPARISONS.items():
            judged[name] = {"where": where, "sentences": _samples(tokens, tags, data.scheme, wanted)}
    return judged


def weak_tags_of(data: TokenData, part: TaggedSentences, rules: Any) -> list[Any] | None:
    """The tags that rules give to held-out sentences, or the weak tags of their table; None if there are none."""
    if rules is not None:
        return list(rule_tags(part.sentences, rules, data.scheme)[0])
    weak = part.sentences.weak
    return (
        [tags or [None] * len(words) for tags, words in zip(weak, part.sentences.tokens, strict=True)]
        if any(weak)
        else None
    )


def weak_tag_shares(data: TokenData) -> dict[str, Any]:
    """How many words have a weak tag, and how good weak tags are where gold ones are known; uncovered words are O."""
    assert data.weak is not None
    shares: dict[str, Any] = {"labeled": asdict(Share(int((data.weak != UNLABELED).sum()), len(data.weak)))}
    known = _known_sentences(data)
    if len(known):
        sizes = sizes_of(data.sentences)
        words = words_of(sizes, known)
        weak = np.where(data.weak == UNLABELED, data.outside, data.weak)[words]
        tagging = Tagging(data.classes, sizes[known], data.entities)
        by_type = tagging.by_type(weak, data.gold[words])
        shares |= {"sentences": len(known), "by_type": by_type}
    return shares


def errors_by_type(truth: Sequence[Tags], predicted: Sequence[Tags], scheme: str) -> dict[str, dict[str, int]]:
    """What became of the true entities of each type, and how many predicted ones are spurious.

    right: predicted exactly; bounds: predicted with the right type but other bounds; type: only overlapped by other
    types; missed: no word of it is in a predicted entity. made up: predicted, but shares no word with a true one.
    """
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for true_tags, predicted_tags in zip(truth, predicted, strict=True):
        true_spans, predicted_spans = spans_of(true_tags, scheme), spans_of(predicted_tags, scheme)
        true_at, predicted_at = _by_word(true_spans), _by_word(predicted_spans)
        for span in true_spans:
            over = {predicted_at[word] for word in range(span.start, span.end) if word in predicted_at}
            same_type = any(other.type == span.type for other in over)
            error = "right" if span in over else "bounds" if same_type else "type" if over else "missed"
            counts[span.type][error] += 1
        for span in predicted_spans:
            if not any(word in true_at for word in range(span.start, span.end)):
                counts[span.type]["made up"] += 1
    return {name: dict(counts[name]) for name in sorted(counts)}


def _by_word(spans: Sequence[Span]) -> dict[int, Span]:
    return {word: span for span in spans for word in range(span.start, span.end)}


def _beside_weak(
    data: TokenData,
    part: TaggedSentences,
    truth: list[list[str]],
    predicted: list[list[str]],
    model: TokenModel,
    rules: Any,
) -> tuple[list[list[str]], dict[str, list[Any]], str]:
    """Sentences with their true, weak and predicted tags, and which sentences these are."""
    if (weak := weak_tags_of(data, part, rules)) is not None:
        return part.sentences.tokens, {"true": truth, "weak": weak, "model": predicted}, "held-out"
    known = _known_sentences(data)[:COMPARED]
    tokens, sizes = [data.sentences.tokens[row] for row in known], sizes_of(data.sentences)
    tags: dict[str, list[Any]] = {
        name: [
            [data.classes[code] if code >= 0 else None for code in codes[words_of(sizes, np.array([row]))]]
            for row in known
        ]
        for name, codes in (("true", data.gold), ("weak", data.weak))
        if codes is not None
    }
    tags["model"] = [model.tags(probabilities) for probabilities in model.predict_proba(tokens)]
    return tokens, tags, "training"


def _known_sentences(data: TokenData) -> np.ndarray:
    """The sentences with a gold tag on every word."""
    sizes = sizes_of(data.sentences)
    return np.flatnonzero(np.add.reduceat(data.gold == UNLABELED, np.cumsum(sizes) - sizes) == 0)


def _samples(
    tokens: Sequence[Sequence[str]],
    tags: Mapping[str, Sequence[Tags]],
    scheme: str,
    wanted: Callable[[Mapping[str, set[Span]]], bool],
) -> list[dict[str, Any]]:
    """The first sentences of moderate length that are wanted, with their spans by origin."""
    samples: list[dict[str, Any]] = []
    for row, words in enumerate(tokens):
        if len(words) > MOST_WORDS:
            continue
        spans = {origin: spans_of(sentences[row], scheme) for origin, sentences in tags.items()}
        if wanted({origin: set(those) for origin, those in spans.items()}):
            bounds = {origin: [[span.start, span.end, span.type] for span in those] for origin, those in spans.items()}
            samples.append({"words": list(words), "spans": bounds})
        if len(samples) == SAMPLES:
            break
    return samples


def _has_entities(spans: Mapping[str, set[Span]]) -> bool:
    return bool(spans["true"])


def _model_is_better(spans: Mapping[str, set[Span]]) -> bool:
    return spans["model"] == spans["true"] != spans["weak"]


def _weak_is_better(spans: Mapping[str, set[Span]]) -> bool:
    return spans["weak"] == spans["true"] != spans["model"]


COMPARISONS = {"weak_wrong_model_right": _model_is_better, "weak_right_model_wrong": _weak_is_better}
"""By field of the record: which sentences are shown."""
