"""A guess of a text's language, from its script and its commonest short words. It is silent where it is not sure.

A script that one language uses names that language (Greek, Hangul, Thai), another one only itself (Cyrillic, Arabic).
Texts in Latin script need at least `LEAST` of the listed words, and more of one language than of any other. So short
texts often have no guess: this finds rows in another language, not the language of every row.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

LEAST = 3  # listed words that a text in Latin script must have
AHEAD = 1.5  # times as many as of the second language
LETTERS_READ = 2000  # from the beginning of a text
WORDS = {
    "English": "the of and to in is that for it was with as on be by this are from at have not an they you his her has"
    " will would their after new said which who or but its if can do all was were been more when what there",
    "German": "der die und das den von zu ist mit des auf ein eine nicht im dem sich auch es an werden aus er hat wir",
    "French": "le la les des et en un une du est pour que qui dans il par sur pas plus au avec ce sont elle nous cette",
    "Spanish": "el la los las de que y en un una es por con para del se no su al lo como más pero este son está muy",
    "Italian": "il di che la è per un una del con non sono della le si da dei nel gli anche più alla ha questo come",
    "Portuguese": "o de que e do da em um uma para com não os no se na por mais as dos ao das é foi são muito você",
    "Dutch": "de het een van en dat is op te zijn met voor niet aan er die ook als bij maar hij naar wordt deze uit",
    "Swedish": "och att det som en på är av för den med till inte om ett har de jag från men var vi kan så",
    "Danish": "og at det som en på er af for den med til ikke der et har de jeg fra men var vi kan så blev",
    "Norwegian": "og at det som en på er av for den med til ikke der et har de jeg fra men var vi kan så ble",
    "Finnish": "ja on ei että se hän oli mutta ovat kun niin myös joka kuin tai sen ole hänen mitä vain",
    "Polish": "i w na z do się nie że jest to o jak po co dla od ale przez ten tak za był są tym oraz",
    "Czech": "a v na se je že s z do o to i za pro by jako ale jsem jsou nebo podle které který není při",
    "Turkish": "ve bir bu da de için ile çok ne olarak daha gibi ben sen o var mi ama kadar sonra değil",
    "Romanian": "și de la în a cu pe nu că este un o din mai pentru care sunt dar ce au fost sau prin",
    "Hungarian": "a az és hogy nem is egy van volt meg ez de csak már mint még el ha azt vagy ki lesz",
    "Indonesian": "yang dan di itu dengan untuk tidak ini dari dalam akan pada juga saya ke karena bisa ada oleh",
    "Vietnamese": "và là của có không được một cho trong các những người này đã với khi ở đến để như",
}
OF_WORD: dict[str, list[str]] = {}
for _language, _words in WORDS.items():
    for _word in filter(lambda word: len(word) > 1, _words.split()):  # single letters occur in every language
        OF_WORD.setdefault(_word, []).append(_language)
SCRIPTS = {
    "GREEK": "Greek",
    "HANGUL": "Korean",
    "HIRAGANA": "Japanese",
    "KATAKANA": "Japanese",
    "CJK": "Chinese",
    "THAI": "Thai",
    "HEBREW": "Hebrew",
    "ARMENIAN": "Armenian",
    "GEORGIAN": "Georgian",
}
LATIN_WORD = re.compile(r"[^\W\d_]+")


def language_of(text: str) -> str | None:
    """The language of a text, or its script; None if there is too little evidence."""
    text = text[:LETTERS_READ]
    script = "Latin" if text.isascii() else _script(text)
    if script != "Latin":
        return script
    votes: Counter[str] = Counter()
    for word in set(LATIN_WORD.findall(text.casefold())):
        votes.update(OF_WORD.get(word, ()))
    ranked = votes.most_common(2)
    if not ranked or ranked[0][1] < LEAST:
        return None
    if len(ranked) > 1 and ranked[0][1] < AHEAD * ranked[1][1]:
        return None
    return ranked[0][0]


def other_languages(texts: Sequence[str]) -> tuple[str | None, dict[int, str]]:
    """The language of most texts, and the rows in another one. Without a clear majority, (None, {})."""
    guessed = [language_of(text) for text in texts]
    counts = Counter(language for language in guessed if language is not None)
    if not counts:
        return None, {}
    usual, rows = counts.most_common(1)[0]
    if rows <= counts.total() / 2:
        return None, {}
    return usual, {row: name for row, name in enumerate(guessed) if name not in (None, usual)}


def _script(text: str) -> str | None:
    """The script of most letters; Japanese if kana are among them."""
    counts: Counter[str] = Counter(_letter_script(letter) for letter in text if letter.isalpha())
    if not counts:
        return None
    if counts["HIRAGANA"] + counts["KATAKANA"] > 0.1 * counts.total():
        return "Japanese"
    script, letters = counts.most_common(1)[0]
    if letters <= counts.total() / 2:
        return None
    return "Latin" if script == "LATIN" else SCRIPTS.get(script, f"{script.capitalize()} script")


@lru_cache(maxsize=8192)
def _letter_script(letter: str) -> str:
    return unicodedata.name(letter, "?").split()[0]
