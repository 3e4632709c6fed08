"""Tables of texts to training data: classes, labelled and unlabelled rows, dev and test."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from drift.data.batches import some_rows
from drift.data.columns import LABEL_NAMES, named_column
from drift.data.labels import LIKELY_BLANKS, UNLABELED, known_labels, normalized_label, sample_per_class
from drift.data.table_splits import split_table
from drift.data.tables import column_names, source_name
from drift.data.text_tables import TextColumns, TextTable, choose_columns, choose_held_out, read_texts
from drift.data.texts import store_texts
from drift.errors import DataError, LabelError
from drift.tasks.text.filled import ignored_labels, with_filled_labels
from drift.tasks.text.settings import TextDataSettings
from drift.tasks.text.sources import Sources, column_sources, plain_columns, read_sources, trains_on_gold

if TYPE_CHECKING:
    import datasets

MANY_LABELS = 20  # with fewer labels, it is normal that each is of another class


@dataclass(frozen=True)
class LabeledTexts:
    """Texts with one class index each. codes: `(n,)`. unknown: labels that training lacks, coded after the classes."""

    texts: "datasets.Dataset"
    codes: np.ndarray
    unknown: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class TextData:
    """The data of a run on texts.

    columns: named by the user, or guessed from the training table.
    texts: the rows of train, then those of the unlabelled table.
    gold, weak: class indices of `texts`, `(n,)`, -1 for none.
    notes: what a user should know, such as guessed columns and overlaps.
    sources: where the weak labels come from; `weak` is complete once class names have been compared with the texts.
    uses_gold: whether gold labels are trained on beside weak ones.
    extra_columns: further columns of texts, by name.
    """

    columns: TextColumns
    classes: list[str]
    texts: "datasets.Dataset"
    gold: np.ndarray
    weak: np.ndarray | None
    dev: LabeledTexts | None
    test: LabeledTexts | None
    notes: list[str]
    sources: Sources | None = None
    uses_gold: bool = False
    extra_columns: dict[str, "datasets.Dataset"] = field(default_factory=dict)

    @property
    def labels(self) -> np.ndarray:
        """The class indices that are trained on: weak ones if there are any, else gold."""
        return self.gold if self.weak is None else self.weak

    def labeled_rows(self, labels_per_class: int | None, seed: int) -> np.ndarray:
        """The rows whose labels this seed is trained on: with weak labels, those without a gold label."""
        if self.weak is not None:
            return np.flatnonzero(self.weak != UNLABELED)
        return self.gold_rows(labels_per_class, seed)

    def gold_rows(self, labels_per_class: int | None, seed: int) -> np.ndarray:
        """The rows whose gold labels this seed is trained on."""
        known = np.flatnonzero(self.gold != UNLABELED)
        if self.weak is not None and not self.uses_gold:
            return known[:0]
        if labels_per_class is None or not len(known):
            return known
        return np.asarray(known[sample_per_class(self.gold[known], labels_per_class, seed=seed)])


def read_text_data(
    settings: TextDataSettings,
    sources: Mapping[str, Any],
    *,
    seed: int,
    extra_columns: Sequence[str] = (),
    named_classes: Collection[str] = (),
) -> TextData:
    """Read all tables.

    sources: train, unlabeled, dev, test and rules, as paths or objects.
    extra_columns: further columns of texts to read from train and unlabeled.
    named_classes: classes that need no labelled row.
    """
    if settings.split:
        sources = {**sources, **split_table(sources["train"], settings.split, encoding=settings.encoding)}
    columns = _training_columns(settings, sources)
    train = read_texts(sources["train"], plain_columns(columns), encoding=settings.encoding)
    notes = [f"columns taken: {', '.join(columns.guessed)}"] if columns.guessed else []
    notes += [*settings.recognition_notes(), *columns.notes]
    notes += _check_empty(train, columns.text)
    uses_gold = settings.is_weak and trains_on_gold(settings, train.labels)
    train, more, label_notes = with_filled_labels(
        train, sources, columns, settings, only=settings.is_weak and not uses_gold
    )
    notes += label_notes
    uses_gold = uses_gold or (settings.is_weak and bool(sources.get("labels") or settings.labels))
    added = _added_tables(sources, columns, settings)
    notes += [note for _, own in added for note in own]
    extra_labels = [label for labels in (more or [], *(table.labels for table, _ in added)) for label in labels]
    named_classes = {*named_classes, *(label for label in extra_labels if label is not None)}
    uses_gold = uses_gold or (settings.is_weak and bool(added))
    found = None
    if settings.is_weak:
        from_gold = {label for label in train.labels if label is not None} if uses_gold else set()
        found = read_sources(settings, sources, train, columns.text, {*named_classes, *from_gold})
    classes = _classes(train, found, named_classes)
    notes += _class_notes(classes, _label_counts(train, found))
    notes += _gold_notes(train, columns, settings, uses_gold=uses_gold)
    gold = _gold_codes(train, classes, measures=settings.is_weak and not uses_gold)
    data = TextData(columns, classes, train.texts, gold, None, None, None, notes, found, uses_gold)
    kept = some_rows(len(train), settings.train_rows, seed=seed)
    data = _with_unlabeled(_selected(data, kept), sources.get("unlabeled"), settings, more)
    for table, _ in added:
        data = _with_rows(data, table, _codes(table.labels, data.classes, table.name))
    held_out = {part: _held_out(part, sources, data, settings, seed) for part in ("dev", "test")}
    data.notes.extend(_overlaps(data.texts, held_out))
    if data.sources is not None:
        data = combined(data, settings)
    _check_enough(data, settings, named_classes)
    extra = {name: _extra_column(name, sources, settings.encoding, kept) for name in extra_columns}
    return replace(data, dev=held_out["dev"], test=held_out["test"], extra_columns=extra)


def combined(data: TextData, settings: TextDataSettings) -> TextData:
    """The same data with the labels that its sources give together; none, if class names are still to be compared."""
    assert data.sources is not None
    if settings.classes and data.sources.names is None:
        return replace(data, weak=np.full(len(data.gold), UNLABELED))
    known = data.gold if data.uses_gold and settings.labels_per_class is None else None
    sources = data.sources.combine(settings, known)
    return replace(data, sources=sources, weak=sources.codes, notes=[*data.notes, *sources.notes])


def _training_columns(settings: TextDataSettings, sources: Mapping[str, Any]) -> TextColumns:
    others = [sources[part] for part in ("unlabeled", "dev", "test") if sources.get(part) is not None]

    def elsewhere() -> set[str]:
        return {name for source in others for name in column_names(source, encoding=settings.encoding)}

    label, names = settings.label, column_names(sources["train"], encoding=settings.encoding)
    voting = column_sources(settings, names, source_name(sources["train"]))
    plain = [each.column for each in voting if not each.per_class]
    held_out = any(sources.get(part) is not None for part in ("dev", "test"))
    if settings.is_weak and label and held_out and (label in plain or (label not in names and label in elsewhere())):
        label = ""  # the gold labels of dev and test
    taken = {column for each in voting for column in each.columns(names)}
    if settings.is_weak and not label:
        # Beside class names a column is gold only if it is called so; beside other sources, if the user says so.
        called = label is None and bool(settings.classes)
        label = (named_column([name for name in names if name not in taken], LABEL_NAMES) if called else None) or ""
    return choose_columns(
        sources["train"],
        text=settings.text,
        label=label,
        weak=plain[0] if plain else None,
        encoding=settings.encoding,
        elsewhere=elsewhere,
        taken=taken,
    )


def _gold_codes(train: TextTable, classes: list[str], *, measures: bool) -> np.ndarray:
    """Gold class indices of the training rows. measures: they are not trained on."""
    # A class that no weak label names cannot be learned, so that its gold labels measure nothing.
    labels = [label if not measures or label in classes else None for label in train.labels]
    return known_labels(labels, classes, train.name).codes


def _gold_notes(train: TextTable, columns: TextColumns, settings: TextDataSettings, *, uses_gold: bool) -> list[str]:
    """What gold labels beside other sources are used for, where nobody has said."""
    count = sum(label is not None for label in train.labels)
    if not settings.is_weak or not count or settings.gold != "auto" or settings.labels_per_class is not None:
        return []
    if uses_gold:
        return [f"{count:,} labels in column {columns.label!r} are trained on, too; --gold measure only measures"]
    if not settings.classes:
        return []
    return [
        f"every row has a label in column {columns.label!r}: they only measure, nothing is trained on them;"
        " --gold train trains on them"
    ]


def _selected(data: TextData, kept: np.ndarray | None) -> TextData:
    """Only these rows; all if None."""
    if kept is None:
        return data
    sources = None if data.sources is None else data.sources.rows(kept)
    return replace(data, texts=data.texts.select(kept), gold=data.gold[kept], sources=sources)


def _with_unlabeled(
    data: TextData, source: Any, settings: TextDataSettings, labels: list[str | None] | None
) -> TextData:
    """Append the rows of the unlabelled table to those of train. labels: those that were filled in for it."""
    if source is None:
        return data
    table = _read_other(source, data, settings, need_labels=False)
    codes = np.full(len(table), UNLABELED) if labels is None else _codes(labels, data.classes, table.name)
    data.notes.extend(ignored_labels(source, data.columns, settings))
    return _with_rows(data, table, codes)


def _with_rows(data: TextData, table: TextTable, codes: np.ndarray) -> TextData:
    """Append the rows of another table. codes: their gold classes, on which other sources of labels abstain."""
    return replace(
        data,
        texts=store_texts(chain(data.texts["text"], table.texts["text"])),
        gold=np.concatenate([data.gold, codes]),
        sources=None if data.sources is None else data.sources.extended(len(table)),
    )


def _added_tables(
    sources: Mapping[str, Any], columns: TextColumns, settings: TextDataSettings
) -> list[tuple[TextTable, list[str]]]:
    """The tables of further rows and labels, each with notes."""
    added = []
    for source in sources.get("add") or settings.add:
        own = choose_held_out(source, columns, text=settings.text, label=settings.label, encoding=settings.encoding)
        table = read_texts(source, replace(own, weak=None), encoding=settings.encoding)
        count = sum(label is not None for label in table.labels)
        added.append((table, [*own.notes, f"{len(table):,} rows were added from {table.name}, {count:,} with a label"]))
    return added


def _held_out(
    part: str, sources: Mapping[str, Any], data: TextData, settings: TextDataSettings, seed: int
) -> LabeledTexts | None:
    """The labelled rows of dev or test."""
    if sources.get(part) is None:
        return None
    table = _read_other(sources[part], data, settings, need_labels=True)
    # Dev selects the model, so its labels must be right; test also measures what training lacks.
    labels = known_labels(table.labels, data.classes, table.name, refuse=part == "dev")
    data.notes.extend(labels.notes)
    codes = labels.codes
    known = np.flatnonzero(codes != UNLABELED)
    if not len(known):
        raise LabelError(f"{table.name}: none of the {len(table)} rows has a label to score against")
    chosen = some_rows(len(known), getattr(settings, f"{part}_rows"), seed=seed)
    known = known if chosen is None else known[chosen]
    return LabeledTexts(table.texts.select(known), codes[known], labels.unknown)


def _check_empty(table: TextTable, column: str) -> list[str]:
    """A warning about rows without text; a table with no text at all is refused."""
    if table.empty == len(table):
        raise DataError(f"{table.name}: column {column!r} has no text in any row; name another with --text COLUMN")
    return [f"warning: {table.empty:,} of {len(table):,} rows have no text"] if table.empty else []


def _read_other(source: Any, data: TextData, settings: TextDataSettings, *, need_labels: bool) -> TextTable:
    """Another table of the run; a table without labels may lack the label column."""
    columns = choose_held_out(
        source,
        data.columns,
        text=settings.text,
        label=settings.label,
        need_labels=need_labels,
        encoding=settings.encoding,
    )
    data.notes.extend(columns.notes)
    return read_texts(source, columns, encoding=settings.encoding)


def _extra_column(name: str, sources: Mapping[str, Any], encoding: str, kept: np.ndarray | None) -> "datasets.Dataset":
    """Another column of texts, row by row beside the training texts."""
    texts = read_texts(sources["train"], TextColumns(name), encoding=encoding).texts
    texts = texts if kept is None else texts.select(kept)
    others = [sources["unlabeled"]] if sources.get("unlabeled") is not None else []
    others += sources.get("add") or []
    more = [read_texts(source, TextColumns(name), encoding=encoding).texts["text"] for source in others]
    return store_texts(chain(texts["text"], *more)) if more else texts


def _classes(train: TextTable, sources: Sources | None, named: Collection[str]) -> list[str]:
    is_weak = sources is not None
    labels = train.labels if sources is None else sources.classes
    classes = sorted({*named, *(label for label in labels if label is not None)})
    label_name = "weak label" if is_weak else "label"
    if not classes:
        hint = "; name their column with --label, or give --weak COLUMN or --rules FILE"
        if sources is not None:
            by_rules = sources.rules is not None
            hint = "`drift label TABLE --rules FILE` shows what each rule does" if by_rules else "check its columns"
            hint = f"; {hint}, or name the classes with --classes"
        raise LabelError(f"{train.name}: none of the {len(train)} rows has a {label_name}{hint}")
    if len(classes) == 1:
        raise LabelError(f"{train.name}: every {label_name} is {classes[0]!r}; a classifier needs at least two classes")
    return classes


def _label_counts(train: TextTable, sources: Sources | None) -> int:
    """How many rows have a label."""
    if sources is None:
        return sum(label is not None for label in train.labels)
    return int(np.stack([each.covered for each in sources.sources]).any(0).sum()) if sources.sources else 0


def _class_notes(classes: list[str], labelled: int) -> list[str]:
    """Warnings about suspicious classes: too many of them, names that mean "blank", or two almost equal names."""
    notes = []
    if labelled >= MANY_LABELS and len(classes) > labelled / 2:
        notes.append(f"warning: {labelled:,} labels are of {len(classes):,} classes; is it the right column?")
    notes += [
        f"warning: {blank!r} is taken for a class; leave the cell empty if it means that there is no label"
        for blank in sorted(LIKELY_BLANKS.intersection(classes))
    ]
    first: dict[str, str] = {}
    notes += [
        f"warning: {first[key]!r} and {name!r} are taken for two classes; write them alike if they are one"
        for name in classes
        if first.setdefault(key := normalized_label(name), name) != name
    ]
    return notes


def _codes(labels: list[str | None], classes: list[str], name: str) -> np.ndarray:
    return known_labels(labels, classes, name).codes


def _check_enough(data: TextData, settings: TextDataSettings, named: Collection[str]) -> None:
    """Raise if there are too few labels for the run. named: classes that need no label."""
    if settings.is_weak and settings.classes:
        return
    labels_per_class = None if settings.is_weak else settings.labels_per_class
    codes = data.labels
    counts = np.bincount(codes[codes != UNLABELED], minlength=len(data.classes))
    if named and not counts.any():
        return
    if np.count_nonzero(counts) < 2 and not named:
        if settings.train_rows is None and data.sources is not None:
            raise LabelError(
                f"together the sources name {np.count_nonzero(counts)} of {len(counts)} classes: the others are only"
                " excluded, or votes for them tie; add a source that names them, such as --classes"
            )
        raise LabelError(f"the {len(codes)} rows kept have labels of fewer than two classes; raise data.train_rows")
    for name, count in zip(data.classes, counts, strict=True):
        if labels_per_class is not None and count < labels_per_class:
            raise LabelError(
                f"class {name!r} has {count} labelled rows, {labels_per_class} were asked for; ask for fewer per class"
            )


def _overlaps(texts: "datasets.Dataset", held_out: Mapping[str, LabeledTexts | None]) -> list[str]:
    """A warning for each held-out table that shares texts with train."""
    wanted = {name: {hash(text) for text in part.texts["text"]} for name, part in held_out.items() if part is not None}
    if not wanted:
        return []
    shared = dict.fromkeys(wanted, 0)
    for text in texts["text"]:
        key = hash(text)
        for name, keys in wanted.items():
            shared[name] += key in keys
    return [
        f"warning: {count:,} training rows are in {name} too, word for word; scores on it are too good"
        for name, count in shared.items()
        if count
    ]
