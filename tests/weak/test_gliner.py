"""Names of types as weak tags by a GLiNER model: one that is made here, with random weights."""

import sys
from collections.abc import Sequence
from pathlib import Path

import pandas
import pytest

from drift.data.tags import spans_of
from drift.errors import FileError, PackageError
from drift.tasks.tokens.data import read_token_data
from drift.tasks.tokens.settings import TokenDataSettings
from drift.weak import gliner as source
from drift.weak.gliner import _tags, _words_of, gliner_tags
from tests.runs.small_tokens import small_word_encoder

SENTENCES = [["Ann's", "house", "was", "near", "Bern", "."], ["john", "lives", "in", "london", "and", "paris"], ["the"]]
TYPES = {"PER": ("person",), "home_town": ()}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    gliner = pytest.importorskip("gliner", reason="needs gliner: pip install 'drift-ssl[gliner]'")
    import torch

    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("gliner")
    encoder = small_word_encoder(folder / "encoder")
    config = gliner.GLiNERConfig(model_name=encoder, hidden_size=16, max_width=3, max_len=32)
    gliner.GLiNER.from_config(config).save_pretrained(folder / "model")
    return folder / "model"


def test_phrases_that_the_model_is_sure_of_are_tagged(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gliner import GLiNER

    texts = [" ".join(words) for words in SENTENCES]
    loaded = GLiNER.from_pretrained(str(model), local_files_only=True).eval()
    answers = loaded.inference(texts, ["person", "home town"], threshold=0.01)
    scores = sorted(entity["score"] for entities in answers for entity in entities)
    assert len(scores) > 2
    monkeypatch.setattr(source, "POSSIBLE", 0.01)
    monkeypatch.setattr(source, "CERTAIN", scores[-2])
    found = gliner_tags(SENTENCES, TYPES, str(model), local=True)
    assert found.tagged == 2
    assert 2 < found.candidates <= len(scores)  # two phrases may be parts of one word
    assert [len(tags) for tags in found.tags] == [len(words) for words in SENTENCES]
    for words, tags, entities in zip(SENTENCES, found.tags, answers, strict=True):
        sure = [each for each in entities if each["score"] >= scores[-2]]
        spans = spans_of([tag or "O" for tag in tags], "IOB2")
        assert [span.type for span in spans] == ["PER" if each["label"] == "person" else "home_town" for each in sure]
        for span, entity in zip(spans, sure, strict=True):
            assert entity["text"] in " ".join(words[span.start : span.end])


def test_a_run_reads_names_with_it_where_other_tags_say_nothing(model: Path) -> None:
    settings = TokenDataSettings(weak="weak", classes=TYPES, gliner=str(model))
    weak = [["B-PER", *[None] * (len(words) - 1)] for words in SENTENCES]
    data = read_token_data(settings, {"train": pandas.DataFrame({"tokens": SENTENCES, "weak": weak})}, seed=0)
    assert data.weak is not None
    assert data.classes[data.weak[0]] == "B-PER"
    assert any("class names tag" in note and "mentions of phrases" in note for note in data.notes)


def test_a_folder_without_a_model_is_named(model: Path, tmp_path: Path) -> None:
    with pytest.raises(FileError, match="is no GLiNER model that can be read"):
        gliner_tags(SENTENCES, TYPES, str(tmp_path), local=True)


def test_the_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gliner", None)
    with pytest.raises(PackageError, match=r"^data.gliner needs the package gliner: .*; pip install .*\[gliner\]"):
        gliner_tags(SENTENCES, TYPES, "anything", local=False)


@pytest.mark.parametrize(
    ("characters", "words"),
    [((0, 3), (0, 1)), ((0, 5), (0, 1)), ((6, 15), (1, 3)), ((21, 27), (4, 6)), ((5, 6), None), ((90, 99), None)],
)
def test_characters_are_words(characters: tuple[int, int], words: tuple[int, int] | None) -> None:
    assert _words_of(SENTENCES[0], *characters) == words


def test_uncertain_phrases_are_left_open_and_a_word_has_one_tag() -> None:
    bounds = {(0, 2): ("PER", True), (1, 3): ("LOC", True), (4, 5): ("LOC", False)}
    expected: Sequence[str | None] = ["B-PER", "I-PER", None, "O", None, "O"]
    assert _tags(6, bounds) == expected
