"""Other forms of the training texts, for methods that want the same answer on a text and on its other forms."""

from collections.abc import Iterable, Sequence

from drift.data.augmentation import AugmentationSettings, replaced_words
from drift.errors import DataError
from drift.methods.materials import Materials, Texts
from drift.models.translation import back_translated


def augmented(how: AugmentationSettings, texts: Texts) -> Materials:
    """What a method's `prepare_texts` gives back: the views of all texts, the same for every seed of a run."""
    return Materials(views=tuple(texts.encode(view) for view in views_of(how, texts)))


def views_of(how: AugmentationSettings, texts: Texts) -> list[list[str]]:
    """Other forms of all texts, a list for each view; a text that has no other form stands for itself."""
    if how.augment == "column":
        return [_filled(texts.columns[name], texts.texts, f"column {name!r}") for name in how.column]
    seeds = [(texts.seeds[0], view) for view in range(how.views)]
    if how.translation is None:
        return [replaced_words(texts.texts, how.replace, seed=seed) for seed in seeds]
    translations = (
        back_translated(texts.texts, *how.translation, temperature=how.temperature, seed=seed, progress=texts.progress)
        for seed in seeds
    )
    return [_filled(view, texts.texts, "what came back from translation") for view in translations]


def _filled(view: Iterable[str], texts: Sequence[str], name: str) -> list[str]:
    """The view, and the text itself where it is blank."""
    others = list(view)
    if not any(map(str.strip, others)):
        raise DataError(f"{name} is blank in every row; other forms of the texts are needed there")
    return [other if other.strip() else text for other, text in zip(others, texts, strict=True)]
