"""What the paper shows: every table and figure, with the cells and methods it is made of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from drift.errors import ConfigError
from drift.paper.bench.paper import paper_numbers
from drift.paper.presets import PROFILES
from drift.settings import nearest

RINGS_AT = (0, 100, 200, 300)
ALPHAS, TAUS = (0.7, 0.8, 0.9, 0.95, 0.99), (0.1, 0.3, 0.5, 0.7, 0.9)


@dataclass(frozen=True)
class MethodRow:
    """A line of a table. paper: what the paper calls it there, if it has it. settings: over those of the preset.

    gold: learn from every label there is. kind: of model, where the table has several.
    """

    title: str
    method: str
    paper: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    gold: bool = False
    kind: str | None = None


@dataclass(frozen=True)
class Part:
    """What a profile runs of a table: cells, and rows by title; None are all."""

    cells: Sequence[str] | None = None
    rows: Sequence[str] | None = None

    def has(self, row: MethodRow, cell: str) -> bool:
        return (self.cells is None or cell in self.cells) and (self.rows is None or row.title in self.rows)


Groups = Mapping[str, Mapping[str, Part]]
WHOLE = Part()


@dataclass(frozen=True)
class Exhibit:
    """A table or figure. groups: by profile, the kinds of model there is a table for, and what of it is run.

    baseline: the row that others are tested against.
    """

    name: str
    place: str
    summary: str
    cells: Sequence[str] = ()
    rows: Sequence[MethodRow] = ()
    groups: Groups = field(default_factory=dict)
    baseline: str | None = None


def _rows(start: str, *others: str, before: Sequence[MethodRow] = ()) -> list[MethodRow]:
    """The usual ones: a supervised start, which the paper calls `start`, baselines by name, Self-training and DRIFT."""
    return [
        *before,
        MethodRow("Start", "supervised", start),
        MethodRow("Train on dev", "train-on-dev"),
        *(MethodRow(name, name.lower().replace(" ", "-"), name) for name in others),
        MethodRow("Self-training", "self-training", "Self-training"),
        MethodRow("DRIFT", "drift", "DRIFT"),
    ]


def _everywhere(group: str) -> Groups:
    return {profile: {group: WHOLE} for profile in PROFILES}


def _settings(**method: Any) -> dict[str, Any]:
    return {"method": method}


FINETUNED = {"finetuned": WHOLE}
TEXT_GROUPS: Groups = {"paper": FINETUNED, "laptop": {"frozen": WHOLE, "finetuned": Part(cells=())}}
# What a laptop fine-tunes, and trains from scratch.
GAME = ("Start", "Self-training", "DRIFT")
WEAK, SEMI = Part(("agnews-weak", "imdb-weak"), GAME), Part(("agnews-30",), GAME)
TEXTCNN = Part([f"agnews-{labels}" for labels in ("weak", 30, 50, 200, 1000)])
STUDIED = ("agnews-30", "agnews-weak", "imdb-30", "imdb-weak")

EXHIBITS = {
    exhibit.name: exhibit
    for exhibit in (
        Exhibit(
            "weak",
            "table 1",
            "weak labels: texts, slots and named entities",
            paper_numbers()["weak"]["columns"],
            _rows(
                "RoBERTa-Weak",
                *("WeSTClass", "Mean Teacher", "UAST", "BOND", "COSINE"),
                before=[MethodRow("All gold labels", "supervised", "RoBERTa-Full", gold=True)],
            ),
            {"paper": FINETUNED, "laptop": {"frozen": WHOLE, "finetuned": WEAK}},
            "Self-training",
        ),
        Exhibit(
            "semi",
            "table 2",
            "30 to 1,000 labels a class: texts",
            paper_numbers()["semi"]["columns"],
            _rows("RoBERTa-Semi", "VAMPIRE", "UDA", "MixText", "Mean Teacher", "UAST"),
            {"paper": FINETUNED, "laptop": {"frozen": WHOLE, "finetuned": SEMI}},
            "Self-training",
        ),
        Exhibit(
            "textcnn",
            "table 3",
            "TextCNN from scratch: texts, weak labels and 30 to 1,000 a class",
            paper_numbers()["textcnn"]["columns"],
            _rows("TextCNN", "UAST"),
            {"paper": {"textcnn": WHOLE}, "laptop": {"textcnn": TEXTCNN}},
            "Self-training",
        ),
        Exhibit(
            "ablation",
            "table 4",
            "DRIFT without differentiable labels, without differentiable weights, without weights",
            paper_numbers()["ablation"]["columns"],
            [
                MethodRow("DRIFT", "drift", "DRIFT"),
                MethodRow("w/o DrPL", "drift", "w/o DrPL", _settings(differentiate_labels=False)),
                MethodRow("w/o DrW", "drift", "w/o DrW", _settings(differentiate_weights=False)),
                MethodRow("w/o SR", "drift", "w/o SR", _settings(reweight=False)),
            ],
            TEXT_GROUPS,
            "DRIFT",
        ),
        Exhibit(
            "graphs",
            "table 5",
            "10 to 100 labels a class: nodes of Cora, CiteSeer and PubMed",
            paper_numbers()["graphs"]["columns"],
            [
                MethodRow("GCN", "supervised", "GCN", kind="gcn"),
                MethodRow("Self-training", "self-training", "Self-training", kind="gcn"),
                MethodRow("GraphVAT", "graphvat", "GraphVAT", kind="gcn"),
                MethodRow("GraphMix", "graphmix", "GraphMix", kind="gcn"),
                MethodRow("GRAND", "supervised", "GRAND", kind="grand"),
                MethodRow("DRIFT+GCN", "drift", "DRIFT+GCN", kind="gcn"),
                MethodRow("DRIFT+GRAND", "drift", "DRIFT+GRAND", kind="grand"),
            ],
            _everywhere("graph"),
            "Self-training",
        ),
        Exhibit("moons", "figures 1 and 2", "two moons: learning curves, and where the border runs"),
        Exhibit(
            "sensitivity",
            "figure 3",
            "how much α and τ matter: texts, 30 labels a class and weak labels",
            STUDIED,
            [
                *(MethodRow(f"α = {alpha}", "drift", settings=_settings(alpha=alpha)) for alpha in ALPHAS),
                *(MethodRow(f"τ = {tau}", "drift", settings=_settings(tau=tau)) for tau in TAUS),
            ],
            TEXT_GROUPS,
        ),
        Exhibit(
            "rings",
            "figure 4",
            "which samples become right and which wrong over 300 steps: IMDB, weak labels",
            ("imdb-weak",),
            [
                MethodRow(title, method, settings={"training": {"steps": RINGS_AT[-1], "predictions_at": RINGS_AT}})
                for title, method in (("Self-training", "self-training"), ("DRIFT", "drift"))
            ],
            TEXT_GROUPS,
            "Self-training",
        ),
        Exhibit(
            "tsne",
            "figure 5",
            "learned representations of Cora and CiteSeer in the plane, 10 labels a class",
            ("cora-10", "citeseer-10"),
            [MethodRow("Self-training", "self-training", kind="gcn"), MethodRow("DRIFT", "drift", kind="gcn")],
            _everywhere("graph"),
            "Self-training",
        ),
    )
}


def find_exhibit(name: str) -> Exhibit:
    """By its name, or by its place in the paper: `weak`, `table1`, `figure-3`."""
    places = {exhibit.place.replace(" ", ""): exhibit for exhibit in EXHIBITS.values()}
    places |= {"figure1": EXHIBITS["moons"], "figure2": EXHIBITS["moons"]}
    plain = name.lower().replace("-", "").replace(" ", "")
    if plain in ("table6", "table7"):
        raise ConfigError(f"{name} describes datasets; `drift datasets` prints it")
    if found := EXHIBITS.get(name.lower()) or places.get(plain):
        return found
    raise ConfigError(f"there is no table or figure {name!r}{nearest(name, EXHIBITS)}")


def part_of(
    exhibit: Exhibit,
    cells: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    models: Sequence[str] | None = None,
) -> Exhibit:
    """The same with some of its cells, of its rows by method or title, and of its kinds of model; None are all.

    Where both cells and kinds of model are named, no profile leaves any of it out.
    """
    kept_cells = _chosen(cells, exhibit.cells, "cell", exhibit)
    known = list(dict.fromkeys([row.method for row in exhibit.rows] + [row.title for row in exhibit.rows]))
    kept = _chosen(methods, known, "method", exhibit)
    rows = [row for row in exhibit.rows if row.method in kept or row.title in kept]
    baseline = exhibit.baseline if exhibit.baseline in [row.title for row in rows] else None
    kinds = _chosen(models, list(dict.fromkeys(chain(*exhibit.groups.values()))), "kind of model", exhibit)
    named = cells is not None and models is not None
    groups = {
        profile: {group: WHOLE if named else part for group, part in own.items() if group in kinds}
        for profile, own in exhibit.groups.items()
    }
    return replace(exhibit, cells=kept_cells, rows=rows, groups=groups, baseline=baseline)


def _chosen(names: Sequence[str] | None, known: Sequence[str], kind: str, exhibit: Exhibit) -> Sequence[str]:
    for name in names or ():
        if name not in known:
            raise ConfigError(f"{name!r} is not a {kind} of {exhibit.name}{nearest(name, known)}")
    return [name for name in known if names is None or name in names]
