# ruff: noqa: E501 - one line per kind of fault
"""The table of bad calls: verbs, tasks and files, each with what is wrong about it.

A case is a command line. In it, {name} is a file or folder of `tests.hostile.conftest`.
"""

from collections.abc import Iterator

HUGE = 2**70
LONG = "x" * 300
FIT = "fit {table} --text body --label topic -o {out} --model {encoder} --quiet"
NODES = "fit --task nodes --graph {graph} -o {out} --quiet"
TOKENS = "fit {sentences} --task tokens -o {out} --model {encoder} --quiet --set model.max_length=32"

# Values that are wrong for any number, and for any number above 0.
NOT_NUMBERS = ("abc", "[1]", "{a: 1}", "null-ish", ".nan", ".inf", str(-HUGE), "1e400", "''", "2020-01-01")
NOT_NAMES = ("[text]", "{a: b}", "[[a]]", "7.5", "true")
INTEGERS = (
    "training.seed",
    "training.steps",
    "training.initial_steps",
    "training.batch_size",
    "training.window",
    "training.evaluate_every",
    "training.checkpoint_every",
    "training.keep_checkpoints",
    "training.accumulation",
    "training.threads",
    "training.warmup_steps",
    "seeds",
    "model.max_length",
    "data.train_rows",
)
RATES = ("training.learning_rate", "training.weight_decay", "training.tolerance", "method.alpha", "method.tau")
TOO_MUCH = (
    "training.seed=99999999999999999999999",
    "training.threads=100000",
    "training.batch_size=1000000001",
    "training.unlabeled_batch_size=1000000001",
    "training.accumulation=99999999999",
    "training.predictions_at=[-1]",
    "training.predictions_at=[7000]",
    "training.predictions_at=[a]",
    "training.predictions_at=x",
    "model.maps=1000000000",
    "model.windows=[1000000000]",
    "model.windows=[]",
    "model.max_length=1000000000",
    "seeds=1000000000",
)


def sets(base: str) -> Iterator[str]:
    """One setting that is wrong."""
    for name in INTEGERS:
        for value in NOT_NUMBERS:
            yield f"{base} --set {name}={value.replace(' ', '')}"
    for name in RATES:
        for value in ("abc", "[1]", ".nan", ".inf", "-1", "{a:1}", "-1e400"):
            yield f"{base} --set {name}={value}"
    for name in ("task", "method.name", "model.name"):
        for value in NOT_NAMES:
            yield f"{base} --set {name}={value.replace(' ', '')}"
    for group in ("data", "model", "method", "training"):
        for value in ("x", "[1,2]", "3"):
            yield f"{base} --set {group}={value}"
    for unknown in (
        "nothing=1",
        "training.stepz=3",
        "a.b.c.d=1",
        "=1",
        "novalue",
        "training=null",
        "...=1",
        "model.=x",
    ):
        yield f"{base} --set {unknown}"
    for pair in TOO_MUCH:
        yield f"{base} --set {pair}"


