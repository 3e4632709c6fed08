"""The record of a run on texts."""

from drift.tasks.record import ClassRecord


class TextRecord(ClassRecord):
    """columns: the columns of text and labels that the run was trained on."""

    columns: dict[str, str | None]
