"""Tags that were filled in after `drift suggest`, merged into the sentences of a run, word for word."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from drift.data.filled_labels import Filled, check_used, merge_labels
from drift.data.sentence_formats import is_conll, sentence_columns
from drift.data.sentences import Sentences, read_sentences
from drift.errors import LabelError
from drift.tasks.tokens.settings import TokenDataSettings


def with_filled_tags(
    train: Sentences, unlabeled: Sentences | None, sources: Mapping[str, Any], settings: TokenDataSettings
) -> tuple[Sentences, Sentences | None, list[str]]:
    """Both tables of sentences with filled tags, and notes. In a run on weak tags, filled tags replace weak ones."""
    notes: list[str] = []
    for source in sources.get("labels") or settings.labels:
        filled = _read(source, settings, train.scheme)
        parts = [train] if unlabeled is None else [train, unlabeled]
        merged = [merge_labels(filled, part.tokens, part.labels, tuple) for part in parts]
        notes += check_used(filled, merged, [part.name for part in parts])
        weak = merge_labels(filled, train.tokens, train.weak, tuple).labels if settings.is_weak else train.weak
        train = replace(train, labels=merged[0].labels, weak=weak)
        if unlabeled is not None:
            unlabeled = replace(unlabeled, labels=merged[1].labels)
    return train, unlabeled, notes


def _read(source: Any, settings: TokenDataSettings, scheme: str) -> Filled:
    """The sentences that have tags now."""
    names = sentence_columns(source, settings.encoding)
    kept = [column if column in names else None for column in (settings.tokens, settings.label)]
    tokens, label = (None, "2") if is_conll(source) else kept  # the third column of CoNLL files holds predictions
    read = read_sentences(
        source, tokens=tokens, label=label, weak="", encoding=settings.encoding, scheme="IO" if scheme == "IO" else None
    )
    places = [row for row, tags in enumerate(read.labels) if tags is not None]
    if not places:
        raise LabelError(f"{read.name}: none of the {len(read):,} sentences has tags; fill in some")
    return Filled(
        read.name,
        [row + 1 for row in places],
        [None] * len(places),
        [read.tokens[row] for row in places],
        [read.labels[row] for row in places],
        len(read) - len(places),
    )
