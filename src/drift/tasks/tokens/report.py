"""What the page about a tagger shows beside its scores: types, errors, and sentences with their entities in colour."""

from collections.abc import Mapping, Sequence
from typing import Any

from drift.report.page import Marked, Section, Table

ERRORS = ("right", "bounds", "type", "missed", "made up")


def token_sections(metrics: Mapping[str, Any]) -> list[Section]:
    """Type by type, and what it looks like; nothing where nothing was judged."""
    if "by_type" not in metrics:
        return []
    counted = "entities, exact in words and type" if metrics["entities"] else "single words that are not O"
    told = [f"Counted are {counted} (micro average over all types in the last row)."]
    tables = [_scores(metrics["by_type"], "Scores in %, by type"), _errors(metrics["errors"])]
    sections = [Section("Type by type", told, tables)]
    colors = _colors(metrics)
    if shown := metrics["samples"]:
        told = ["The first few sentences with something to find: what is true, and what the model says."]
        sections.append(Section("What it looks like", told, marked=[_marked(each, colors) for each in shown]))
    weak = metrics.get("weak_wrong_model_right", {"sentences": []})
    if weak["sentences"]:
        told = [f"Some {weak['where']} sentences that the weak tags got wrong and the model right."]
        marked = [_marked(each, colors) for each in weak["sentences"]]
        sections.append(Section("What the model knows better", told, marked=marked))
    return sections


def weak_tags(metrics: Mapping[str, Any], told: list[str]) -> Section:
    """The weak tags: how many, how good where gold tags are known, and what was made of the words without one."""
    found, uncovered, tables = metrics["weak_labels"], metrics["uncovered"], []
    if "by_type" in found:
        told.append(
            f"On {found['sentences']:,} sentences with gold tags they score as below, a word without one taken for O."
            " Nothing was chosen by this."
        )
        tables.append(_scores(found["by_type"], "Weak tags, scores in %, by type"))
    meaning = {"ignore": "nothing is known of it", "O": "it is taken for O"}
    if "chosen" in uncovered:
        told.append(f"Of a word that no weak tag covers, {meaning[uncovered['chosen']]}.")
    if "dev" in uncovered:
        scores = ", ".join(f"{meaning[way]}: {100 * score:.2f}" for way, score in uncovered["dev"].items())
        told.append(f"That was chosen on dev, by the F1 of the start in % ({scores}).")
    if "rules" in metrics:
        tables.append(_rules(metrics["rules"]))
    return Section("The weak tags", told, tables)


def _scores(by_type: Mapping[str, Any], caption: str) -> Table:
    rows = [
        [name, f"{found['true']:,}", *(f"{100 * found[each]:.2f}" for each in ("precision", "recall", "f1"))]
        for name, found in by_type.items()
    ]
    return Table(["type", "true", "precision", "recall", "F1"], rows, caption)


def _errors(errors: Mapping[str, Mapping[str, int]]) -> Table:
    rows = [[kind, *(f"{counts.get(each, 0):,}" for each in ERRORS)] for kind, counts in errors.items()]
    headings = ["type", "right", "wrong bounds", "wrong type", "missed", "made up"]
    return Table(headings, rows, "What became of true entities, and how many were made up")


def _rules(rules: Mapping[str, Any]) -> Table:
    def share(found: Mapping[str, int]) -> str:
        return f"{100 * found['count'] / found['of']:.1f} % of {found['of']:,}" if found["of"] else "-"

    rows = [
        [
            name,
            share(found["tokens"]["coverage"]),
            f"{found['together']['found']:,}",
            *(share(found["together"][each]) for each in ("precision", "recall", "f1")),
        ]
        for name, found in {**rules["rules"], "together": rules}.items()
    ]
    return Table(["rule", "words it tags", "spans", "precision", "recall", "F1"], rows, "The rules")


def _colors(metrics: Mapping[str, Any]) -> dict[str, int]:
    kinds = {tag[2:] if metrics["entities"] else tag for tag in metrics["classes"] if tag != "O"}
    return {kind: place for place, kind in enumerate(sorted(kinds))}


def _marked(shown: Mapping[str, Any], colors: Mapping[str, int]) -> list[Marked]:
    return [Marked(whose, _pieces(shown["words"], spans), colors) for whose, spans in shown["spans"].items()]


def _pieces(words: Sequence[str], spans: Sequence[Sequence[Any]]) -> list[tuple[str, str | None]]:
    """The sentence in stretches of words, with the type of those that are entities."""
    pieces: list[tuple[str, str | None]] = []
    done = 0
    for start, end, kind in spans:
        pieces += [(" ".join(words[done:start]), None)] * (start > done)
        pieces.append((" ".join(words[start:end]), str(kind)))
        done = end
    return pieces + [(" ".join(words[done:]), None)] * (done < len(words))
