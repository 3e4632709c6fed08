"""The result of a run in a few lines and one table, for the terminal and for the page."""

from collections.abc import Sequence

from drift.report.page import Bar
from drift.tasks.record import RunRecord
from drift.tasks.record_parts import HeldOutScores, Scores
from drift.tasks.scoring import mean_and_spread, wilson_interval
from drift.training.plan import format_duration

MOST_SHARES = 10  # classes whose shares are listed
FEW_LABELS = 30  # per class


def spread(part: HeldOutScores | None, measure: str) -> str:
    """One score over all seeds: "74.11 ± 6.70"."""
    return "" if part is None else mean_and_spread([seed[measure] for seed in part.scores])


def score_rows(record: RunRecord) -> list[list[str]]:
    """The rows of the table of scores: simple baselines, the start and the result, on dev and on test.

    Each row has a title, the number of rows, and one text per measure.
    """
    rows = []
    for name in ("dev", "test"):
        part = record.scores_on(name)
        if part is None:
            continue
        baselines = part.baselines if name == record.held_out else {}
        rows += [_row(f"{name}: {title}", part, _percent(record, scores)) for title, scores in baselines.items()]
        if (start := _start(record, name, part)) is not None:
            rows.append(_row(f"{name}: start", part, start))
        rows.append(_row(f"{name}: result", part, _result(record, name, part)))
    return rows


def _row(title: str, part: HeldOutScores, values: Sequence[str]) -> list[str]:
    return [title, f"{part.rows:,}", *values]


def _percent(record: RunRecord, scores: Scores) -> list[str]:
    return [f"{100 * scores[measure]:.2f}" for measure in record.measures]


def _result(record: RunRecord, name: str, part: HeldOutScores) -> list[str]:
    model = record.model_scores(name)
    if record.averaged and model is not None:
        return _percent(record, model)
    return [spread(part, measure) for measure in record.measures]


def _start(record: RunRecord, name: str, part: HeldOutScores) -> list[str] | None:
    if record.averaged and part.start_model is not None:
        return _percent(record, part.start_model)
    start = part.start or (record.start_on_dev if name == "dev" else None)
    if start is None:
        return None
    return [mean_and_spread([seed[measure] for seed in start]) for measure in record.measures]


def caption(record: RunRecord) -> str:
    """What the numbers of the table are."""
    seeds = len(record.seeds)
    if record.averaged:
        return f"scores are those of the kept model, {record.kept_because}"
    if seeds > 1:
        return f"mean ± standard deviation of {seeds} seeds; kept: seed {record.kept_seed}, {record.kept_because}"
    return ""


def cost(record: RunRecord) -> str:
    """What training took: "800 steps in 12 seconds; peak memory 0.9 GB"."""
    memory = f"; peak memory {record.peak_memory:.1f} GB" if record.peak_memory else ""
    return f"{record.steps:,} steps in {format_duration(record.seconds)}{memory}"


def verdict(record: RunRecord) -> list[str]:
    """What self-training did, and how sure the result is; one sentence per entry."""
    return [*_gain(record), *_certainty(record), *advice(record)]


def result(record: RunRecord) -> str:
    """The result on one line: score, interval, gain, and simple answers. Empty if nothing is known."""
    part = None if record.held_out is None else record.scores_on(record.held_out)
    if part is not None:
        scores = record.model_scores(record.held_out or "") or {}
        name, measure = record.measures[record.measure], record.measure
        where = f"on {part.rows:,} {record.held_out} {record.unit}"
        interval, others = part.interval, {title: each.get(measure) for title, each in part.baselines.items()}
        text = f"{name} {100 * scores[measure]:.1f} % {where}"
    elif record.estimate is not None:
        interval, others = record.estimate.interval, {}
        text = f"estimated accuracy {100 * record.estimate.accuracy:.1f} % (not a test score)"
    else:
        return ""
    if interval is not None:
        text += ", 95 % interval {:.1f} to {:.1f}".format(*(100 * end for end in interval))
    if record.choice is not None and _kept_start(record):
        text += f"; the start was kept ({record.choice.reason})"
    elif (ends := _start_and_result(record)) is not None:
        text += f"; self-training: {100 * ends[0]:.1f} -> {100 * ends[1]:.1f}"
    return text + "".join(f"; {title} {100 * score:.1f}" for title, score in others.items() if score is not None)


def score_bars(record: RunRecord) -> list[Bar]:
    """Simple baselines, the start and the result on the held-out rows. Empty if there were none."""
    part, measure = None if record.held_out is None else record.scores_on(record.held_out), record.measure
    scores = record.model_scores(record.held_out or "") if record.held_out else None
    if part is None or scores is None:
        return []
    shares = {title: each[measure] for title, each in part.baselines.items() if measure in each}
    if (ends := _start_and_result(record)) is not None:
        shares["start"] = ends[0]
    shares["result"] = scores[measure]

    def interval(share: float) -> tuple[float, float] | None:
        return wilson_interval(share, part.rows) if measure == "accuracy" else None

    return [Bar(name, share, interval(share), strong=name == "result") for name, share in shares.items()]


