"""`drift.Annotation`: a labelling session without a page."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from drift.annotate.answers import Answer, written
from drift.annotate.entries import By
from drift.annotate.policy import AUDIT_EVERY
from drift.annotate.pool import Request
from drift.annotate.questions import Question
from drift.annotate.results import Results
from drift.annotate.sentences import read_tagged
from drift.annotate.texts import read_texts
from drift.errors import ConfigError, StateError
from drift.settings import check_seed, nearest

READERS = {"text": read_texts, "tokens": read_tagged}  # by task


class Annotation(Results):
    """Label texts one by one, while a model learns from every label and chooses the next text.

        session = drift.Annotation(texts, classes=["bug", "question", "praise"])
        while (question := session.next()) is not None:
            session.label(question.row, ask_a_person(question.text))
        print(session.estimate())

    Every fifth text is drawn at random, so that `estimate` is a fair account of how good the model is. The page of
    `drift annotate` is made of these methods.

    Parameters
    ----------
    source : path, DataFrame, Dataset or sequence of str
        The texts. Of sentences also a sequence of lists of words, and all files that `drift fit --task tokens` reads.
    classes : sequence of str, default=()
        Names of the classes. More can be added later; those of the label column are added by themselves.
    task : {"text", "tokens"}, default="text"
        One class per text, or entities in sentences: spans of words, each with a class as its type.
    text, tokens, label : str, default=None
        Columns with texts, with the words of sentences, and with labels that exist already. By default obvious ones are
        recognised; a label of "" means that there is none.
    weak : sequence of str, default=()
        Columns with noisy labels, which are shown, compared, and used as predictions until the model is better.
    rules : path or RuleSet, default=None
        Rules that give noisy labels, used in the same way.
    start_from : Run or path, default=None
        A run whose predictions are used until the model is better, and whose classes are added.
    journal : path, default=None
        File in which every label is stored at once. If it exists, the session goes on where it was. Without one, labels
        are only in memory.
    encoder : str, default="default"
        Encoder that turns texts into vectors.
    vectors : array of shape (n_texts, n_features), default=None
        Vectors of the texts, or of all words of the sentences, in place of those of an encoder.
    audit_every : int, default=5
        Every so many questions, one is drawn at random. 0 switches the audit and the estimate off.
    background : bool, default=False
        Train in another process, so that no call waits for it. Otherwise some calls of `label` train first.
    heads : int, default=5
        Number of heads that are trained at once.
    encoding : str, default="utf-8"
        Encoding of text files.
    seed : int, default=0
        Random seed.
    quiet : bool, default=True
        Show no progress bar while texts are embedded.
    """

    def __init__(
        self,
        source: Any,
        classes: Sequence[str] = (),
        *,
        task: str = "text",
        text: str | None = None,
        tokens: str | None = None,
        label: str | None = None,
        weak: Sequence[str] = (),
        rules: Any = None,
        start_from: Any = None,
        journal: str | Path | None = None,
        encoder: str = "default",
        vectors: np.ndarray | None = None,
        audit_every: int = AUDIT_EVERY,
        background: bool = False,
        heads: int = 5,
        encoding: str = "utf-8",
        seed: int = 0,
        quiet: bool = True,
    ) -> None:
        if isinstance(classes, str):
            raise ConfigError(f"classes is the text {classes!r}; give a list of names")
        if audit_every < 0 or audit_every == 1:
            raise ConfigError(f"audit_every={audit_every}: give 2 or more, or 0 for no audit")
        check_seed(seed)
        if task not in READERS:
            raise ConfigError(f"task={task!r}: give one of {', '.join(READERS)}{nearest(task, READERS)}")
        pool = READERS[task](Request(source, text, tokens, label, weak, rules, encoding))
        pool.run = _opened(start_from)
        super().__init__(
            pool,
            classes,
            journal=journal,
            encoder=encoder,
            vectors=vectors,
            audit_every=audit_every,
            background=background,
            heads=heads,
            seed=seed,
            quiet=quiet,
        )

    # Labels.

    def next(self, client: str = "") -> Question | None:
        """The text to label now, or None if every text has a label or was skipped.

        The same text is returned until it is labelled or skipped. Each client gets a text of its own.
        """
        with self._lock:
            return self._questions.next(client)

    def label(self, row: int, label: Any, *, by: By | None = None) -> None:
        """Label a text or sentence, or correct its label; None removes it.

        row: its number, from 0. label: a class; or the list of all entities of a sentence, such as [(0, 2, "person")]
        for its first two words.
        """
        self.label_many([row], label, by=by)

    def label_many(self, rows: Sequence[int], label: Any, *, by: By | None = None) -> None:
        """Give several texts the same label, as one action to undo."""
        with self._lock:
            checked = [self._row(row) for row in rows]
            answers = [None if label is None else self._answer(row, label) for row in checked]
            if not checked:
                return
            asked = self._questions.chosen_by(checked[0]) if len(checked) == 1 else None
            chosen: By = by or asked or "list"
            guesses = [self._rounds.guess(row) for row in checked]
            self._do({"do": "label", "rows": checked, **written(answers[0]), "by": chosen, "guesses": guesses})
            self._rounds.teach()

    def accept(self, rows: Sequence[int]) -> None:
        """Label texts as they are predicted, as one action to undo."""
        with self._lock:
            checked = [self._row(row) for row in rows]
            current = self.current
            if current is None:
                raise StateError("there is no prediction to accept yet; label a few more first")
            answers = [current.answer(row, self._state)[0] for row in checked]
            if not checked:
                return
            guesses = [self._rounds.guess(row) for row in checked]
            self._do({"do": "accept", "rows": checked, "answers": answers, "by": "list", "guesses": guesses})
            self._rounds.teach()

    def skip(self, row: int) -> None:
        """Do not ask about this text again."""
        with self._lock:
            row = self._row(row)
            self._do({"do": "skip", "row": row, "by": self._questions.chosen_by(row) or "policy"})

    def flag(self, rows: int | Sequence[int], on: bool = True) -> None:
        """Mark texts to look at again later."""
        with self._lock:
            checked = [self._row(row) for row in ([rows] if isinstance(rows, int) else rows)]
            self._do({"do": "flag", "rows": checked, "on": bool(on)})

    def note(self, row: int, text: str) -> None:
        """Attach a note to a text; an empty one removes it."""
        with self._lock:
            self._do({"do": "note", "row": self._row(row), "text": str(text)})

    def undo(self, client: str = "") -> None:
        """Take back the last action, whichever it was; repeated calls go further back.

        A text that loses its label in this way is the next one that this client is asked about.
        """
        with self._lock:
            asked = self._questions.answered()
            self._do({"do": "undo"})
            self._questions.ask_again(client, asked)
            self._rounds.teach()

    # Classes.

    @property
    def classes(self) -> list[str]:
        """Names of the classes."""
        with self._lock:
            return [each.name for each in self._state.active]

    def add_class(self, name: str, guideline: str = "") -> None:
        """Add a class. guideline: what belongs into it, for the person."""
        with self._lock:
            self._do({"do": "add", "name": name, "guideline": guideline})

    def rename_class(self, name: str, new: str) -> None:
        """Rename a class; its labels stay."""
        with self._lock:
            self._do({"do": "rename", "class": self._class(name).id, "name": new})

    def merge_class(self, name: str, into: str) -> None:
        """Merge a class into another one, with its labels."""
        with self._lock:
            self._do({"do": "merge", "class": self._class(name).id, "into": self._class(into).id})
            self._rounds.teach()

    def set_guideline(self, name: str, text: str) -> None:
        """Say what belongs into a class."""
        with self._lock:
            self._do({"do": "guideline", "class": self._class(name).id, "text": text})

    def train(self) -> None:
        """Train on all labels now, and wait until that is done."""
        with self._lock:
            self._rounds.teach(force=True)
        self._learner.wait()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for training in the background; returns whether it is done."""
        return self._learner.wait(seconds)

    def _answer(self, row: int, label: Any) -> Answer:
        return self.pool.coded(row, label, lambda name: self._class(name).id)

    def __enter__(self) -> "Annotation":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _opened(run: Any) -> Any:
    """A run, or the one in a folder."""
    if run is None or hasattr(run, "predict_proba"):
        return run
    from drift.runs.load import load

    return load(run)