def fits() -> Iterator[str]:
    yield from sets(FIT)
    for table in ("{missing}.csv", "{folder}", "{device}", "{empty}.csv", "{binary}.csv", "{ragged}.csv", "{noext}"):
        yield f"fit {table} -o {{out}} --model {{encoder}}"
    for table in ("{nul}.csv", "{quote}.csv", "{twice}.csv", "{headless}.csv", "{nolabels}.csv", "{oneclass}.csv"):
        yield f"fit {table} -o {{out}} --model {{encoder}}"
    for table in (
        "{deep}.jsonl",
        "{broken}.jsonl",
        "{list}.jsonl",
        "{surrogate}.jsonl",
        "{fake}.parquet",
        "{fake}.csv.gz",
    ):
        yield f"fit {table} -o {{out}} --model {{encoder}}"
    for option in (
        "--text nothing", "--label nothing", "--weak nothing", "--split nothing", "--encoding nothing", "--encoding hex",
        "--method nothing", "--method nothing.py:X", "--method os:system", "--task nothing",
        "--task os:path", "--task {sysexit}:Task", "--task {rules}", "--preset nothing", "--profile nothing",
        "--preset agnews --profile x", "--model ~nosuchuser/x", "--model {folder}", "--model ./nothing", "--model /dev/null",
        "--model {missing}/x", "--rules {missing}.yaml", "--rules {bomb}.yaml", "--rules {deep}.yaml",
        "--rules {recursive}.yaml", "--rules {device}", "--rules {binary}.yaml", "--rules {sysexit}", "--rules {folder}",
        "--config {missing}.yaml", "--config {bomb}.yaml", "--config {listbomb}.yaml", "--config {deep}.yaml",
        "--config {recursive}.yaml", "--config {device}", "--config {binary}.yaml", "--config {listed}.yaml",
        "--config {groups}.yaml", "--config {names}.yaml", "--config {folder}", "--config {tagged}.yaml",
        "--dev {missing}.csv", "--test {missing}.csv", "--unlabeled {missing}.csv", "--dev {device}", "--seed -1",
        f"--seed {HUGE}", "--seed x", "--seeds 0", f"--seeds {HUGE}", "--minutes 0", "--minutes nan", "--minutes -3",
        "--labels-per-class 0", f"--labels-per-class {HUGE}", "--labels-are x", "--trials 3", "--jobs 2", "--tune --trials 0",
        "--tune", "--cluster x", "--precision x", "--graph Cora", "--edges {table}", "--tokens text", "--nothing",
        "--weak label --weak text", "--method drift --set method.prior=[1]", "--set method.prior={a:1}", "--resume",
    ):  # fmt: skip
        yield f"{FIT} {option}"
    for out in (
        "{file}",
        "{file}/x",
        "/proc/x",
        "/dev/null",
        "/dev/null/x",
        f"{{folder}}/{LONG}",
        "{full}",
        "{folder}",
    ):
        yield f"fit {{table}} -o {out} --model {{encoder}}"
    yield f"fit {LONG}.csv -o {{out}}"
    yield "fit -o {out}"
    yield "fit --resume -o {missing}"
    yield "fit --resume -o {folder}"
    yield "fit --config {names}.yaml -o {out}"


def nodes() -> Iterator[str]:
    for setting in (
        "model.hidden=1000000000", "model.hidden=0", "model.hidden=x", "model.dropout=1", "model.dropout=x",
        "model.neighbours=0", "model.scaling=x", "model.name=[gcn]", "model.recipe=x", "model.recipe={hidden:99999999999}",
        "model.recipe={nothing:1}", "data.train=[a]", "seeds=100000000", "data.test_nodes=-1", "method.alpha=2",
        "training.threads=100000", "training.seed=99999999999999999999999",
    ):  # fmt: skip
        yield f"{NODES} --set {setting} --model grand" if "recipe" in setting else f"{NODES} --set {setting}"
    for graph in (
        "{missing}.npz", "{missing}.pt", "Nothing", "{folder}", "{binary}.npz", "{binary}.pt", "{badcsr}.npz", "{pickled}.npz",
        "{badcoo}.pt", "{meta}.pt", "{quantised}.pt", "{complex}.pt", "{code}.pt", "{number}.pt", "{noedges}.pt", "{table}",
        "{device}", "{nan}.pt", "{farnode}.pt", "{floatedges}.pt", "{zerosized}.pt",
    ):  # fmt: skip
        yield f"fit --task nodes --graph {graph} -o {{out}}"
    for option in (
        "--edges {table}", "--edges {missing}.csv", "--model nothing", "--model {sysexit}:make", "--model {rules}:x",
        "--model {folder}/missing.py:x", "--model os:getcwd", "--text x", "--tokens x", "--weak x", "--rules {rules}",
        "--method uda", "--labels-per-class 0", "--dev {table}",
    ):  # fmt: skip
        yield f"{NODES} {option}"


