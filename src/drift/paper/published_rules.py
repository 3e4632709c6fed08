"""The rules published with AGNews, IMDB and Yelp, in our format."""

from collections.abc import Iterable, Mapping
from typing import Any

from drift.data.packages import needed_for
from drift.errors import DataError
from drift.weak.python_rule import PythonRule
from drift.weak.rules import RuleSet
from drift.weak.schema import re2_module

GAP = 20  # characters between prefix and expression
POLARITY = 0.5  # TextBlob's sentiment beyond which its rule votes


def convert_published(published: Mapping[str, Any]) -> RuleSet:
    """published: a rules.json as read. Its `notes` say how the keywords match, and that is what is read from them."""
    try:
        notes = published.get("notes", "")
        classes = published["classes"]
        rules = [_converted(rule, published, whole_tokens="whole-token" in notes) for rule in published["rules"]]
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"these are not published rules ({type(error).__name__}: {error}); give rules.json as json.load reads it"
        ) from error
    return RuleSet(rules, classes, strip_punctuation="punctuation-stripped" in notes)


def _converted(
    rule: Mapping[str, Any], published: Mapping[str, Any], *, whole_tokens: bool
) -> dict[str, Any] | PythonRule:
    name = rule["name"]
    if "keywords" in rule:
        return {"name": name, "label": published["classes"][rule["label"]], "has": rule["keywords"]}
    negative, positive = published["classes"]
    kind = rule["type"]
    if kind.startswith("textblob"):
        return PythonRule(_Polarity(negative, positive), name)
    if kind == "expression":
        asked = (
            {"label": label, "pairs": {"prefix": prefix, "expression": [expression], "within": GAP}}
            for expression in rule["expression"]
            for label, prefix in ((negative, published["pre_neg"]), (positive, rule["pre_pos"]))
        )
        return {"name": name, "cases": list(asked)}
    good = rule["keywords_pos"]
    bad = [*rule["keywords_neg"], *(prefix + word for word in good for prefix in published["negative_for_neg"])]
    asks = _token_pattern if whole_tokens and kind == "keyword" else _keywords
    cases = [{"label": label, **asks(words)} for label, words in ((negative, bad), (positive, good)) if words]
    return {"name": name, "cases": cases}


def _keywords(words: Iterable[str]) -> dict[str, Any]:
    return {"has": list(words)}


def _token_pattern(words: Iterable[str]) -> dict[str, Any]:
    """Tokens are what single spaces separate, punctuation included, so no keyword with a space can be one."""
    escape = re2_module().escape
    return {"matches": f"(?:^| )(?:{'|'.join(escape(word) for word in words if ' ' not in word)})(?: |$)"}


class _Polarity:
    """Vote by TextBlob's sentiment, where it is strong."""

    def __init__(self, negative: str, positive: str) -> None:
        self.negative, self.positive = negative, positive

    def __call__(self, text: str) -> str | None:
        with needed_for("the TextBlob rule", "pip install textblob"):
            from textblob import TextBlob
        polarity = TextBlob(text).sentiment.polarity
        if abs(polarity) <= POLARITY:
            return None
        return self.positive if polarity > 0 else self.negative
