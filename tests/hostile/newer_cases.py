# ruff: noqa: E501 - one line per kind of fault
"""More of the table of bad calls: check, curve, suggest, annotate, class names, sources, filled labels, dictionaries."""

from collections.abc import Iterator

from tests.hostile.newer_files import DICTIONARIES, rule_name

HUGE = 2**70
LONG = "x" * 300
WORDS = "--text body --label topic --encoder {encoder} --max-length 64 --quiet"
CHECK = f"check {{table}} {WORDS}"
CURVE = f"curve {{labelled}}.csv {WORDS}"
FIT = "fit {table} --text body --label topic -o {out} --model {encoder} --quiet"
# Tables that no verb can use, and names of files that no verb can write.
NO_TABLES = (
    "{missing}.csv", "{folder}", "{device}", "{empty}.csv", "{binary}.csv", "{deep}.jsonl", "{fake}.parquet", "{nul}.csv",
    "{bomonly}.csv", "{utf16}.csv", "{latin}.csv", "{onlyheader}.csv", "{onlycommas}.csv", "{book}.xlsx", "{jsonarray}.json",
    "{halfkey}.jsonl", "{hugenumber}.jsonl", "{latekey}.jsonl", "{emptyobject}.jsonl", "{pnocolumns}.parquet",
    "{pcut}.parquet", "{pnorows}.parquet", "{ptwice}.parquet",
)  # fmt: skip
NO_OUTPUTS = ("{folder}", "{file}/x.csv", "/proc/x.csv", "{out}.nothing", f"{{folder}}/{LONG}.csv", "/dev/null/x.csv")


def checks() -> Iterator[str]:
    for table in (*NO_TABLES, "{numbers}.csv", "{nestedtext}.jsonl", "{pnested}.parquet", "{pnull}.parquet"):
        yield f"check {table} --encoder {{encoder}} --max-length 64 --quiet"
    for option in (
        "--test {missing}.csv", "--test {device}", "--test {numbers}.csv", "--text nothing", "--label nothing", "--encoder nothing",
        "--encoder {folder}", "--encoder /dev/null", "--max-length 2", f"--max-length {HUGE}", "--max-length x", "--seed -1",
        f"--seed {HUGE}", "--encoding nothing", "--encoding hex", "--task nothing", "--task nodes", "--task os:path",
        "--task {sysexit}:Task", "--nothing", "--page {folder}", "--page /proc/x.html", "--page {file}/x.html",
        f"--page {{folder}}/{LONG}.html", "--page /dev/full/x.html",
    ):  # fmt: skip
        yield f"{CHECK} {option}"
    for out in NO_OUTPUTS:
        yield f"check {{table}} {WORDS} -o {out}"
    for sentences in ("{table}", "{badtags}.jsonl", "{uneven}.jsonl", "{binary}.conll", "{broken}.jsonl"):
        yield f"check {sentences} --task tokens --quiet"


def curves() -> Iterator[str]:
    for table in (
        *NO_TABLES,
        "{numbers}.csv",
        "{nolabels}.csv",
        "{allsame}.csv",
        "{fewlabels}.csv",
        "{eachown}.csv",
        "{emptytexts}.csv",
    ):
        yield f"curve {table} --encoder {{encoder}} --max-length 64 --quiet"
    for option in (
        "--text nothing", "--label nothing", "--encoder nothing", "--max-length 2", f"--max-length {HUGE}", "--seed -1",
        f"--seed {HUGE}", "--encoding nothing", "--task tokens", "--task nodes", "--task nothing", "-o {folder}",
        "-o {out}.txt", "-o {out}", "-o /proc/x.png", "-o {file}/x.png", f"-o {{folder}}/{LONG}.png",
    ):  # fmt: skip
        yield f"{CURVE} {option}"


def suggestions() -> Iterator[str]:
    for table in (*NO_TABLES, "{numbers}.csv", "{graph}"):
        yield f"suggest {{run}} {table}"
    for option in (
        "-n -1", "-n x", "--seed -1", f"--seed {HUGE}", "--text nothing", "--label nothing",
        "--encoding nothing", "--edges {table}", "--edges {missing}.csv",
    ):  # fmt: skip
        yield f"suggest {{run}} {{table}} {option} -o {{out}}.csv"
    for out in NO_OUTPUTS:
        yield f"suggest {{run}} {{table}} -o {out}"