def limits(record: RunRecord, confusion: Sequence[Sequence[int]] | None = None) -> list[str]:
    """What limits the result, the most important first, each with what would help. confusion: true by predicted."""
    lines = []
    was_played = any(end.phase == "game" for end in record.phases)  # not where the start suffices
    if was_played and _kept_start(record):
        lines.append("self-training did not help on these data: check labels and class shares, or add labels")
    if any(end.reason in ("maximum", "minutes") for end in record.phases):
        lines.append("training was stopped before it had converged: raise training.steps or --minutes")
    per_class = record.label_budget.train / len(record.classes)
    if not record.weak and per_class < FEW_LABELS:
        lines.append(f"few labels ({record.label_budget.train:,} for {len(record.classes)} classes): label more rows")
    elif record.weak and not record.label_budget.train:
        lines.append("no gold label: a few per class would correct what noisy labels get wrong")
    if confusion is not None and (confused := _most_confused(confusion)) is not None:
        true, predicted, count, of = confused
        classes = record.classes
        lines.append(f"most frequent error: {classes[true]} taken for {classes[predicted]} ({count:,} of {of:,})")
    if record.held_out is None:
        lines.append("no test set: give --test for a score on rows that training never saw")
    return lines


def _most_confused(confusion: Sequence[Sequence[int]]) -> tuple[int, int, int, int] | None:
    """The most frequent error: true class, predicted class, how often, and rows of the true class."""
    errors = [(count, t, p) for t, row in enumerate(confusion) for p, count in enumerate(row) if t != p and count]
    if not errors:
        return None
    count, true, predicted = max(errors, key=lambda each: each[0])
    return true, predicted, count, sum(confusion[true])


def _gain(record: RunRecord) -> list[str]:
    """ "self-training: 90.5 -> 98.4", or why the start was kept."""
    choice, lines = record.choice, []
    if choice is not None and _kept_start(record):
        return [f"kept the start: {choice.reason}"]
    if choice is not None and choice.kept_start:
        lines.append(f"kept the start in {choice.kept_start} of {choice.seeds} seeds: {choice.reason}")
    ends = _start_and_result(record)
    if ends is not None:
        before, after, where = ends
        lines.insert(0, f"self-training: {100 * before:.1f} -> {100 * after:.1f} ({where})")
    return lines


def _kept_start(record: RunRecord) -> bool:
    """Whether the result is the start, in all seeds."""
    return record.choice is not None and record.choice.kept_start == record.choice.seeds


def _start_and_result(record: RunRecord) -> tuple[float, float, str] | None:
    name, measure = record.held_out, record.measure
    part = None if name is None else record.scores_on(name)
    if part is None:
        found = record.estimate
        return None if found is None else (found.start, found.accuracy, "estimated accuracy")
    where = f"{record.measures[measure]} on {name}"
    if record.averaged and part.start_model is not None and part.model is not None:
        return part.start_model[measure], part.model[measure], where
    start = part.start or (record.start_on_dev if name == "dev" else None)
    if start is None:
        return None
    before, after = ([seed[measure] for seed in seeds] for seeds in (start, part.scores))
    return sum(before) / len(before), sum(after) / len(after), where


def _certainty(record: RunRecord) -> list[str]:
    """The interval of the accuracy, or an estimate if there is no test set."""
    part = None if record.held_out is None else record.scores_on(record.held_out)
    lines = []
    if part is not None and part.interval is not None:
        low, high = (100 * end for end in part.interval)
        drawn = "" if record.averaged or len(record.seeds) == 1 else "; ± is the spread over draws of labels and seeds"
        lines.append(
            f"95 % interval of the kept model's accuracy: {low:.1f} to {high:.1f}, for {part.rows:,}"
            f" {record.held_out} {record.unit}{drawn}"
        )
    if record.estimate is not None and record.test is None:
        estimate = record.estimate
        low, high = (100 * end for end in estimate.interval)
        lines.append(
            f"estimated accuracy: {100 * estimate.accuracy:.1f} % (95 % interval {low:.1f} to {high:.1f}), cross-fitted"
            f" on {estimate.labels:,} labels; not a test score"
        )
    return lines


def advice(record: RunRecord) -> list[str]:
    """Phases that might have gone on, and class shares that were assumed."""
    lines = [str(end) for end in record.phases if end.reason in ("maximum", "minutes")]
    if record.best_steps and record.phases:
        last = record.phases[-1]
        late = sum(step == last.steps for step in record.best_steps)
        if late > len(record.best_steps) / 2 and last.reason == "steps":
            lines.append("most seeds were best on dev at the last step: train longer (training.steps)")
    if record.class_shares is not None:
        pairs = list(zip(record.classes, record.class_shares.shares, strict=True))[:MOST_SHARES]
        listed = ", ".join(f"{name} {100 * share:.0f} %" for name, share in pairs)
        more = ", ..." if len(record.classes) > MOST_SHARES else ""
        lines.append(f"class shares assumed: {listed}{more} ({record.class_shares.source}; method.prior sets them)")
    return lines
