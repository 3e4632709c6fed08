"""Sections of the page about a tagger: types, errors, and sentences with their entities in colour."""

from collections.abc import Mapping, Sequence

from drift.report.page import Marked, Section, Table
from drift.tasks.parts import Draw
from drift.tasks.tokens.record import RuleSetFacts, Sample, TokenRecord, TypeScores
from drift.weak.diagnostics import Share

ERRORS = ("right", "bounds", "type", "missed", "made up")
UNCOVERED = {"ignore": "left out", "O": "taken for O", "common": "taken for O if they are common, else left out"}


def type_sections(record: TokenRecord, draw: Draw) -> list[Section]:
    """Scores and errors by type, and example sentences; empty if nothing was scored."""
    if record.by_type is None:
        return []
    counted = "entities, exact in words and type" if record.entities else "single words that are not O"
    text = [f"Scores count {counted}. The last row is the micro average over all types."]
    sections = [
        Section(
            "Results per type", text, [_scores(record.by_type, "Scores in %, by type"), _errors(record.errors or {})]
        )
    ]
    colors = _colors(record)
    if record.samples:
        text = ["The first few sentences that contain an entity, with true and predicted entities."]
        sections.append(Section("Example sentences", text, marked=[_marked(each, colors) for each in record.samples]))
    for title, right, wrong, compared in (
        ("Where the model corrects the weak tags", "model", "weak tags", record.weak_wrong_model_right),
        ("Where the weak tags are better than the model", "weak tags", "model", record.weak_right_model_wrong),
    ):
        if compared is not None and compared.sentences:
            text = [f"Some {compared.where} sentences that the {right} tagged right and the {wrong} wrong."]
            marked = [_marked(each, colors) for each in compared.sentences]
            sections.append(Section(title, text, marked=marked))
    return sections


def weak_tag_sections(record: TokenRecord) -> list[Section]:
    """Coverage and quality of the weak tags, and how words without one were treated."""
    shares = record.weak_labels
    if shares is None:
        return []
    text = [f"{shares.labeled} {record.unit} have a weak tag."]
    tables = []
    if shares.by_type is not None:
        text.append(
            f"On {shares.sentences or 0:,} sentences with gold tags they score as below; words without a weak tag count"
            " as O. Nothing was selected by this."
        )
        tables.append(_scores(shares.by_type, "Weak tags, scores in %, by type"))
    if record.uncovered is not None and record.uncovered.chosen is not None:
        text.append(f"Words without a weak tag are {UNCOVERED[record.uncovered.chosen]}.")
    if record.uncovered is not None and record.uncovered.dev is not None:
        scores = ", ".join(f"{UNCOVERED[way]}: {100 * score:.2f}" for way, score in record.uncovered.dev.items())
        text.append(f"That was chosen on dev, by the F1 of the start in % ({scores}).")
    if (votes := record.rule_votes) is not None:
        without = ", ".join(f"{part} {100 * f1:.2f}" for part, f1 in votes.without.items())
        text.append(
            f"The rules vote in the trained tagger, with weight {votes.weight:g}."
            + (f" Its F1 in % without them: {without}." if without else "")
        )
    if (tagged := record.tagged_words) is not None:
        text.append(
            f"{100 * tagged.labels:.1f} % of the training words have a weak tag other than O; the model gives such a"
            f" tag to {100 * tagged.model:.1f} % of the words of the first sentences."
        )
    if record.rules is not None:
        tables.append(_rules(record.rules))
    return [Section("Weak tags", text, tables)]


def _scores(by_type: Mapping[str, TypeScores], caption: str) -> Table:
    rows = [
        [name, f"{scores.true:,}", *(f"{100 * score:.2f}" for score in (scores.precision, scores.recall, scores.f1))]
        for name, scores in by_type.items()
    ]
    return Table(["type", "true", "precision", "recall", "F1"], rows, caption)


def _errors(errors: Mapping[str, Mapping[str, int]]) -> Table:
    rows = [[name, *(f"{counts.get(error, 0):,}" for error in ERRORS)] for name, counts in errors.items()]
    headings = ["type", "right", "wrong bounds", "wrong type", "missed", "spurious"]
    return Table(headings, rows, "True entities by what was predicted for them, and spurious predictions")


def _rules(rules: RuleSetFacts) -> Table:
    def share(counts: Share) -> str:
        return f"{100 * counts.rate:.1f} % of {counts.of:,}" if counts.of else "-"

    rows = [
        [
            name,
            share(facts.tokens.coverage),
            f"{facts.together.found:,}",
            *(share(score) for score in (facts.together.precision, facts.together.recall, facts.together.f1)),
        ]
        for name, facts in {**rules.rules, "together": rules}.items()
    ]
    return Table(["rule", "words it tags", "spans", "precision", "recall", "F1"], rows, "The rules")


def _colors(record: TokenRecord) -> dict[str, int]:
    types = {tag[2:] if record.entities else tag for tag in record.classes if tag != "O"}
    return {name: color for color, name in enumerate(sorted(types))}


def _marked(sample: Sample, colors: Mapping[str, int]) -> list[Marked]:
    return [Marked(origin, _pieces(sample.words, spans), colors) for origin, spans in sample.spans.items()]


def _pieces(words: Sequence[str], spans: Sequence[tuple[int, int, str]]) -> list[tuple[str, str | None]]:
    """The sentence in pieces, each with the type of the entity it is, or None."""
    pieces: list[tuple[str, str | None]] = []
    done = 0
    for start, end, name in spans:
        pieces += [(" ".join(words[done:start]), None)] * (start > done)
        pieces.append((" ".join(words[start:end]), name))
        done = end
    return pieces + [(" ".join(words[done:]), None)] * (done < len(words))
