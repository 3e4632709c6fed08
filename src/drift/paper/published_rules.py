"""Convert the rules published with AGNews, IMDB and Yelp to our format."""

from collections.abc import Iterable, Mapping
from typing import Any

from drift.errors import DataError, needed_for
from drift.weak.python_rule import PythonRule
from drift.weak.rules import RuleSet
from drift.weak.schema import re2_module

GAP = 20  # maximum number of characters between prefix and expression
POLARITY = 0.5  # the rule votes if the absolute value of TextBlob's sentiment is above this


def convert_published(published: Mapping[str, Any]) -> RuleSet:
    """Convert published rules to a RuleSet.

    published: the content of a rules.json. Its `notes` say how keywords match: by whole tokens, or with punctuation
    stripped.
    """
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
    rule_type = rule["type"]
    if rule_type.startswith("textblob"):
        return PythonRule(_Polarity(negative, positive), name)
    if rule_type == "expression":
        pairs = (
            {"label": label, "pairs": {"prefix": prefix, "expression": [expression], "within": GAP}}
            for expression in rule["expression"]
            for label, prefix in ((negative, published["pre_neg"]), (positive, rule["pre_pos"]))
        )
        return {"name": name, "cases": list(pairs)}
    good = rule["keywords_pos"]
    bad = [*rule["keywords_neg"], *(prefix + word for word in good for prefix in published["negative_for_neg"])]
    condition = _token_pattern if whole_tokens and rule_type == "keyword" else _keywords
    cases = [{"label": label, **condition(words)} for label, words in ((negative, bad), (positive, good)) if words]
    return {"name": name, "cases": cases}


def _keywords(words: Iterable[str]) -> dict[str, Any]:
    return {"has": list(words)}


def _token_pattern(words: Iterable[str]) -> dict[str, Any]:
    """Match whole tokens: strings between single spaces, punctuation included. A keyword with a space cannot match."""
    escape = re2_module().escape
    return {"matches": f"(?:^| )(?:{'|'.join(escape(word) for word in words if ' ' not in word)})(?: |$)"}


class _Polarity:
    """Vote by TextBlob's sentiment if it is strong."""

    def __init__(self, negative: str, positive: str) -> None:
        self.negative, self.positive = negative, positive

    def __call__(self, text: str) -> str | None:
        with needed_for("the TextBlob rule", "pip install textblob"):
            from textblob import TextBlob
        polarity = TextBlob(text).sentiment.polarity
        if abs(polarity) <= POLARITY:
            return None
        return self.positive if polarity > 0 else self.negative
