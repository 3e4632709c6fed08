"""Back-translation through two small models with random weights: cached, seeded, sentence by sentence."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch

from drift.data.cache import cache_folder
from drift.errors import FileError
from drift.models import translation
from drift.models.translation import TEXTS_PER_FILE, back_translated
from tests.runs.small import WORDS, small_encoder

VOCABULARY = ["<pad>", "</s>", "<unk>", *WORDS["money"], *WORDS["sport"]]


def small_translator(folder: Path, kind: str) -> str:
    """Write a T5 or Marian model with random weights, whose vocabulary is `WORDS`."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import MarianConfig, MarianMTModel, PreTrainedTokenizerFast, T5Config, T5ForConditionalGeneration

    size: dict[str, Any] = {"vocab_size": len(VOCABULARY), "pad_token_id": 0, "eos_token_id": 1, "d_model": 16}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        if kind == "t5":
            config = T5Config(**size, d_kv=8, d_ff=16, num_layers=1, num_heads=2, decoder_start_token_id=0)
            model = T5ForConditionalGeneration(config)
        else:
            one = {f"{side}_{name}": 1 for side in ("encoder", "decoder") for name in ("layers", "attention_heads")}
            config = MarianConfig(**size, **one, encoder_ffn_dim=16, decoder_ffn_dim=16, decoder_start_token_id=0)
            model = MarianMTModel(config)
    model.save_pretrained(folder)
    tokenizer = Tokenizer(models.WordLevel({word: index for index, word in enumerate(VOCABULARY)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="<unk>", pad_token="<pad>", eos_token="</s>", model_max_length=64
    ).save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("translators")
    return small_translator(folder / "there", "t5"), small_translator(folder / "back", "marian")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path / "cache"))


TEXTS = ["stock market. profit bank!  shares", "team game", "", "  ", "goal coach league", "stock market"]


def test_every_text_comes_back_in_words_of_the_model(models: tuple[str, str]) -> None:
    translations = back_translated(TEXTS, *models, seed=(0,))
    assert len(translations) == len(TEXTS)
    assert translations[2:4] == ["", ""]  # a blank text has no sentence
    assert {word for text in translations for word in text.split()} <= {*VOCABULARY[3:]}
    assert len(set(translations)) > 3


def test_a_second_call_is_read_from_the_cache(models: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"{text} team" for text in TEXTS * (TEXTS_PER_FILE // 5)]  # more than one piece
    translations = back_translated(texts, *models, seed=(0,))
    files = sorted((cache_folder() / "translations").iterdir())
    assert len(files) == -(-len(texts) // TEXTS_PER_FILE)
    monkeypatch.delattr(translation, "Translator")
    assert back_translated(texts, *models, seed=(0,)) == translations


def test_a_file_cut_short_is_made_again(models: tuple[str, str]) -> None:
    translations = back_translated(TEXTS, *models, seed=(0,))
    (file,) = (cache_folder() / "translations").iterdir()
    file.write_bytes(file.read_bytes()[:10])
    assert back_translated(TEXTS, *models, seed=(0,)) == translations


def test_a_seed_determines_the_words_and_the_generator_is_restored(models: tuple[str, str]) -> None:
    before = torch.get_rng_state()
    one, other = (back_translated(TEXTS, *models, seed=(0, view)) for view in (0, 1))
    assert one != other
    assert torch.equal(torch.get_rng_state(), before)


def test_at_temperature_zero_the_likeliest_words_come(models: tuple[str, str]) -> None:
    one, other = (back_translated(TEXTS, *models, temperature=0.0, seed=(0, view)) for view in (0, 1))
    assert one == other


def test_the_bar_counts_texts(models: tuple[str, str]) -> None:
    ticks: list[None] = []
    totals: list[int] = []

    def progress(title: str, total: int) -> Any:
        totals.append(total)
        return nullcontext(lambda: ticks.append(None))

    back_translated(TEXTS, *models, progress=progress)
    assert totals == [len(TEXTS)] == [len(ticks)]


def test_a_cache_that_cannot_be_written_is_one_line(
    models: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a-file").write_text("")
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path / "a-file"))
    with pytest.raises(FileError, match=r"cannot be written .*; set DRIFT_CACHE"):
        back_translated(TEXTS, *models, seed=(0,))


def test_a_model_that_translates_nothing_is_refused(models: tuple[str, str], tmp_path: Path) -> None:
    encoder = small_encoder(tmp_path / "encoder")
    with pytest.raises(FileError, match="cannot be opened as a translation model") as caught:
        back_translated(TEXTS, models[0], encoder)
    assert "\n" not in str(caught.value)
    with pytest.raises(FileError, match=r"no config\.json"):
        back_translated(TEXTS, models[0], str(tmp_path))
