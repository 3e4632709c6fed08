"""Tags that were filled in after `drift suggest`, merged into the sentences of a run, word for word."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from drift.data.filled_labels import Filled, merge_files, merge_labels
from drift.data.sentence_formats import is_conll, sentence_columns
from drift.data.sentences import Sentences, read_sentences
from drift.errors import LabelError
from drift.tasks.tokens.settings import TokenDataSettings


def with_filled_tags(
    train: Sentences, unlabeled: Sentences | None, sources: Mapping[str, Any], settings: TokenDataSettings
) -> tuple[Sentences, Sentences | None, list[str]]:
    """Both tables of sentences with filled tags, and notes. In a run on weak tags, filled tags replace weak ones."""
    files = [_read(source, settings, train.scheme) for source in sources.get("labels") or settings.labels]
    parts = [train] if unlabeled is None else [train, unlabeled]
    labels, notes = merge_files(
        files, [part.name for part in parts], [part.tokens for part in parts], [part.labels for part in parts], tuple
    )
    weak = train.weak
    for filled in files if settings.is_weak else ():
        weak = merge_labels(filled, train.tokens, weak, tuple).labels
    train = replace(train, labels=labels[0], weak=weak)
    return train, None if unlabeled is None else replace(unlabeled, labels=labels[1]), notes


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