def tokens() -> Iterator[str]:
    for setting in (
        "data.scheme=x",
        "data.uncovered=x",
        "model.layers=0",
        "model.layers=99",
        "model.name=[a]",
        "seeds=0",
    ):
        yield f"{TOKENS} --set {setting}"
    for source in (
        "{missing}.jsonl",
        "{table}",
        "{broken}.jsonl",
        "{badtags}.jsonl",
        "{uneven}.jsonl",
        "{binary}.conll",
    ):
        yield f"fit {source} --task tokens -o {{out}} --model {{encoder}}"
    for rules in ("{missing}.yaml", "{bomb}.yaml", "{gazdevice}.yaml", "{gazmissing}.yaml", "{rules}", "{sysexit}"):
        yield f"label {{sentences}} --task tokens --rules {rules} -o {{out}}.jsonl"
    for option in (
        "--column tokens",
        "--text nothing",
        "--label nothing",
        "--ties x",
        "--encoding nothing",
    ):
        yield f"label {{sentences}} --task tokens --rules {{tokenrules}} -o {{out}}.jsonl {option}"
    yield "label {sentences} --task tokens --rules {tokenrules} -o {out}.csv"
    yield "label {sentences} --task tokens --rules {tokenrules} -o {out}.jsonl --column \t"


def labels() -> Iterator[str]:
    base = "label {table} --rules {rules}"
    for option in (
        "--column \t", "--column body", "--text nothing", "--label nothing", "--encoding nothing", "--ties x", "--seed -1",
        "--seed x", "--jobs 0", "--jobs -5", "--jobs x", "-o {folder}", "-o {out}.txt", "-o /proc/x.csv", "-o {file}/x.csv",
        "-o /dev/full/x.csv", "--task nodes", "--nothing", f"-o {{folder}}/{LONG}.csv",
    ):  # fmt: skip
        yield f"{base} {option}"
    for rules in (
        "{missing}.yaml", "{bomb}.yaml", "{deep}.yaml", "{recursive}.yaml", "{device}", "{binary}.yaml", "{empty}.yaml",
        "{sysexit}", "{folder}", "{listed}.yaml", "{tokenrules}", "{norules}.yaml", "{syntax}.py",
    ):  # fmt: skip
        yield f"label {{table}} --rules {rules}"
    for table in (
        "{missing}.csv",
        "{folder}",
        "{device}",
        "{empty}.csv",
        "{binary}.csv",
        "{deep}.jsonl",
        "{fake}.parquet",
    ):
        yield f"label {table} --rules {{rules}}"


def uses() -> Iterator[str]:
    """Verbs on finished runs."""
    for run in ("{missing}", "{folder}", "{file}", "{device}", "/proc", LONG, "~nosuchuser/x"):
        for verb in (
            "predict {} {{table}} -o {{out}}.csv",
            "evaluate {} {{table}}",
            "report {}",
            "compare {}",
            "tsne {}",
        ):
            yield verb.format(run).replace("{{", "{").replace("}}", "}")
        yield f"suggest {run} {{table}}"
    for option in (
        "--text nothing",
        "--abstain-below 2",
        "--abstain-below nan",
        "--model x",
        "--task nothing",
        "--edges x",
    ):
        yield f"predict {{run}} {{table}} -o {{out}}.csv {option}"
        yield f"evaluate {{run}} {{table}} {option}"
    for out in ("{folder}", "{file}/x.csv", "{out}.txt", "/proc/x.csv", f"{{folder}}/{LONG}.csv", "{out}.nothing"):
        yield f"predict {{run}} {{table}} -o {out}"
    for table in (
        "{missing}.csv",
        "{device}",
        "{empty}.csv",
        "{binary}.csv",
        "{deep}.jsonl",
        "{fake}.parquet",
        "{graph}",
    ):
        yield f"predict {{run}} {table} -o {{out}}.csv"
        yield f"evaluate {{run}} {table}"
    for out in ("/proc/x.md", "{folder}", "{out}.nothing", "{file}/x.md", f"{{folder}}/{LONG}.md"):
        yield f"compare {{run}} -o {out}"
    yield "compare {run} {missing}"
    yield "compare"
    yield "compare {run} --baseline {missing}"
    yield "evaluate {run} {table} --label nothing"
    yield "evaluate {run} {nolabels}.csv"
    yield "suggest {run} {table} -n 0"
    yield "tsne {run}"
    for verb in (
        "bench nothing",
        "bench table1 --profile nothing",
        "bench table1 --cells nothing",
        "encoders get nothing",
    ):
        yield f"{verb} -o {{out}}" if verb.startswith("bench") else verb
    yield "demo nothing"
    yield "datasets --nothing"


def every() -> list[str]:
    return list(dict.fromkeys([*fits(), *nodes(), *tokens(), *labels(), *uses()]))
