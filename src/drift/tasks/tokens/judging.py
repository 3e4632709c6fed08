"""How the kept tagger does where tags are known: by type, in calibration, in examples; and how weak tags do."""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from drift.data.labels import UNLABELED
from drift.data.tags import Span, spans_of
from drift.tasks.judging import judged_confidence
from drift.tasks.tokens.data import TaggedSentences, TokenData, rule_tags, sizes_of, words_of
from drift.tasks.tokens.model import TokenModel
from drift.tasks.tokens.tagging import Tagging
from drift.weak.diagnostics import Share

Tags = Sequence[str | None]

SAMPLES, MOST_WORDS = 10, 60  # sentences that are kept to show, and words a sentence may have for that
COMPARED = 500  # training sentences that weak tags and the model are compared on, where there are no rules to ask


def judge(
    data: TokenData, part: TaggedSentences, probabilities: np.ndarray, model: TokenModel, rules: str | None
) -> dict[str, Any]:
    """Scores and errors by type, calibration before and after the temperature, sentences to look at.

    probabilities: `(words, C)`, before the temperature. rules: the file of the rules, if there is one.
    """
    tagging = Tagging(data.classes, part.sizes, data.entities)
    labels = part.codes
    truth, found = tagging.sentences(labels), tagging.sentences(probabilities.argmax(-1))
    judged: dict[str, Any] = {
        "by_type": tagging.by_type(probabilities, labels),
        "errors": errors_by_type(truth, found, data.scheme),
        "calibration": judged_confidence(probabilities, labels, model.temperature),
        "samples": _shown(part.sentences.tokens, {"true": truth, "model": found}, data.scheme, _has_entities),
    }
    if data.weak is not None:
        tokens, tags, where = _beside_weak(data, part, truth, found, model, rules)
        shown = _shown(tokens, tags, data.scheme, _weak_is_wrong)
        judged["weak_wrong_model_right"] = {"where": where, "sentences": shown}
    return judged


def weak_tag_shares(data: TokenData) -> dict[str, Any]:
    """How many words have a weak tag; where gold tags are known, how the weak ones do, uncovered words taken for O."""
    assert data.weak is not None
    shares: dict[str, Any] = {"labeled": asdict(Share(int((data.weak != UNLABELED).sum()), len(data.weak)))}
    known = _known_sentences(data)
    if len(known):
        sizes = sizes_of(data.sentences)
        words = words_of(sizes, known)
        weak = np.where(data.weak == UNLABELED, data.outside, data.weak)[words]
        tagging = Tagging(data.classes, sizes[known], data.entities)
        by_type = tagging.by_type(np.eye(len(data.classes))[weak], data.gold[words])
        shares |= {"sentences": len(known), "by_type": by_type}
    return shares


def errors_by_type(truth: Sequence[Tags], found: Sequence[Tags], scheme: str) -> dict[str, dict[str, int]]:
    """How true entities of each type were lost, and how many were made up.

    right: found as they are; bounds: another stretch of its words, with its type; type: overlapped by another type
    alone; missed: no word of it was found. made up: found entities that share no word with a true one.
    """
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for true_tags, found_tags in zip(truth, found, strict=True):
        true_spans, found_spans = spans_of(true_tags, scheme), spans_of(found_tags, scheme)
        true_at, found_at = _by_word(true_spans), _by_word(found_spans)
        for span in true_spans:
            over = {found_at[word] for word in range(span.start, span.end) if word in found_at}
            same = any(other.type == span.type for other in over)
            kind = "right" if span in over else "bounds" if same else "type" if over else "missed"
            counts[span.type][kind] += 1
        for span in found_spans:
            if not any(word in true_at for word in range(span.start, span.end)):
                counts[span.type]["made up"] += 1
    return {kind: dict(counts[kind]) for kind in sorted(counts)}


def _by_word(spans: Sequence[Span]) -> dict[int, Span]:
    return {word: span for span in spans for word in range(span.start, span.end)}


def _beside_weak(
    data: TokenData,
    part: TaggedSentences,
    truth: list[list[str]],
    found: list[list[str]],
    model: TokenModel,
    rules: str | None,
) -> tuple[list[list[str]], dict[str, list[Any]], str]:
    """Sentences with true tags, those of the model, and weak ones, and which sentences these are."""
    if rules is not None:
        weak = rule_tags(part.sentences, rules, data.scheme)[0]
        return part.sentences.tokens, {"true": truth, "weak": weak, "model": found}, "held-out"
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
    """Those with a gold tag on every word."""
    sizes = sizes_of(data.sentences)
    return np.flatnonzero(np.add.reduceat(data.gold == UNLABELED, np.cumsum(sizes) - sizes) == 0)


def _shown(
    tokens: Sequence[Sequence[str]],
    tags: Mapping[str, Sequence[Tags]],
    scheme: str,
    wanted: Callable[[Mapping[str, set[Span]]], bool],
) -> list[dict[str, Any]]:
    """The first sentences of moderate length that are wanted, with their spans by whose they are."""
    shown: list[dict[str, Any]] = []
    for row, words in enumerate(tokens):
        if len(words) > MOST_WORDS:
            continue
        spans = {whose: spans_of(found[row], scheme) for whose, found in tags.items()}
        if wanted({whose: set(found) for whose, found in spans.items()}):
            told = {whose: [[span.start, span.end, span.type] for span in found] for whose, found in spans.items()}
            shown.append({"words": list(words), "spans": told})
        if len(shown) == SAMPLES:
            break
    return shown


def _has_entities(spans: Mapping[str, set[Span]]) -> bool:
    return bool(spans["true"])


def _weak_is_wrong(spans: Mapping[str, set[Span]]) -> bool:
    return spans["model"] == spans["true"] != spans["weak"]
