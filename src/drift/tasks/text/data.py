"""From a user's tables to what a run learns from: classes, labelled and unlabelled rows, dev and test."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from drift.data.columns import find_column
from drift.data.labels import LIKELY_BLANKS, UNLABELED
from drift.data.splits import sample_per_class, some_rows
from drift.data.tables import read_chunks, source_name
from drift.data.text_tables import TextColumns, TextTable, choose_columns, read_texts
from drift.data.texts import store_texts
from drift.errors import ConfigError, DataError, LabelError
from drift.runs.config import TextDataSettings

if TYPE_CHECKING:
    import datasets

    from drift.weak import Summary


MANY_LABELS = 20  # of fewer, each may well be of another class


@dataclass(frozen=True)
class LabeledTexts:
    """Texts with a class index each."""

    texts: "datasets.Dataset"
    codes: np.ndarray  # (n,)


@dataclass(frozen=True)
class TextData:
    """texts: train rows, then those of the unlabelled table. gold, weak: class indices `(n,)`, -1 for none.

    others: further columns of texts, by name.
    """

    columns: TextColumns  # named, or found in the training table
    classes: list[str]
    texts: "datasets.Dataset"
    gold: np.ndarray
    weak: np.ndarray | None
    dev: LabeledTexts | None
    test: LabeledTexts | None
    notes: list[str]  # what a user should know: guesses, overlaps
    rules: "Summary | None" = None
    others: dict[str, "datasets.Dataset"] = field(default_factory=dict)

    def labeled_rows(self, labels_per_class: int | None, seed: int) -> np.ndarray:
        """Rows that this seed learns from with gold labels, or the weakly labelled ones."""
        known = np.flatnonzero((self.gold if self.weak is None else self.weak) != UNLABELED)
        if labels_per_class is None or self.weak is not None or not len(known):
            return known
        return np.asarray(known[sample_per_class(self.gold[known], labels_per_class, seed=seed)])


def read_text_data(
    settings: TextDataSettings,
    sources: dict[str, Any],
    *,
    seed: int,
    others: Sequence[str] = (),
    named: Collection[str] = (),
) -> TextData:
    """Read all tables. sources: what train, unlabeled, dev and test are, paths or objects.

    others: further columns of texts to read, of train and unlabeled. named: classes that need no labelled row.
    """
    train_source = sources["train"]
    is_weak = settings.is_weak
    columns = choose_columns(
        train_source,
        text=settings.text,
        label="" if is_weak and not settings.label else settings.label,
        weak=settings.weak,
        encoding=settings.encoding,
    )
    notes = [f"columns taken: {', '.join(columns.guessed)}"] if columns.guessed else []
    train = read_texts(train_source, columns, encoding=settings.encoding)
    notes += _empty(train, columns.text)
    tables = {
        kind: _read_other(source, columns, settings, need_labels=kind != "unlabeled")
        for kind, source in sources.items()
        if kind != "train" and source is not None
    }
    weak, summary = train.weak, None
    if settings.rules is not None:
        weak, summary = _by_rules(train, train_source, columns, settings)
    classes = _classes(train, weak if is_weak else train.labels, is_weak, named)
    notes += _too_many(classes, weak if is_weak else train.labels)
    notes += [
        f"warning: {blank!r} is taken for a class; leave the cell empty if it means that there is no label"
        for blank in sorted(LIKELY_BLANKS.intersection(classes))
    ]
    notes += _alike(classes)
    if is_weak:  # gold labels are there to measure with, and a class that no weak label names cannot be learned
        gold = _codes([label if label in classes else None for label in train.labels], classes, train.name)
        weak_codes = _codes(weak, classes, train.name)
    else:
        gold, weak_codes = _codes(train.labels, classes, train.name), None
    texts = train.texts
    kept = some_rows(len(train), settings.train_rows, seed=seed)
    if kept is not None:
        texts, gold = texts.select(kept), gold[kept]
        weak_codes = None if weak_codes is None else weak_codes[kept]
    if "unlabeled" in tables:
        more = tables["unlabeled"]
        texts = store_texts(chain(texts["text"], more.texts["text"]))
        gold = np.concatenate([gold, np.full(len(more), UNLABELED)])
        weak_codes = None if weak_codes is None else np.concatenate([weak_codes, np.full(len(more), UNLABELED)])
    dev = _labeled(tables.get("dev"), classes, settings.dev_rows, seed)
    test = _labeled(tables.get("test"), classes, settings.test_rows, seed)
    notes += _overlaps(texts, {"dev": dev, "test": test})
    codes = gold if weak_codes is None else weak_codes
    _check_enough(classes, codes, None if is_weak else settings.labels_per_class, named)
    further = {name: _column(name, sources, settings.encoding, kept) for name in others}
    return TextData(columns, classes, texts, gold, weak_codes, dev, test, notes, summary, further)


def _empty(table: TextTable, column: str) -> list[str]:
    """A warning of rows without text; a table of nothing else is refused."""
    if table.empty == len(table):
        raise DataError(f"{table.name}: column {column!r} has no text in any row; name another with --text COLUMN")
    return [f"warning: {table.empty:,} of {len(table):,} rows have no text"] if table.empty else []


def _too_many(classes: list[str], labels: list[str | None]) -> list[str]:
    """A warning where the labels are hardly ever the same, as names, numbers or texts are."""
    labelled = sum(label is not None for label in labels)
    if labelled < MANY_LABELS or len(classes) <= labelled / 2:
        return []
    return [f"warning: {labelled:,} labels are of {len(classes):,} classes; is it the right column?"]


def _read_other(source: Any, columns: TextColumns, settings: TextDataSettings, *, need_labels: bool) -> TextTable:
    """Another table with the same columns; one without labels may lack the label column."""
    label = columns.label if need_labels else None
    if need_labels and label is None:
        label = choose_columns(source, text=columns.text, encoding=settings.encoding).label
        if label in (None, columns.weak):  # noisy labels are nothing to score against
            raise ConfigError(
                f"{source_name(source)} has no column that looks like labels; name it with --label COLUMN"
            )
    return read_texts(source, TextColumns(columns.text, label), encoding=settings.encoding)


def _column(name: str, sources: dict[str, Any], encoding: str, kept: np.ndarray | None) -> "datasets.Dataset":
    """Another column of texts, row by row beside those that are learnt from."""
    texts = read_texts(sources["train"], TextColumns(name), encoding=encoding).texts
    texts = texts if kept is None else texts.select(kept)
    if sources.get("unlabeled") is None:
        return texts
    more = read_texts(sources["unlabeled"], TextColumns(name), encoding=encoding).texts
    return store_texts(chain(texts["text"], more["text"]))


def _by_rules(
    train: TextTable, source: Any, columns: TextColumns, settings: TextDataSettings
) -> tuple[list[str | None], "Summary"]:
    from drift.weak import RuleSet, label

    rules = RuleSet.from_file(str(settings.rules))
    table: dict[str, list[Any]] = {name: [] for name in rules.columns}
    for chunk in read_chunks(source, encoding=settings.encoding) if table else ():
        for name, values in table.items():
            values += chunk.columns[find_column(name, list(chunk.columns), train.name)]
    gold = train.labels if any(train.labels) else None
    found = label({**table, columns.text: list(train.texts["text"])}, rules, text=columns.text, gold=gold)
    return found.labels, found.summary


def _classes(train: TextTable, labels: list[str | None], is_weak: bool, named: Collection[str]) -> list[str]:
    classes = sorted({*named, *(label for label in labels if label is not None)})
    kind = "weak label" if is_weak else "label"
    if not classes:
        hint = "; name their column with --label, or give --weak COLUMN or --rules FILE"
        hint = "; `drift label TABLE --rules FILE` shows what each rule does" if is_weak else hint
        raise LabelError(f"{train.name}: none of the {len(train)} rows has a {kind}{hint}")
    if len(classes) == 1:
        raise LabelError(f"{train.name}: every {kind} is {classes[0]!r}; a classifier needs at least two classes")
    return classes


def _alike(classes: list[str]) -> list[str]:
    """A warning for each class that another is written nearly like."""
    first: dict[str, str] = {}
    return [
        f"warning: {first[key]!r} and {name!r} are taken for two classes; write them alike if they are one"
        for name in classes
        if first.setdefault(key := _plainly(name), name) != name
    ]


def _plainly(label: str) -> str:
    """In one case, and as a whole number where it is one: spreadsheets write 1 as 1.0 where some cells are blank."""
    return label.casefold().removesuffix(".0")


def _codes(labels: list[str | None], classes: list[str], name: str) -> np.ndarray:
    places = {label: place for place, label in enumerate(classes)}
    codes = np.full(len(labels), UNLABELED, dtype=np.int64)
    for row, label in enumerate(labels):
        if label is not None:
            code = places.get(label)
            if code is None:
                meant = next((known for known in classes if _plainly(known) == _plainly(label)), None)
                hint = "have some training rows or a rule say so, or take the row out"
                raise LabelError(
                    f"{name}, row {row + 1}: label {label!r} is not among the training labels ({', '.join(classes)});"
                    f" {hint if meant is None else f'if it is {meant!r}, write both alike'}"
                )
            codes[row] = code
    return codes


def _check_enough(classes: list[str], codes: np.ndarray, labels_per_class: int | None, named: Collection[str]) -> None:
    """Whether the rows that are left have the labels that the run needs. named: classes that may do without any."""
    counts = np.bincount(codes[codes != UNLABELED], minlength=len(classes))
    if named and not counts.any():
        return
    if np.count_nonzero(counts) < 2 and not named:
        raise LabelError(f"the {len(codes)} rows kept have labels of fewer than two classes; raise data.train_rows")
    for name, count in zip(classes, counts, strict=True):
        if labels_per_class is not None and count < labels_per_class:
            raise LabelError(
                f"class {name!r} has {count} labelled rows, {labels_per_class} were asked for; ask for fewer a class"
            )


def _labeled(table: TextTable | None, classes: list[str], rows: int | None, seed: int) -> LabeledTexts | None:
    if table is None:
        return None
    codes = _codes(table.labels, classes, table.name)
    known = np.flatnonzero(codes != UNLABELED)
    if not len(known):
        raise LabelError(f"{table.name}: none of the {len(table)} rows has a label to score against")
    chosen = some_rows(len(known), rows, seed=seed)
    known = known if chosen is None else known[chosen]
    return LabeledTexts(table.texts.select(known), codes[known])


def _overlaps(texts: "datasets.Dataset", held_out: dict[str, LabeledTexts | None]) -> list[str]:
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