def predictions() -> Iterator[str]:
    for table in (*NO_TABLES, "{numbers}.csv"):
        yield f"predict {{run}} {table} -o {{out}}.csv"
        yield f"evaluate {{run}} {table}"
    for out in (*NO_OUTPUTS, "{run}/metrics.json", "{run}"):
        yield f"predict {{run}} {{table}} -o {out} --force"
    yield "predict {run} {table} -o {file}"
    for option in ("--abstain-below -1", "--abstain-below 1e400", "--abstain-below x", "--encoding hex"):
        yield f"predict {{run}} {{table}} -o {{out}}.csv --force --spreadsheet {option}"


def annotations() -> Iterator[str]:
    base = "annotate {table} --text body --label topic --no-browser --quiet --model {encoder}"
    for table in (*NO_TABLES, "{numbers}.csv"):
        yield f"annotate {table} --classes a,b --no-browser --model {{encoder}} -o {{out}}.csv"
    for option in (
        "--classes a,a", "--text nothing", "--label nothing", "--weak nothing", "--weak body=nothing", "--rules {missing}.yaml",
        "--rules {bomb}.yaml", "--rules {sysexit}", "--rules {tokenrules}", "--rules {device}", "--from {missing}", "--from {folder}",
        "--from {file}", "--guidelines {missing}.yaml", "--guidelines {guidelist}.yaml", "--guidelines {guidenumber}.yaml",
        "--guidelines {guidenested}.yaml", "--guidelines {guidetext}.yaml", "--guidelines {bomb}.yaml", "--guidelines {device}",
        "--guidelines {binary}.yaml", "--guidelines {folder}", "--model nothing", "--model {folder}", "--audit-every -1",
        "--audit-every x", "--port -1", "--port 70000", "--port x", "--seed -1", f"--seed {HUGE}", "--encoding nothing",
        "--encoding hex", "--nothing",
    ):  # fmt: skip
        yield f"{base} -o {{out}}.csv {option}"
    for out in (*NO_OUTPUTS, "/dev/null"):
        yield f"{base} -o {out}"
    yield "annotate {table} --text body --label topic --no-browser --model {encoder}"
    yield "annotate {table} --text body --label --no-browser --model {encoder} -o {out}.csv"
    yield "annotate {table} --text body --classes , --no-browser --model {encoder} -o {out}.csv --weak nothing"


def classes() -> Iterator[str]:
    for names in (
        ",", "a", "a,a", "a,,a", "{missing}.yaml", "{bomb}.yaml", "{deep}.yaml", "{recursive}.yaml", "{empty}.yaml",
        "{binary}.yaml", "{tagged}.yaml", "{classnumber}.yaml", "{classnull}.yaml", "{classnames}.yaml", "{classnested}.yaml",
          "{classone}.yaml", "{classtwice}.yaml", "{classempty}.yaml",
        "{classblank}.json", "{classbroken}.json",  f"{LONG}.yaml",
    ):  # fmt: skip
        yield f"fit {{table}} --text body -o {{out}} --model {{encoder}} --classes {names}"
        yield f"label {{table}} --text body --model {{encoder}} --classes {names} -o {{out}}.csv"
    for option in ("--gold x", "--rules {missing}.yaml", "--model nothing"):
        yield f"{FIT} --classes money,sport {option}"
    yield "fit --task nodes --graph {graph} --classes a,b -o {out}"
    yield "label {table} --text body --classes a,b --rules {rules}"
    yield "label {table} --text body"
    yield "label {sentences} --task tokens --classes a,b"


