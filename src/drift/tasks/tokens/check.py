"""Check a table of tagged sentences: phrases that are tagged differently, missing entities, copies, empty sentences."""

from collections import Counter
from itertools import chain
from typing import Any

from drift.data.sentences import Sentences, read_sentences
from drift.data.tags import OUTSIDE, split_tag
from drift.errors import LabelError
from drift.quality.findings import Finding, TableCheck, by_issue, shortened
from drift.quality.mentions import Mention, phrases_of, suspicious_mentions
from drift.tasks.parts import CheckOptions

AROUND = 8  # words on each side of a mention that are shown


def check_sentences(source: Any, options: CheckOptions) -> TableCheck:
    """Everything that is suspicious in a table of sentences. Tags are compared by phrase; no encoder is needed."""
    sentences = _read(source, options)
    tagged = sum(tags is not None for tags in sentences.labels)
    if not tagged:
        raise LabelError(f"{sentences.name}: no sentence has tags to check; name their column with --label")
    with options.progress("Comparing mentions", 1) as tick:
        mentions = suspicious_mentions(phrases_of(sentences.tokens, sentences.labels, sentences.scheme))
        tick()
    findings = [_finding(sentences, mention) for mention in mentions]
    test = None if options.test is None else _read(options.test, options)
    findings += _copies(sentences, test)
    spans: Counter[str] = Counter()
    for tags in sentences.labels:
        for tag in tags or ():
            prefix, name = split_tag(tag, sentences.scheme)
            if name and (prefix == "B" or sentences.scheme == "IO"):
                spans[name] += 1
    classes = sorted(spans)
    return TableCheck(
        sentences.name,
        "sentences",
        len(sentences),
        tagged,
        classes,
        [spans[name] for name in classes],
        by_issue(findings),
        notes=[*sentences.notes, *([] if test is None else test.notes)],
    )


def _read(source: Any, options: CheckOptions) -> Sentences:
    return read_sentences(source, tokens=options.column, label=options.label, weak="", encoding=options.encoding)


def _finding(sentences: Sentences, mention: Mention) -> Finding:
    words = sentences.tokens[mention.sentence]
    size = mention.phrase.count(" ") + 1
    before, after = max(0, mention.word - AROUND), mention.word + size + AROUND
    text = " ".join([*words[before : mention.word], f"[{mention.phrase}]", *words[mention.word + size : after]])
    counts = ", ".join(f"{name} {count}" for name, count in mention.counts.most_common())
    return Finding(
        mention.sentence + 1,
        "missing" if mention.tagged == OUTSIDE else "inconsistent",
        shortened(text),
        mention.tagged,
        mention.usual,
        round(mention.share, 4),
        detail=f"{mention.phrase!r} at word {mention.word + 1}; all mentions: {counts}",
    )


def _copies(sentences: Sentences, test: Sentences | None) -> list[Finding]:
    """Sentences that occur more than once, word for word; those with different tags, and those of test, are marked."""
    groups: dict[tuple[str, ...], list[int]] = {}
    own = len(sentences)
    for row, words in enumerate(chain(sentences.tokens, test.tokens if test is not None else ())):
        groups.setdefault(tuple(words), []).append(row)
    labels = [*sentences.labels, *(test.labels if test is not None else ())]
    found = []
    for phrase, rows in groups.items():
        if len(rows) < 2:
            continue
        different = len({tuple(tags) for row in rows if (tags := labels[row]) is not None}) > 1
        held_out = rows[-1] >= own
        for place, row in enumerate(row for row in rows if row < own):
            issue = "conflict" if different else "leak" if held_out else "duplicate"
            if issue == "duplicate" and not place:
                continue  # the first copy is to be kept
            others = [str(each + 1) if each < own else f"test {each - own + 1}" for each in rows if each != row]
            more = f", ... ({len(others):,} in all)" if len(others) > 5 else ""
            detail = "same words, other tags" if different else "same words"
            found.append(
                Finding(row + 1, issue, shortened(" ".join(phrase)), others=", ".join(others[:5]) + more, detail=detail)
            )
    return found
