"""Augmented forms of the training texts, for methods that require consistent predictions on them."""

from collections.abc import Iterable, Sequence

from drift.data.augmentation import AugmentationSettings, replaced_words
from drift.errors import DataError
from drift.methods.materials import Materials, Texts
from drift.models.translation import back_translated


def augmented(settings: AugmentationSettings, texts: Texts) -> Materials:
    """Return the views of all texts, encoded; they are the same for every seed of a run.

    settings: how to augment. texts: the training texts.
    """
    return Materials(views=tuple(texts.encode(view) for view in views_of(settings, texts)))


def views_of(settings: AugmentationSettings, texts: Texts) -> list[list[str]]:
    """Return one list per view with the augmented form of every text.

    A text without an augmented form is its own view. settings, texts: as for `augmented`.
    """
    if settings.augment == "column":
        return [_filled(texts.columns[name], texts.texts, f"column {name!r}") for name in settings.column]
    seeds = [(texts.seeds[0], view) for view in range(settings.views)]
    if settings.translation is None:
        return [replaced_words(texts.texts, settings.replace, seed=seed) for seed in seeds]
    translations = (
        back_translated(
            texts.texts, *settings.translation, temperature=settings.temperature, seed=seed, progress=texts.progress
        )
        for seed in seeds
    )
    return [_filled(view, texts.texts, "the back-translation") for view in translations]


def _filled(view: Iterable[str], texts: Sequence[str], name: str) -> list[str]:
    """Return the view with blank entries replaced by the text itself."""
    others = list(view)
    if not any(map(str.strip, others)):
        raise DataError(f"{name} is blank in every row; it must hold augmented forms of the texts")
    return [other if other.strip() else text for other, text in zip(others, texts, strict=True)]
