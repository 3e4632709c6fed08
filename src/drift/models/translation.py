"""Texts translated into another language and back: the same said otherwise, made once and kept on disk by content."""

import json
import re
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import torch

from drift.data.cache import cache_file, cache_folder, content_key
from drift.data.packages import needed_for
from drift.data.tokenized import Progress, silent
from drift.errors import FileError
from drift.models.embedding import fingerprint, like_batches
from drift.models.encoders import drawing_from, encoder_path, quietly, without_bars

FORMAT = "translations/1"  # to be raised when the same texts, models and seed give other texts
TEXTS_PER_FILE = 64  # texts in one file: all that a crash can lose
BATCH_TOKENS = 1024
SENTENCE = re.compile(r"(?<=[.!?])\s+")  # what ends one, for models know sentences and no longer texts


def back_translated(
    texts: Sequence[str],
    there: str,
    back: str,
    *,
    temperature: float = 0.9,
    seed: Sequence[int] = (0,),
    progress: Progress | None = None,
) -> list[str]:
    """Each text, sentence by sentence, through one translation model and then another (Xie et al., 2020).

    there, back: sequence-to-sequence models of transformers, such as Marian's, by name or folder. temperature: words
    are drawn at this one; 0 takes the most likely word. progress: as for `embed`.
    """
    settings = (FORMAT, fingerprint(there), fingerprint(back), temperature, tuple(seed))
    starts = range(0, len(texts), TEXTS_PER_FILE)
    keys = [content_key(texts[start : start + TEXTS_PER_FILE], *settings) for start in starts]
    files = [cache_folder() / "translations" / f"{key}.json" for key in keys]
    cached = [_read(file) for file in files]
    with drawing_from(0):  # from_pretrained draws weights before it reads them
        models = [Translator(there), Translator(back)] if None in cached else []
    found: list[str] = []
    with (progress or silent)("Translating texts", len(texts)) as tick:
        for start, key, file, piece in zip(starts, keys, files, cached, strict=True):
            if piece is None:
                # By content: a piece that was lost is made again as it was.
                with drawing_from(int(key[:12], 16)):
                    piece = _through(models, texts[start : start + TEXTS_PER_FILE], temperature)
                with cache_file(file) as aside:
                    aside.write_text(json.dumps(piece), encoding="utf-8")
            found += piece
            for _ in piece:
                tick()
    return found


class Translator:
    """One direction."""

    def __init__(self, name: str) -> None:
        with needed_for("translation models"):
            import transformers
        path = encoder_path(name)
        try:
            with quietly(), without_bars(transformers):
                here = Path(path).is_dir()
                self.tokenizer = transformers.AutoTokenizer.from_pretrained(path, local_files_only=here)
                model = transformers.AutoModelForSeq2SeqLM.from_pretrained(path, local_files_only=here)
        except Exception as error:  # what a damaged file raises is up to the library that reads it
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise FileError(
                f"{name} cannot be opened as a translation model ({reason}); give one of transformers, such as Marian's"
            ) from error
        self.device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else "cpu"
        self.model = model.eval().to(self.device)
        self.prefix = getattr(model.config, "prefix", None) or ""  # what a T5 is told to do
        self.longest = min(self.tokenizer.model_max_length, getattr(model.config, "max_position_embeddings", 512))

    @torch.inference_mode()
    def __call__(self, sentences: Sequence[str], temperature: float) -> list[str]:
        found = [""] * len(sentences)
        asked = [self.prefix + sentence for sentence in sentences]
        ids = self.tokenizer(asked, truncation=True, max_length=self.longest)["input_ids"] if asked else []
        how: dict[str, Any] = {"do_sample": False}
        if temperature > 0:
            how = {"do_sample": True, "temperature": temperature, "top_k": 0}
        for rows in like_batches([len(row) for row in ids], BATCH_TOKENS):
            inputs = self.tokenizer.pad({"input_ids": [ids[row] for row in rows]}, return_tensors="pt")
            tokens = max(len(ids[row]) for row in rows)
            with quietly():
                answers = self.model.generate(
                    input_ids=inputs["input_ids"].to(self.device),
                    attention_mask=inputs["attention_mask"].to(self.device),
                    num_beams=1,
                    max_new_tokens=min(2 * tokens + 8, self.longest - 1),  # far more than a translation has
                    **how,
                )
            for row, text in zip(rows, self.tokenizer.batch_decode(answers, skip_special_tokens=True), strict=True):
                found[row] = text
        return found


def _through(models: Sequence[Translator], texts: Sequence[str], temperature: float) -> list[str]:
    """The texts after all models, their sentences one after the other."""
    split = [SENTENCE.split(text.strip()) if text.strip() else [] for text in texts]
    sentences = list(chain.from_iterable(split))
    for model in models:
        sentences = model(sentences, temperature)
    rest = iter(sentences)
    return [" ".join(next(rest) for _ in own) for own in split]


def _read(file: Path) -> list[str] | None:
    """The texts in a file; None where there is none, or one cut short."""
    try:
        found: list[str] = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found
