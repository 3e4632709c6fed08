"""Back-translation: paraphrases by translation into another language and back, cached on disk by content."""

import json
import re
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import torch

from drift.data.batches import batches_by_length
from drift.data.cache import cache_file, cache_folder, content_key
from drift.data.sealed import sealed_content
from drift.data.tokenized import Progress, silent
from drift.errors import FileError, needed_for
from drift.models.devices import best_device
from drift.models.embedding import fingerprint
from drift.models.encoders import drawing_from, quietly, without_bars
from drift.models.locating import encoder_path

FORMAT = "translations/1"  # increase it when the same texts, models and seed give different texts
TEXTS_PER_FILE = 64  # at most this many are lost in a crash
BATCH_TOKENS = 1024
SENTENCE = re.compile(r"(?<=[.!?])\s+")  # end of a sentence: translation models are trained on single sentences


def back_translated(
    texts: Sequence[str],
    there: str,
    back: str,
    *,
    temperature: float = 0.9,
    seed: Sequence[int] = (0,),
    progress: Progress | None = None,
) -> list[str]:
    """Return each text translated, sentence by sentence, by one model and then another (Xie et al., 2020).

    texts: the texts to translate.
    there, back: names or folders of sequence-to-sequence models of transformers, such as Marian models.
    temperature: sampling temperature; 0 takes the most likely word.
    seed: seed for sampling.
    progress: as for `drift.models.embedding.embed`.
    """
    settings = (FORMAT, fingerprint(there), fingerprint(back), temperature, tuple(seed))
    starts = range(0, len(texts), TEXTS_PER_FILE)
    keys = [content_key(texts[start : start + TEXTS_PER_FILE], *settings) for start in starts]
    files = [cache_folder() / "translations" / f"{key}.json" for key in keys]
    cached = [_read(file) for file in files]
    with drawing_from(0):  # from_pretrained initialises weights at random before it loads them
        models = [Translator(there), Translator(back)] if None in cached else []
    translations: list[str] = []
    with (progress or silent)("Translating texts", len(texts)) as tick:
        for start, key, file, piece in zip(starts, keys, files, cached, strict=True):
            if piece is None:
                # Seeded by content, so that a lost piece is reproduced exactly.
                with drawing_from(int(key[:12], 16)):
                    piece = _through(models, texts[start : start + TEXTS_PER_FILE], temperature)
                with cache_file(file) as aside:
                    aside.write_text(json.dumps(piece), encoding="utf-8")
            translations += piece
            for _ in piece:
                tick()
    return translations


class Translator:
    """A translation model for one direction, on the accelerator if there is one.

    name: name or folder of a sequence-to-sequence model of transformers.
    """

    def __init__(self, name: str) -> None:
        with needed_for("translation models"):
            import transformers
        path = encoder_path(name)
        try:
            with quietly(), without_bars(transformers):
                here = Path(path).is_dir()
                self.tokenizer = transformers.AutoTokenizer.from_pretrained(path, local_files_only=here)
                model = transformers.AutoModelForSeq2SeqLM.from_pretrained(path, local_files_only=here)
        except Exception as error:  # a damaged file may raise anything, depending on the library that reads it
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise FileError(
                f"{name} cannot be opened as a translation model ({reason}); give a sequence-to-sequence model of"
                " transformers, such as a Marian model"
            ) from error
        self.device = best_device()
        self.model = model.eval().to(self.device)
        self.prefix = getattr(model.config, "prefix", None) or ""  # the instruction of a T5 model
        self.longest = min(self.tokenizer.model_max_length, getattr(model.config, "max_position_embeddings", 512))

    @torch.inference_mode()
    def __call__(self, sentences: Sequence[str], temperature: float) -> list[str]:
        """Return the translation of each sentence. temperature: see `back_translated`."""
        translations = [""] * len(sentences)
        prompts = [self.prefix + sentence for sentence in sentences]
        ids = self.tokenizer(prompts, truncation=True, max_length=self.longest)["input_ids"] if prompts else []
        sampling: dict[str, Any] = {"do_sample": False}
        if temperature > 0:
            sampling = {"do_sample": True, "temperature": temperature, "top_k": 0}
        for rows in batches_by_length([len(row) for row in ids], BATCH_TOKENS):
            inputs = self.tokenizer.pad({"input_ids": [ids[row] for row in rows]}, return_tensors="pt")
            tokens = max(len(ids[row]) for row in rows)
            with quietly():
                outputs = self.model.generate(
                    input_ids=inputs["input_ids"].to(self.device),
                    attention_mask=inputs["attention_mask"].to(self.device),
                    num_beams=1,
                    max_new_tokens=min(2 * tokens + 8, self.longest - 1),  # far more than a translation needs
                    **sampling,
                )
            for row, text in zip(rows, self.tokenizer.batch_decode(outputs, skip_special_tokens=True), strict=True):
                translations[row] = text
        return translations


def _through(models: Sequence[Translator], texts: Sequence[str], temperature: float) -> list[str]:
    """Return the texts after translation by all models in turn, sentence by sentence."""
    split = [SENTENCE.split(text.strip()) if text.strip() else [] for text in texts]
    sentences = list(chain.from_iterable(split))
    for model in models:
        sentences = model(sentences, temperature)
    rest = iter(sentences)
    return [" ".join(next(rest) for _ in of_text) for of_text in split]


def _read(file: Path) -> list[str] | None:
    """Return the texts in a file; None if the file is missing or cannot be trusted."""
    content = sealed_content(file)
    return None if content is None else list(json.loads(content))
