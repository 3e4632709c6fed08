"""Why a text gets its class."""

from collections.abc import Sequence

import numpy as np

from drift.data.labels import UNLABELED
from drift.tasks.explaining import Explanation, LabeledRows, Neighbor, occlusion
from drift.tasks.judging import excerpt
from drift.tasks.parts import Trained
from drift.tasks.text.data import TextData
from drift.tasks.text.model import TextModel

MOST_ROWS = 500  # labelled rows that are kept with a run


def explain_texts(run: Trained, rows: Sequence[str], words: int, nearest: int) -> list[Explanation]:
    """One explanation per text, `rows`; a prediction for each of its words is made."""
    model: TextModel = run.model
    texts = list(rows)
    unstored = model.without_cache()  # texts without one of their words are not asked for again
    probabilities = model.predict_proba(texts)
    near: list[list[Neighbor]] = [[] for _ in texts]
    if run.labeled is not None and nearest and len(texts):
        vectors = model.features(texts)
        near = near if vectors is None else run.labeled.nearest(vectors, nearest)
    found = []
    for text, p, others in zip(texts, probabilities, near, strict=True):
        code = int(p.argmax())
        why = occlusion(text, code, float(p[code]), unstored.predict_proba, words)
        found.append(
            Explanation(
                text=text, label=model.classes[code], confidence=round(float(p[code]), 6), words=why, nearest=others
            )
        )
    return found


def labeled_rows(data: TextData, labels_per_class: int | None, seed: int, model: TextModel) -> LabeledRows | None:
    """Rows that the model was trained on, with excerpts of their texts; a random sample if there are many."""
    gold = data.gold_rows(labels_per_class, seed)
    codes = np.full(len(data.gold), UNLABELED) if data.weak is None else np.array(data.weak)
    codes[gold] = data.gold[gold]
    chosen = gold if len(gold) else np.flatnonzero(codes != UNLABELED)
    if len(chosen) > MOST_ROWS:
        chosen = np.sort(np.random.default_rng(0).permutation(chosen)[:MOST_ROWS])
    texts = [data.texts[int(row)]["text"] for row in chosen]
    if not texts or (vectors := model.features(texts)) is None:
        return None
    names = [data.classes[codes[row]] for row in chosen]
    return LabeledRows(vectors, (chosen + 1).tolist(), [excerpt(text) for text in texts], names)
