"""Guesses of languages: right where they are made, and none without evidence."""

import pytest

from drift.quality.languages import language_of, other_languages


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The cat is not on the table, and it does not want to go there", "English"),
        ("Die Katze ist nicht auf dem Tisch und das Haus ist leer", "German"),
        ("Le chat est sur la table et il ne veut pas descendre", "French"),
        ("El gato está en la mesa y no se quiere bajar", "Spanish"),
        ("Katten är inte på bordet och det är tyst", "Swedish"),
        ("Это русский текст", "Cyrillic script"),
        ("これは日本語の文です", "Japanese"),
        ("这是中文", "Chinese"),
        ("이것은 한국어 문장입니다", "Korean"),
        ("Αυτό είναι ένα κείμενο", "Greek"),
        ("good", None),
        ("12345 !!", None),
        ("", None),
        ("UPDATE: Australia #39;s Fortescue Signs China Railway Group", None),
    ],
)
def test_languages(text: str, language: str | None) -> None:
    assert language_of(text) == language


def test_rows_in_another_language_than_most() -> None:
    english, german = "this is the text that we have for you", "das ist nicht der text und auch nicht die antwort"
    assert other_languages([english, english, "ok", german]) == ("English", {3: "German"})
    assert other_languages([english, german]) == (None, {})
    assert other_languages(["", "1"]) == (None, {})
