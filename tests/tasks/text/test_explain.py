"""`Run.explain`, `drift predict --explain` and the page of a run on texts."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import drift
from drift.errors import ConfigError
from drift.runs.result import LABELED, MODEL, Run
from tests.runs.small import small_encoder, small_fit, small_table, write_csv

pytest.importorskip("transformers", reason="needs transformers: pip install 'drift-ssl[text]'")

TEXTS = ["stock market profit team", ""]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("explained")
    write_csv(base / "t.csv", small_table(24, labeled=8))
    small_encoder(base / "encoder")
    return base


def fitted(base: Path, name: str, **options: Any) -> Run:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRIFT_CACHE", str(base / "cache"))
        return small_fit(str(base / "t.csv"), str(base / "encoder"), out=base / name, **options)


@pytest.fixture(scope="module")
def run(base: Path) -> Run:
    return fitted(base, "run")


@pytest.fixture(autouse=True)
def _cache(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFT_CACHE", str(base / "cache"))


def by_hand(run: Run, text: str) -> dict[str, float]:
    """The effect of each word, from predictions of the text without it."""
    code = int(run.predict_proba([text])[0].argmax())
    words = text.split()
    p = run.predict_proba([text, *(text.replace(word, "") for word in words)])[:, code]
    logit = np.log(p / (1 - p))
    return dict(zip(words, (logit[0] - logit[1:]).tolist(), strict=True))


def test_words_have_the_effect_of_leaving_them_out(run: Run) -> None:
    first, empty = run.explain(TEXTS, words=10)
    assert [first.label, empty.label] == run.predict(TEXTS)
    expected = {word: effect for word, effect in by_hand(run, TEXTS[0]).items() if effect > 0}
    found = {word.text: word.effect for word in first.words}
    assert found.keys() == expected.keys()
    np.testing.assert_allclose(list(found.values()), [expected[word] for word in found], atol=2e-2)
    assert [word.effect for word in first.words] == sorted(found.values(), reverse=True)
    assert empty.words == []


@pytest.mark.parametrize("finetune", [False, True], ids=["frozen", "finetuned"])
def test_a_labelled_text_is_its_own_nearest_row(base: Path, run: Run, finetune: bool) -> None:
    trained = fitted(base, "finetuned", finetune=True, seeds=1) if finetune else run
    opened = drift.load(trained.path)
    table = small_table(24, labeled=8)
    for each in (trained, opened):
        (found,) = each.explain([table["body"][3]], nearest=2)
        assert found.nearest[0].row == 4
        assert found.nearest[0].label == table["topic"][3]
        assert found.nearest[0].cosine > 0.999
        assert len(found.nearest) == 2
    assert {near.row for near in opened.explain(["a"], nearest=99)[0].nearest} == set(range(1, 9))  # labelled ones only
    assert not (trained.path / MODEL / LABELED).exists()  # who shares the model shares no texts


def test_a_folder_without_rows_explains_by_words_only(run: Run) -> None:
    alone = Run(run.model, run.record, run.task)
    assert [each.nearest for each in alone.explain(TEXTS)] == [[], []]


def test_predictions_of_a_table_are_explained_in_two_columns(base: Path, run: Run) -> None:
    drift.predict(run, base / "t.csv", base / "why.csv", explain=True)
    with (base / "why.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    texts = [row["body"] for row in rows]
    cells = [each.cells() for each in run.explain(texts)]
    assert [(row["why_words"], row["why_rows"]) for row in rows] == cells
    drift.predict(run, base / "why.csv", base / "again.csv")  # its own columns are no texts


def test_the_page_shows_why(base: Path, run: Run) -> None:
    page = drift.write_report(run.path, explain=base / "t.csv").read_text(encoding="utf-8")
    assert "Why these predictions" in page
    assert "nearest labelled rows" in page
    assert "Why these predictions" in drift.write_report(run.path).read_text(encoding="utf-8")  # it is kept


def test_other_tasks_say_that_they_cannot(run: Run) -> None:
    from drift.tasks import TASKS

    for name, task in TASKS.items():
        if not task.explains:
            other = Run(run.model, run.record, task)
            with pytest.raises(ConfigError, match=f"--task {name} cannot be explained"):
                drift.predict(other, "t.csv", explain=True)
