"""Write docs/results/speed.md from what other benchmarks measured: `python benchmarks/speed.py`.

Reads step.json, finetune_step.json, predict.json, startup.json, fit_profile.json, coupling.jsonl and
finetune.jsonl in docs/results; rows whose file or entry is missing are named as not measured.
"""

import json
from typing import Any

from coupling import ENCODER
from coupling import LINES as COUPLED
from drift.runs.comparing.statistics import paired_t
from drift.tasks.scoring import mean_and_spread
from finetune import SECTION, current, render
from recorded import RESULTS, read_lines, table

PAGE = RESULTS / "speed.md"
STUDENTS = {"mlp": "an MLP of 10,000 weights", "encoder": ENCODER, "bge-small": "bge-small-en-v1.5"}
WAYS = {
    "bfloat16": "all layers in bfloat16",
    "lora": "LoRA in all layers, bfloat16",
    "upper": "the upper third on stored states, bfloat16",
}
SHARED, MEMORY = "drift shared / self-training", 1.05  # the target of peak memory
SETFIT = 3  # times as fast as SetFit, the target
BGE = "bge-small-en-v1.5"
Row = tuple[str, str, str, str, str]  # what, relative to, ratio, target, command

HEAD = """\
# Results: speed

Written by `python benchmarks/speed.py`. Ratios of CPU time on one thread: other load on the machine affects both sides,
which are measured in alternation, but not equally: under load, small steps lose more than large ones. Medians, with
quartiles where a benchmark has them.
"""


def loaded(name: str) -> Any:
    """A JSON file of the results; empty if there is none."""
    file = RESULTS / name
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def judged(value: float, target: float, text: str = "") -> tuple[str, str]:
    """The ratio, and its upper bound with a verdict."""
    return text or f"{value:.2f}", f"{target:g}" + ("" if value <= target else ", missed")


def of_steps() -> list[Row]:
    rows: list[Row] = []
    for name, title in STUDENTS.items():
        if not (student := loaded("step.json").get(name)):
            continue
        command = f"step.py --students {name}"
        base, shared, exact = (
            "a step of self-training",
            student["ratios"][SHARED],
            student["ratios"]["drift / self-training"],
        )
        goal = student["targets"][SHARED]["target"]
        quartiles = "{median:.2f} ({q1:.2f} to {q3:.2f})"
        rows.append(
            (
                f'`coupling="shared"`, {title}',
                base,
                *judged(shared["median"], goal, quartiles.format(**shared)),
                command,
            )
        )
        rows.append((f'`coupling="differentiable"`, {title}', base, quartiles.format(**exact), "", command))
        memory = student["peak_megabytes"]
        more = memory["drift shared"] / memory["self-training"]
        rows.append(
            (f'peak memory of a step, `coupling="shared"`, {title}', base, *judged(round(more, 2), MEMORY), command)
        )
    return rows


def of_runs() -> list[Row]:
    rows: list[Row] = []
    for state, what in (
        ("warm", "`drift fit`, 15,000 texts whose vectors are cached"),
        ("cold", "the same, empty cache, beside the vectors"),
    ):
        if found := loaded("fit_profile.json").get(state):
            seconds = found["total"] - found["parts"].get("computing vectors", 0.0)
            rows.append(
                (what, f"{found['target']:g} seconds", *judged(seconds / found["target"], 1), f"fit_profile.py {state}")
            )
    predicted = loaded("predict.json")
    for way, found in predicted.get("ways", {}).items():
        if way != "sentence-transformers":
            what = f"texts per second of {'' if way.startswith('ONNX') else '`drift predict`, '}{way}"
            what += f", {predicted['texts']} texts a call, agreement {100 * found['agreement']:.1f} %"
            middle, low, high = found["speed_of_peer"]
            rows.append(
                (
                    what,
                    "sentence-transformers with scikit-learn",
                    f"{middle:.2f} ({low:.2f} to {high:.2f})",
                    "",
                    "predict.py",
                )
            )
    if found := loaded("startup.json"):
        rows.append(("`drift --help`", "a bare interpreter", *judged(found["ratio"], found["target"]), "startup.py"))
    return rows


def of_fine_tuning() -> list[Row]:
    """Steps of fine-tuning."""
    quartiles = "{median:.2f} ({q1:.2f} to {q3:.2f})"
    ways = loaded("finetune_step.json").get("ways", {})
    return [
        (f"a step of fine-tuning {BGE}, {title}", "all layers in float32", ratio, "", "finetune_step.py")
        for way, title in WAYS.items()
        if way in ways and (ratio := quartiles.format(**ways[way]["of_float32"]))
    ]


