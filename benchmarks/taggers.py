"""Plain `drift fit --task tokens` on real data, without a dev set: rules, start and result on the same test sentences.

    DRIFT_DATA=... DRIFT_MODELS=... python benchmarks/taggers.py run [--cells webpage,mitr] [--seeds 0,1] [--rows weak]
    python benchmarks/taggers.py render

`run` adds one line per dataset, row and seed to docs/results/taggers.jsonl and skips those that exist. Rows: `weak`,
from weak tags or rules; `gold`, the same settings with the gold tags of all training sentences, for comparison. No
setting but columns is given, and nothing is selected by the test scores. `render` writes docs/results/taggers.md.
"""

import argparse
import os
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from drift.runs.fit import fit
from drift.tasks.scoring import mean_and_spread
from few_tags import few_tags_section
from poor_tags import poor_tags_section
from recorded import RECOVERED, RESULTS, add_line, read_lines, table
from tag_limits import limits_table
from tagger_speed import speed_section
from tokens import bc5cdr_rules

LINES, PAGE = RESULTS / "taggers.jsonl", RESULTS / "taggers.md"
CELLS = ("webpage", "wikigold", "mitr", "conll03", "bc5cdr")
TARGETS = {"webpage": 50, "wikigold": 50, "mitr": 65, "conll03": 76, "bc5cdr": 80}
# Of the lines that are written. 1 (no field): before transitions in decoding and votes of rules; 3: transitions between
# slots, which change nothing where tags are B- and I-.
CODE = {"mitr": 3, **dict.fromkeys(("webpage", "wikigold", "conll03", "bc5cdr"), 2)}
HEADINGS = ["data", "seeds", "rules", "start", "result", "target", "all gold tags", "minutes"]
OLD_HEADINGS = ["data", "code", "start", "result"]
TEXT = """\
# Results: plain taggers

Test F1 in % of plain `drift fit --task tokens`: no dev set, no option but the columns, `granite-embedding-30m-english`.
Made by `python benchmarks/taggers.py run` and `render`; one line per run in taggers.jsonl. Scores are of entities,
strict; on MIT-R of single tokens that are not O. "Rules" are rules on the test sentences themselves: for BC5CDR its
dictionary, for MIT-R its rules. The distant tags of the other three exist for training sentences only. There, "rules"
is the dictionary that those tags contain, applied by a gazetteer rule (`python benchmarks/recovered.py`); it knows less
than the dictionaries behind the tags, which are not published. On BC5CDR, rules vote in the result and not in the
start. "All gold tags" is trained with the gold tags of all training sentences, with earlier code. Minutes are of whole
runs on two cores that other work shared, up to fifteen programs at once, so they are upper bounds.

The settings were chosen on CoNLL-03 (dev), and on single runs with seed 0 of all five datasets, whose test scores were
seen ([decision 0080](../decisions/0080-taggers-are-fine-tuned.md)). The weight of votes without a dev set was chosen
on dev of BC5CDR and MIT-R and on the poor dictionaries below
([0085](../decisions/0085-poor-dictionaries.md)).

"""
LIMITS = """\

## What limits the results

Webpage and BC5CDR reach their targets; CoNLL-03, Wikigold and MIT-R miss theirs. With all gold tags the same settings
give 74 to 87, so most of the gap is the weak tags.

- MIT-R: which words the rules cover. They tag 13 % of the words, and 38 % are in slots; 80 % of their tags are right.
  They tag 255 distinct words, where 3,097 are in slots. The table below has three things that could be better. If O
  were learned from true O, the F1 would rise by 1.6; with true tags on the words that have a weak one, by 4.5. True
  tags on as many words, drawn at random, are worth 27. So no treatment of the uncovered words is likely to reach 65.
- MIT-R is scored by slot tokens, without O. Token accuracy, O included, is 75 for the first row.
- Wrong weak tags are learned. Of the words with a weak entity tag in the first 2,500 training sentences, the first
  phase gives this tag to 94 % on CoNLL-03 (300 steps are 0.7 passes over its sentences), and to 99 to 100 % on the
  others (1.4 to 25 passes). The second phase then changes 3 to 10 % of the answers that are not O.
- Wikigold and CoNLL-03: the distant tags have an F1 of 48 and 71 on their own training sentences. On Wikigold, 39 % of
  the entity tags are doubted by heads of other sentences; 54 % of these are wrong, where 38 % of all are. Leaving them
  out helps heads on fixed vectors (table) more than a third of the steps (44.7 in place of 42.4), label smoothing of
  0.1 (43.6) or generalised cross-entropy (43.7) do. On MIT-R it changes nothing: its rules err on the same phrases
  everywhere. It is not a default yet, because it was not measured with fine-tuning.

Tried for MIT-R with linear heads on the same vectors, token F1 on dev, word by word (46.0 to 46.6 without any of them):

- The probability of a slot by a classifier of covered against uncovered words, cross-fitted over distinct words and
  divided by its mean on covered ones (Elkan and Noto): it ranks uncovered words worse than chance (area under the curve
  0.36), and O learned from it gives 35 to 42. Function words that are left out probably look like no other O.
- O from less common words (`data.uncovered=common` takes those with 61 or more mentions): 43.9 from 40 mentions, 42.2
  from 20, 39.8 from 5.
- O also where the head itself says so: 47.8. The second phase does this.
- Decoding of neighbouring slots: 48.2, now the default
  ([0087](../decisions/0087-neighbouring-slots.md)). With it, leaving out weak tags that heads of other distinct words
  doubt gives 42.7 to 47.3, class weights 48.0, a hundred times the weight decay 48.1.

Tried earlier on CoNLL-03: a share of one quarter of the weak tags O in place of all raised the F1 of the start on dev
from 69 to 75; a weight of one half gave 73, one eighth of them 74. A first phase of 600 in place of 300 steps ended at
71.9 in place of 72.9 (test). Votes of the dictionary that distant tags contain, on 800 dev sentences: 79.87 without,
80.10, 80.33 and 78.93 with weights 2, 4 and 8. A constant of -2, -1, 1 and 2 on the logit of O: 80.18, 80.03, 79.09 and
78.80. Not tried with fine-tuning, for lack of computing time: layer-wise learning rates, features of characters,
noise-robust losses, and confidence thresholds as in BOND.
"""
OLD = """\

Runs with earlier code, seed 0. Code 1 is before transitions in decoding and votes of rules
([0081](../decisions/0081-valid-tags-and-onnx-taggers.md), [0083](../decisions/0083-rules-vote-in-the-tagger.md)), code
2 before transitions between slots ([0087](../decisions/0087-neighbouring-slots.md)), which change only MIT-R.

"""


