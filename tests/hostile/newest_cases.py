# ruff: noqa: E501 - one line per kind of fault
"""More of the table of bad calls: serving, explanations, going on from a run, sharing, folders of tables, comparing."""

from collections.abc import Iterator

from tests.hostile.newer_cases import FIT, HUGE, LONG, NO_OUTPUTS, NO_TABLES

NO_RUNS = (
    "{missing}", "{folder}", "{file}", "{full}", "{device}", "/proc", "/dev/null", LONG, "~nosuchuser/x", "{run}/model", "{run}/metrics.json",
    "{encoder}", "{table}",
)  # fmt: skip
NO_PARTS = ("{folder}", "{full}", "{noparts}", "{mixedparts}", "/proc/self")


def runs() -> Iterator[str]:
    """Every verb that opens a run, on what is none."""
    for run in NO_RUNS:
        yield f"serve {run} --port 0"
        yield f"predict {run} {{table}} -o {{out}}.csv --explain"
        yield f"predict {run} {{parts}} -o {{out}}"
        yield f"evaluate {run} {{table}}"
        yield f"suggest {run} {{table}} -o {{out}}.csv"
        yield f"report {run} --explain {{table}}"
        yield f"push {run} anna/topics --dry-run"
        yield f"compare {run} {{run}}"
        yield f"compare {{run}} {{run}} --baseline {run}"
        yield f"tsne {run} -o {{out}}"
        yield f"fit --from {run} --add {{table}} -o {{out}}"
        yield f"annotate {{table}} --text body --label topic --no-browser --quiet --model {{encoder}} --from {run} -o {{out}}.csv"


def serving() -> Iterator[str]:
    for option in (
        "--port -1", "--port 65536", "--port x", "--host nothing.invalid", "--host 203.0.113.1", "--host not_an_address!", "--max-rows 0",
        "--max-rows x", "--max-bytes 0", "--max-bytes -5", "--timeout 0", "--timeout -1", "--timeout nan", "--timeout x", "--nothing", "--int8",
        f"--host {LONG}", f"--max-rows {'9' * 400}x",
    ):  # fmt: skip
        yield f"serve {{run}} --port 0 {option}" if "--port" not in option else f"serve {{run}} {option}"
    yield "serve"


def explaining() -> Iterator[str]:
    for table in (*NO_TABLES, "{numbers}.csv", "{graph}"):
        yield f"predict {{run}} {table} -o {{out}}.csv --explain"
        yield f"report {{run}} --explain {table}"
    for out in NO_OUTPUTS:
        yield f"predict {{run}} {{table}} -o {out} --explain --force"


def going_on() -> Iterator[str]:
    for table in (*NO_TABLES, "{numbers}.csv", "{graph}", "{nestedlabel}.jsonl"):
        yield f"{FIT} --add {table}"
        yield f"fit --from {{run}} --add {table} -o {{out}}"
    for option in (
        "--from {run}", "--from {run} --add {table} --task tokens", "--from {run} --labels {table} --labels {missing}.csv",
        "--from {run} --add {table} --resume", "--add {table} --task nodes", "--labels {filledinf}.csv --labels {filledother}.csv",
        "--seeds 0", "--seeds x", "--seeds auto", "--set seeds=0", "--set seeds=x", "--set seeds=[1]", f"--set seeds={HUGE}", "--set seeds=null",
    ):  # fmt: skip
        yield f"{FIT} {option}" if "--from" not in option else f"fit {option} -o {{run}}"


def sharing() -> Iterator[str]:
    for repository in ("", "name", "a/b/c", "/name", "user/", "/", LONG):
        yield f"push {{run}} {repository} --dry-run".replace("  ", " ")
    yield "push {run} anna/topics --nothing"
    yield "push"


def folders() -> Iterator[str]:
    for parts in NO_PARTS:
        yield f"predict {{run}} {parts} -o {{out}}/deep/x --jobs 1"
        yield f"label {parts} --rules {{rules}} --text body -o {{out}}/deep/x --jobs 1"
    for option in (
        "--jobs 0",
        "--jobs -1",
        "--jobs x",
        "--task x.py:T",
        "--model x",
        "--edges {table}",
        "--abstain-below 2",
    ):
        yield f"predict {{run}} {{parts}} -o {{out}} {option}"
    for out in ("{parts}", "{full}", "{file}", "{file}/x", "/proc/x", "/dev/null", f"/tmp/{LONG}"):
        yield f"predict {{run}} {{parts}} -o {out} --jobs 1"
        yield f"label {{parts}} --rules {{rules}} --text body -o {out} --jobs 1"
    for option in ("--jobs 2", "--cluster tcp://127.0.0.1:1", "--cluster ray"):
        yield f"predict {{run}} {{table}} -o {{out}}.csv {option}"
    for cluster in ("nothing", "tcp://", "http://x", "tcp://127.0.0.1:99999999", "://"):
        yield f"predict {{run}} {{parts}} -o {{out}}/x --cluster {cluster}".replace("{out}/x", "{full}")
    yield "label {parts} --rules {rules} --text body"
    yield "label {parts} --classes money,sport --text body -o {out}"
    yield "label {parts} --rules {missing}.yaml --text body -o {out}"
    yield "label {parts} --rules {folder} --text body -o {out}"


def comparing() -> Iterator[str]:
    for out in (
        "{folder}",
        "{file}/x.md",
        "/proc/x.md",
        "{out}.nothing",
        "{out}",
        f"{{folder}}/{LONG}.md",
        "/dev/null/x.md",
        "/dev/full",
    ):
        yield f"compare {{run}} {{run}} -o {out}"
    for option in (
        "--baseline nothing",
        "--task nothing",
        "--task {missing}.py:T",
        "--task {sysexit}:Task",
        "--nothing",
    ):
        yield f"compare {{run}} {{run}} {option}"
    yield "compare"
    for option in (
        "--cells nothing",
        "--methods nothing",
        "--models nothing",
        "--seeds 0",
        "--seeds x",
        "--jobs -1",
        "--profile nothing",
    ):
        yield f"bench semi --dry-run -o {{out}} {option}"
    yield "bench nothing --dry-run"


def tagging() -> Iterator[str]:
    base = "annotate {sentences} --task tokens --no-browser --quiet --model {encoder}"
    for option in (
        "--classes a,a", "--classes {missing}.yaml", "--tokens nothing", "--label nothing", "--text nothing",
        "--rules {rules}", "--rules {bomb}.yaml", "--rules {sysexit}", "--from {run}", "--from {missing}", "--model nothing", "--port 70000",
        "--seed -1", f"--seed {HUGE}", "--guidelines {guidelist}.yaml", "--audit-every -1", "--encoding nothing", "--weak nothing",
    ):  # fmt: skip
        yield f"{base} -o {{out}}.jsonl {option}"
    for table in (*NO_TABLES[:12], "{badtags}.jsonl", "{uneven}.jsonl", "{binary}.conll", "{broken}.jsonl", "{table}"):
        yield f"annotate {table} --task tokens --classes X,Y --no-browser --model {{encoder}} -o {{out}}.jsonl"
    for option in ("--task nodes", "--task nothing", "--task os:path"):
        yield f"annotate {{table}} --no-browser --model {{encoder}} -o {{out}}.csv {option}"


def newest() -> list[str]:
    parts = (runs, serving, explaining, going_on, sharing, folders, comparing, tagging)
    return list(dict.fromkeys(case for part in parts for case in part()))