def beside_setfit() -> list[Row]:
    """How many times as fast as SetFit a way is at SetFit's best accuracy."""
    points = {line["way"]: line["points"] for line in current() if (line["cell"], line["draw"]) == ("agnews", 0)}
    if "setfit" not in points:
        return []
    best = max(points["setfit"], key=lambda point: point["accuracy"])
    rows: list[Row] = []
    for way in [way for way in ("frozen", "upper") if way in points]:
        reached = [p["seconds"] for p in points[way] if p["accuracy"] >= best["accuracy"]]
        faster = best["seconds"] / reached[0] if reached else 0.0
        goal = f"at least {SETFIT:g}" + ("" if faster >= SETFIT else ", missed")
        what = f"speed to SetFit's best accuracy ({100 * best['accuracy']:.1f}) on agnews below, {way}"
        rows.append((what, "SetFit", f"{faster:.1f}" if reached else "not reached", goal, "finetune.py"))
    return rows


def missing() -> list[str]:
    """What has no row."""
    names = [f"steps of {title}" for name, title in STUDENTS.items() if name not in loaded("step.json")]
    names += [
        f"`drift fit` with a {state} cache" for state in ("warm", "cold") if state not in loaded("fit_profile.json")
    ]
    names += [] if loaded("predict.json") else ["`drift predict` beside sentence-transformers"]
    return names + ([] if loaded("startup.json") else ["`drift --help`"])


def profile() -> list[str]:
    """Seconds of the parts of a run."""
    states = {state: found for state, found in loaded("fit_profile.json").items() if found}
    parts = list(dict.fromkeys(part for found in states.values() for part in found["parts"]))
    rows = [[part, *(f"{found['parts'].get(part, 0.0):.2f}" for found in states.values())] for part in parts]
    rows.append(["all", *(f"{found['total']:.2f}" for found in states.values())])
    return [
        "## Where the seconds of `drift fit` go",
        "",
        "AG News with 40 labels and 15,000 texts, 2,000 test texts, ten heads on bge-small-en-v1.5: seconds of CPU",
        "time of the whole command, from the start of the interpreter to the report.",
        "",
        *table(["part", *(f"{state} cache" for state in states)], rows),
    ]


def precision() -> list[str]:
    """Accuracy of fine-tuning in bfloat16 and in float32."""
    runs = {
        (line["cell"], line["seed"]): line["accuracy"][0]
        for line in read_lines(COUPLED)
        if line["coupling"] == "differentiable" and line["cell"] in ("encoder-30", "encoder-30-float32")
    }
    seeds = [seed for cell, seed in sorted(runs) if cell == "encoder-30" and ("encoder-30-float32", seed) in runs]
    half, whole = ([runs[cell, seed] for seed in seeds] for cell in ("encoder-30", "encoder-30-float32"))
    lines = ["## bfloat16", ""]
    if len(half) < 2:
        return [*lines, "Not measured yet: the accuracy in bfloat16 beside float32."]
    test, command = paired_t(half, whole), "python benchmarks/coupling.py run --cells encoder-30 encoder-30-float32"
    return [
        *lines,
        f"{ENCODER} fine-tuned on AG News, 30 labels per class, two of three layers, {len(half)} seeds, 500 test",
        f"texts: test accuracy {mean_and_spread(half)} in bfloat16 and {mean_and_spread(whole)} in float32; difference",
        f"{test.gap()} points, p {test.p_text()}. By `{command}`,",
        "on a processor that computes bfloat16.",
    ]


def main() -> None:
    rows = [*of_steps(), *of_fine_tuning(), *beside_setfit(), *of_runs()]
    absent = [f"Not measured yet: {'; '.join(missing())}.", ""] if missing() else []
    commands = [(*row[:4], f"`python benchmarks/{row[4]}`") for row in rows]
    content = [
        HEAD,
        "## Ratios",
        "",
        *table(["what", "relative to", "ratio", "target", "command"], commands),
        "",
        *absent,
        *profile(),
        "",
        *precision(),
        "",
        SECTION,
    ]
    PAGE.write_text("\n".join(content) + "\n", encoding="utf-8")
    render()


if __name__ == "__main__":
    main()
