"""Which text next: the audit draws uniformly; the rest looks for doubt and novelty, and leaves out near-copies."""

import numpy as np
from scipy.stats import chisquare

from drift.annotate.policy import NOVEL, TYPICAL, WAITING, Audit, choose, is_audit, margin_doubt
from tests.annotate.small import answer, clusters, session


def test_the_audit_draws_every_text_equally_often() -> None:
    rows, draws = 20, 2000
    taken = np.zeros(rows, dtype=bool)
    first = np.bincount([Audit(np.arange(rows), seed).next(taken, []) for seed in range(draws)], minlength=rows)
    assert chisquare(first).pvalue > 1e-3
    sampled = np.zeros(rows)
    for seed in range(draws):
        audit = Audit(np.arange(rows), seed)
        sampled[audit.passed([int(audit.order[4])])] += 1
    assert chisquare(sampled).pvalue > 1e-3


def test_what_the_policy_chose_does_not_bias_the_sample() -> None:
    """Texts that were labelled already belong to the sample when the audit passes them, and are not asked about."""
    audit, taken = Audit(np.arange(50), 3), np.zeros(50, dtype=bool)
    taken[audit.order[:4]] = True
    drawn = audit.next(taken, [])
    assert drawn == audit.order[4]
    assert audit.passed([drawn]).tolist() == audit.order[:5].tolist()
    assert audit.next(np.ones(50, dtype=bool), []) is None


def test_every_fifth_question_is_an_audit() -> None:
    assert [at for at in range(20) if is_audit(at)] == [4, 9, 14, 19]
    assert not any(is_audit(at, 0) for at in range(20))
    opened, codes = session()
    audits = []
    for at in range(15):
        question = opened.next()
        audits += [at] if question.audit else []
        opened.label(question.row, opened.classes[codes[question.row]])
    assert audits == [4, 9, 14]
    assert all(opened.state.marks[row].by in ("audit", "policy") for row in opened.state.marks)


def test_it_asks_about_a_group_that_has_no_label() -> None:
    _, vectors, codes = clusters(120)
    labeled = np.flatnonzero(codes != 2)[:10]
    free = np.setdiff1d(np.arange(120), labeled)
    ranked = choose(vectors, free, labeled, 5, uncertainty=np.zeros(120))
    assert codes[ranked.rows[0]] == 2
    assert ranked.reasons[0] == NOVEL


def test_it_asks_where_the_heads_disagree_when_there_are_many_labels() -> None:
    generator = np.random.default_rng(0)
    vectors = generator.normal(size=(400, 8)).astype(np.float32)
    labeled, free = np.arange(200), np.arange(200, 400)
    p = np.tile([0.98, 0.02], (400, 1))
    disagreement = np.zeros(400)
    p[200:220], disagreement[200:220] = [0.5, 0.5], 0.9
    ranked = choose(vectors, free, labeled, 10, uncertainty=margin_doubt(p), disagreement=disagreement)
    assert set(ranked.rows.tolist()) <= set(range(200, 220))
    assert set(ranked.reasons) == {"disagree"}


def test_a_batch_holds_no_copies_and_an_outlier_waits() -> None:
    generator = np.random.default_rng(0)
    vectors = np.repeat(generator.normal(size=(30, 8)), 2, axis=0).astype(np.float32)  # each twice
    ranked = choose(vectors, np.arange(60), np.empty(0, dtype=int), 10)
    assert len(set((ranked.rows // 2).tolist())) == 10
    assert ranked.reasons[0] == TYPICAL
    _, crowd, _ = clusters(60)
    crowd[7] = -50 * np.ones(8)
    assert choose(crowd, np.arange(60), np.empty(0, dtype=int), 1).rows[0] != 7


def test_nothing_is_left_to_choose() -> None:
    _, vectors, _ = clusters(5)
    assert len(choose(vectors, np.empty(0, dtype=int), np.arange(5), 3).rows) == 0
    assert len(choose(vectors, np.arange(5), np.empty(0, dtype=int), 30).rows) == 5
    opened, codes = session(12)
    assert len(answer(opened, codes, 12)) == 12
    assert opened.next() is None


def test_predicted_classes_take_turns_by_the_root_of_their_shares() -> None:
    generator = np.random.default_rng(0)
    vectors = generator.normal(size=(400, 8)).astype(np.float32)
    predicted = (np.arange(400) < 40).astype(int)  # a tenth: one of four, because sqrt(1) / (sqrt(1) + sqrt(9)) = 1/4
    doubt = np.where(predicted == 1, 0.1, 0.9)  # the common class is the doubtful one
    labeled, free = np.arange(380, 400), np.arange(380)
    ranked = choose(vectors, free, labeled, 20, uncertainty=doubt, predicted=predicted)
    assert predicted[ranked.rows].sum() == 5
    assert len(set(ranked.rows.tolist())) == 20
    alone = choose(vectors, free, labeled, 20, uncertainty=doubt, predicted=np.zeros(400, dtype=int))
    assert alone.rows.tolist() == choose(vectors, free, labeled, 20, uncertainty=doubt).rows.tolist()


def test_a_class_that_runs_out_leaves_its_turns_to_the_others() -> None:
    generator = np.random.default_rng(0)
    vectors = generator.normal(size=(30, 4)).astype(np.float32)
    predicted = (np.arange(30) < 2).astype(int)
    ranked = choose(vectors, np.arange(28), np.arange(28, 30), 28, uncertainty=np.ones(30), predicted=predicted)
    assert sorted(ranked.rows.tolist()) == list(range(28))


def test_without_a_model_texts_are_drawn_at_random() -> None:
    """All labels are of one class: what is dense is that class again, and what is new says nothing about shares."""
    vectors = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32)
    times = np.zeros(20)
    for seed in range(2000):
        ranked = choose(vectors, np.arange(4, 20), np.arange(4), 3, seed=seed)
        times[ranked.rows] += 1
        assert set(ranked.reasons) == {WAITING}
    assert not times[:4].any()
    assert chisquare(times[4:]).pvalue > 1e-3
