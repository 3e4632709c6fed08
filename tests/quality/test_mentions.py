"""Mentions of the same phrase that are tagged differently."""

from drift.quality.mentions import phrases_of, suspicious_mentions

B, I, O = "B-LOC", "I-LOC", "O"  # noqa: E741


def test_a_missing_entity_and_an_inconsistent_one_are_found() -> None:
    tokens = [["in", "New", "York", "."]] * 4 + [["New", "York", "won"], ["see", "New", "York"], ["New", "ideas"]]
    tags = [[O, B, I, O]] * 4 + [["B-ORG", "I-ORG", O], [O, O, O], [O, O]]
    found = suspicious_mentions(phrases_of(tokens, tags, "IOB2"))
    assert [(each.sentence, each.word, each.tagged, each.usual) for each in found] == [
        (4, 0, "ORG", "LOC"),
        (5, 1, "O", "LOC"),
    ]
    assert found[0].share == 4 / 6


def test_the_longest_phrase_counts_and_parts_of_entities_do_not() -> None:
    tokens = [["New", "York"], ["York"], ["York"], ["New", "York"]]
    tags = [[B, I], [B], [B], [O, O]]
    phrases = phrases_of(tokens, tags, "IOB2")
    assert phrases["York",].types == {"LOC": 2}  # neither inside the entity, nor inside the untagged longer phrase
    assert phrases["New", "York"].types == {"LOC": 1, "O": 1}


def test_case_and_sentences_without_tags() -> None:
    tokens = [["May"], ["May"], ["may"], ["May"]]
    tags = [["B-DATE"], ["B-DATE"], [O], None]
    assert suspicious_mentions(phrases_of(tokens, tags, "IOB2")) == []


def test_one_mention_is_no_evidence() -> None:
    assert suspicious_mentions(phrases_of([["Bern"], ["Bern"]], [[B], [O]], "IOB2")) == []