def run(cell: str, row: str, seed: int) -> dict[str, Any]:
    """One line of results."""
    folder = Path(os.environ["DRIFT_DATA"]) / cell
    began = time.monotonic()
    with TemporaryDirectory() as aside:
        source: dict[str, Any] = {"weak": "weak"}
        if row == "gold":
            source = {"label": "labels", "method": "supervised"}
        elif cell == "bc5cdr":
            source = {"rules": bc5cdr_rules(folder, Path(aside))}
        done = fit(
            folder / "train.jsonl.gz", task="tokens", test=folder / "test.jsonl.gz", seed=seed, quiet=True, **source
        )
    test = done.metrics["test"]
    simple = {name: scores["f1"] for name, scores in test["baselines"].items() if name in ("rules", "weak tags")}
    return {
        "cell": cell,
        "row": row,
        "seed": seed,
        "code": CODE[cell],
        "rules": next(iter(simple.values()), None),
        "start": None if test.get("start") is None else test["start"][0]["f1"],
        "result": test["model"]["f1"],
        **{name: test["model"][name] for name in ("precision", "recall", "accuracy")},
        "minutes": round((time.monotonic() - began) / 60, 1),
    }


def run_all(cells: list[str], seeds: list[int], rows: list[str]) -> None:
    done = {(line["cell"], line["row"], line["seed"]) for line in read_lines(LINES) if is_current(line)}
    for seed in seeds:
        for row in rows:
            for cell in cells:
                if (cell, row, seed) in done or (row, cell) == ("gold", "webpage"):  # which has no gold tags on train
                    continue
                line = run(cell, row, seed)
                add_line(LINES, line)
                print(line, flush=True)


def is_current(line: dict[str, Any]) -> bool:
    return bool(line.get("code", 1) == CODE[line["cell"]])


def render() -> None:
    lines = read_lines(LINES)
    recovered = {line["cell"]: line["f1"] for line in read_lines(RESULTS / RECOVERED) if line["part"] == "test"}
    rows: list[list[str]] = []
    old: list[list[object]] = []
    for cell in CELLS:
        weak = [line for line in lines if line["cell"] == cell and line["row"] == "weak"]
        gold = [line["result"] for line in lines if line["cell"] == cell and line["row"] == "gold"]
        parts = ("start", "result")
        newest = max((line.get("code", 1) for line in weak), default=1)
        before = [line for line in weak if line.get("code", 1) < newest]
        old += [[cell, line.get("code", 1), *(f"{100 * line[part]:.2f}" for part in parts)] for line in before]
        if new := [line for line in weak if line.get("code", 1) == newest]:
            rules = recovered.get(cell) if new[0]["rules"] is None else new[0]["rules"]
            rows.append(
                [
                    cell,
                    str(len(new)),
                    "-" if rules is None else f"{100 * rules:.2f}",
                    *(_spread([line[part] for line in new]) for part in parts),
                    str(TARGETS[cell]),
                    _spread(gold) if gold else "-",
                    f"{max(line['minutes'] for line in new):.1f}",
                ]
            )
    tables = TEXT + "\n".join(table(HEADINGS, rows)) + "\n" + OLD + "\n".join(table(OLD_HEADINGS, old)) + "\n"
    limits = LIMITS.rstrip() + "\n" + limits_table()
    sections = poor_tags_section() + few_tags_section() + speed_section()
    PAGE.write_text(tables + limits + sections, encoding="utf-8")


def _spread(values: list[float]) -> str:
    return mean_and_spread(values) if len(values) > 1 else f"{100 * values[0]:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "render"])
    parser.add_argument("--cells", default=",".join(CELLS))
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--rows", default="weak,gold")
    options = parser.parse_args()
    if options.what == "render":
        render()
    else:
        run_all(options.cells.split(","), [int(seed) for seed in options.seeds.split(",")], options.rows.split(","))


if __name__ == "__main__":
    main()