def weak_sources() -> Iterator[str]:
    for weak in (
        "nothing", "gpt=nothing", "gpt=", "=sure", "gpt=sure", "gpt=over", "gpt=negative", "gpt=nan", "gpt=gpt", "gpt=sure=over",
        "*", "nothing*", "p_*", "q_*", "blank", "same", "gpt=blank=", "text*",
    ):  # fmt: skip
        yield f"fit {{weak}}.csv -o {{out}} --model {{encoder}} --weak {weak}"
    for weak in ("gpt", "list", "huge", "deep", "gpt=list", "gpt=huge", "gpt=deep"):
        yield f"fit {{weakjson}}.jsonl -o {{out}} --model {{encoder}} --weak {weak}"
    for gold in ("x", "''", "train,measure"):
        yield f"fit {{weak}}.csv -o {{out}} --model {{encoder}} --weak gpt --gold {gold}"


def filled() -> Iterator[str]:
    for labels in (
        *NO_TABLES, "{filledinf}.csv", "{filledword}.csv", "{filledother}.csv", "{filledblank}.csv", "{fillednone}.csv",
        "{filledtext}.csv", "{filledhuge}.jsonl", "{filledlist}.jsonl", "{numbers}.csv",
    ):  # fmt: skip
        yield f"fit {{table}} --text body --label topic -o {{out}} --model {{encoder}} --labels {labels}"
    for start in (
        "{missing}",
        "{folder}",
        "{file}",
        "{device}",
        "/proc",
        LONG,
        "{run}/model",
        "{run} --resume",
        "{run} --config {config}.yaml",
    ):
        yield f"fit --from {start} -o {{out}}"
    yield "fit --from {run} -o {run}"
    for config in ("labels", "split", "encoding", "scaling"):
        yield f"fit --config {{config{config}}}.yaml -o {{out}}"
    yield "fit --from {run} --task nodes -o {out}"
    yield "fit --from {run} --labels {missing}.csv -o {out}"


def settings() -> Iterator[str]:
    for option in (
        "--minutes inf", "--minutes -inf", "--minutes 1e400", "--minutes x", "--minutes 0.01", "--precision float16", "--precision fp16",
        "--precision x", "--labels-are nothing", "--seeds 1.5", "--cluster tcp://x:1", "--jobs 0", "--trials 0", "--split nothing",
        "--set training.precision=fp64", "--set training.minutes=-1", "--set training.until=x", "--set model.train_layers=-1",
        "--finetune --set model.train_layers=99", "--set method.prior=x", "--set method.prior_noise=-1", "--set method.coupling=x",
        "--set data.train_rows=0", "--set data.gold=[x]", "--set data.labels={a:1}", "--unlabeled {numbers}.csv",
        "--dev {numbers}.csv", "--test {onlyheader}.csv", 
    ):  # fmt: skip
        yield f"{FIT} {option}"
    for table in (*NO_TABLES, "{numbers}.csv", "{wide}.csv", "{nestedtext}.jsonl", "{nestedlabel}.jsonl", "{listlabel}.jsonl", "{nulltext}.jsonl", "{emptytexts}.csv", "{pnested}.parquet", "{pbinary}.parquet", "{pnull}.parquet", "{longname}.csv"):  # fmt: skip
        yield f"fit {table} -o {{out}} --model {{encoder}}"


def dictionaries() -> Iterator[str]:
    for name in (*map(rule_name, DICTIONARIES), "ruletypelist", "rulefolder", "ruleup"):
        yield f"label {{sentences}} --task tokens --rules {{{name}}}.yaml -o {{out}}.jsonl"


def others() -> Iterator[str]:
    for name in (
        "nothing",
        "../x",
        "/etc",
        LONG,
        "a/b",
        "~nosuchuser/x",
        "{folder}",
        "default --source nothing",
        "default --nothing",
        "",
    ):
        yield f"encoders get {name}".strip()
    yield "encoders nothing"
    yield "cache nothing"
    yield "cache clear nothing"
    yield "cache --nothing"
    yield from (
        "check",
        "curve",
        "suggest",
        "annotate",
        "label",
        "evaluate",
        "predict",
        "report",
        "nothing",
        "--nothing",
    )
    yield "demo topics --nothing"
    yield "report {run} --nothing"
    yield "tsne {run} -o {folder}"


def newer() -> list[str]:
    parts = (
        checks,
        curves,
        suggestions,
        predictions,
        annotations,
        classes,
        weak_sources,
        filled,
        settings,
        dictionaries,
        others,
    )
    return list(dict.fromkeys(case for part in parts for case in part()))
