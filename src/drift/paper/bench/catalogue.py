"""The paper's tables and figures ("exhibits"): the cells and methods of each, and the numbers that the paper prints."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from drift.errors import ConfigError
from drift.paper.presets import PROFILES
from drift.paper.self_training import COPIED, DETACHED, FORMS, LEE
from drift.settings import nearest

RINGS_AT = (0, 100, 200, 300)  # steps
RINGS = {"training": {"steps": RINGS_AT[-1], "predictions_at": RINGS_AT}}
ALPHAS, TAUS = (0.7, 0.8, 0.9, 0.95, 0.99), (0.1, 0.3, 0.5, 0.7, 0.9)


@cache
def paper_numbers() -> dict[str, Any]:
    """Tables 1 to 5 by the name of their exhibit; `datasets` and `graph_datasets` are tables 7 and 6."""
    content: dict[str, Any] = yaml.safe_load((files("drift.paper.bench") / "paper_figures.yaml").read_text("utf-8"))
    return content


def paper_figure(exhibit: str, row: str | None, cell: str) -> float | None:
    """The number that the paper prints, in percent: accuracy, or F1 of named entities. None if it prints none."""
    table = paper_numbers().get(exhibit)
    if table is None or row not in table["rows"] or cell not in table["columns"]:
        return None
    figure = table["rows"][row][table["columns"].index(cell)]
    printed: float | None = figure[0] if isinstance(figure, list) else figure
    return printed


def paper_notes(exhibit: str) -> list[str]:
    """Notes about the paper's numbers in an exhibit."""
    return list(paper_numbers().get(exhibit, {}).get("notes", []))


@dataclass(frozen=True)
class MethodRow:
    """A row of a table.

    title: heading of the row. method: name of the method. paper: heading of the row in the paper, if it has one.
    settings: override those of the preset. gold: train on all gold labels.
    kind: name of the kind of model, in tables with several. papers_alpha: with the paper's α for the cell, in profiles
    that have another one.
    """

    title: str
    method: str
    paper: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    gold: bool = False
    kind: str | None = None
    papers_alpha: bool = False

    @property
    def name(self) -> str:
        """The title for command lines, without spaces and punctuation: `drift-detached`."""
        return re.sub(r"[^a-z0-9.=ατ]+", "-", self.title.lower()).strip("-")


@dataclass(frozen=True)
class Part:
    """The part of a table that a profile runs: cells, and rows by title. None: all."""

    cells: Sequence[str] | None = None
    rows: Sequence[str] | None = None

    def has(self, row: MethodRow, cell: str) -> bool:
        """Whether the profile runs this row in this cell."""
        return (self.cells is None or cell in self.cells) and (self.rows is None or row.title in self.rows)


Groups = Mapping[str, Mapping[str, Part]]
WHOLE = Part()


@dataclass(frozen=True)
class Exhibit:
    """A table or figure of the paper.

    name: for the command line. reference: its number in the paper, such as "table 1". summary: one line.
    cells: columns of the table, such as `agnews-30`: a dataset, and its labels per class or "weak". rows: methods.
    groups: by profile, one table per group of models, with the part of it that the profile runs.
    baseline: title of the row that the others are tested against.
    """

    name: str
    reference: str
    summary: str
    cells: Sequence[str] = ()
    rows: Sequence[MethodRow] = ()
    groups: Groups = field(default_factory=dict)
    baseline: str | None = None


MODERN = ("FixMatch", "AdaMatch", "FreeMatch", "SoftMatch")  # the paper does not have them
# Methods whose loss has a supervised term, which weak labels serve, too.
STAY_SUPERVISED = ("Mean Teacher", *MODERN)
SUPERVISED: Mapping[str, Any] = {"training": {"keep_weak_labels": True}}


def _rows(start: str, *others: str, before: Sequence[MethodRow] = ()) -> list[MethodRow]:
    """The usual rows: supervised start, train on dev, baselines, the forms of self-training, and DRIFT.

    start: heading of the supervised start in the paper. others: baselines, by title. before: rows above the start.
    """
    return [
        *before,
        MethodRow("Start", "supervised", start),
        MethodRow("Train on dev", "train-on-dev"),
        *(
            MethodRow(name, name.lower().replace(" ", "-"), name, SUPERVISED if name in STAY_SUPERVISED else {})
            for name in others
        ),
        *_forms(),
        MethodRow("DRIFT", "drift", "DRIFT"),
        *_at_papers_alpha(),
    ]


def _at_papers_alpha(kind: str | None = None, model: str = "") -> list[MethodRow]:
    """DRIFT and its detached form with the paper's α, beside those with the profile's. model: follows the titles."""
    return [
        MethodRow(f"{title}{model} at the paper's α", method, kind=kind, papers_alpha=True)
        for title, method in ((DETACHED, FORMS[DETACHED].method), ("DRIFT", "drift"))
    ]


def _forms(kind: str | None = None, settings: Mapping[str, Any] | None = None) -> list[MethodRow]:
    """A row per form of self-training. The paper's figures for "Self-training" are beside that of the work it cites.

    settings: override those of the preset, by group, besides those of the method.
    """
    return [
        MethodRow(
            title,
            form.method,
            "Self-training" if title == LEE else None,
            {"method": form.settings, **(settings or {})},
            kind=kind,
        )
        for title, form in FORMS.items()
    ]


def _studied(prefix: str, method: str) -> list[MethodRow]:
    """A row per α and per τ of a method. prefix: of their titles."""
    return [
        *(MethodRow(f"{prefix}α = {alpha}", method, settings=_settings(alpha=alpha)) for alpha in ALPHAS),
        *(MethodRow(f"{prefix}τ = {tau}", method, settings=_settings(tau=tau)) for tau in TAUS),
    ]


def _everywhere(group: str) -> Groups:
    return {profile: {group: WHOLE} for profile in PROFILES}


def _settings(**method: Any) -> dict[str, Any]:
    return {"method": method}


# As in GRAND's code: up to 5,000 steps, until 200 of them bring nothing better on dev.
PATIENCE = {"training": {"initial_steps": 5000, "evaluate_every": 10, "patience": 20}}
APPNP = {"model": {"name": "drift.paper.backbones:appnp", "scaling": "rows"}}

FINETUNED = {"finetuned": WHOLE}
TEXT_GROUPS: Groups = {"paper": FINETUNED, "laptop": {"frozen": WHOLE, "finetuned": Part(cells=())}}
# What the laptop profile fine-tunes, and what it trains from scratch.
GAME = ("Start", COPIED, DETACHED, "DRIFT", f"{DETACHED} at the paper's α", "DRIFT at the paper's α")
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
                *("WeSTClass", "Mean Teacher", "UAST", "BOND", "COSINE", *MODERN),
                before=[MethodRow("All gold labels", "supervised", "RoBERTa-Full", gold=True)],
            ),
            {"paper": FINETUNED, "laptop": {"frozen": WHOLE, "finetuned": WEAK}},
            LEE,
        ),
        Exhibit(
            "semi",
            "table 2",
            "30 to 1,000 labels per class: texts",
            paper_numbers()["semi"]["columns"],
            _rows("RoBERTa-Semi", "VAMPIRE", "UDA", "MixText", "Mean Teacher", "UAST", *MODERN),
            {"paper": FINETUNED, "laptop": {"frozen": WHOLE, "finetuned": SEMI}},
            LEE,
        ),
        Exhibit(
            "textcnn",
            "table 3",
            "TextCNN from scratch: texts, weak labels and 30 to 1,000 labels per class",
            paper_numbers()["textcnn"]["columns"],
            _rows("TextCNN", "UAST"),
            {"paper": {"textcnn": WHOLE}, "laptop": {"textcnn": TEXTCNN}},
            LEE,
        ),
        Exhibit(
            "ablation",
            "table 4",
            "DRIFT without differentiable labels, without differentiable weights, without weights",
            paper_numbers()["ablation"]["columns"],
            [
                *_forms(),
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
            "10 to 100 labels per class: nodes of Cora, CiteSeer and PubMed",
            paper_numbers()["graphs"]["columns"],
            [
                MethodRow("GCN", "supervised", "GCN", kind="gcn"),
                MethodRow("GCN as in pygcn", "supervised", settings={"model": {"variant": "pygcn"}}, kind="gcn"),
                MethodRow("Train on dev", "train-on-dev", kind="gcn"),
                *_forms("gcn"),
                MethodRow("GraphVAT", "graphvat", "GraphVAT", kind="gcn"),
                MethodRow("GraphMix", "graphmix", "GraphMix", kind="gcn"),
                MethodRow("GRAND", "supervised", "GRAND", kind="grand"),
                # As many steps as the games after GRAND have in both phases.
                MethodRow(
                    "GRAND, 800 steps", "supervised", settings={"training": {"initial_steps": 800}}, kind="grand"
                ),
                MethodRow("GRAND, patience 200", "supervised", settings=PATIENCE, kind="grand"),
                MethodRow(f"{LEE}+GRAND", FORMS[LEE].method, kind="grand"),
                MethodRow(f"{DETACHED}+GRAND", FORMS[DETACHED].method, kind="grand"),
                MethodRow("DRIFT+GCN", "drift", "DRIFT+GCN", kind="gcn"),
                MethodRow("DRIFT+GRAND", "drift", "DRIFT+GRAND", kind="grand"),
                MethodRow("APPNP", "supervised", settings=APPNP, kind="factory"),
                MethodRow(f"{DETACHED}+APPNP", FORMS[DETACHED].method, settings=APPNP, kind="factory"),
                MethodRow("DRIFT+APPNP", "drift", settings=APPNP, kind="factory"),
                *_at_papers_alpha("gcn", "+GCN"),
                *_at_papers_alpha("grand", "+GRAND"),
            ],
            _everywhere("graph"),
            LEE,
        ),
        Exhibit("moons", "figures 1 and 2", "two moons: learning curves and decision regions"),
        Exhibit(
            "sensitivity",
            "figure 3",
            "sensitivity to α and τ: texts, 30 labels per class and weak labels",
            STUDIED,
            [
                MethodRow(LEE, FORMS[LEE].method),
                MethodRow(COPIED, FORMS[COPIED].method, settings={"method": FORMS[COPIED].settings}),
                *_studied("", "drift"),
                *_studied(f"{DETACHED}, ", FORMS[DETACHED].method),
            ],
            TEXT_GROUPS,
        ),
        Exhibit(
            "rings",
            "figure 4",
            "predictions that become right or wrong over 300 steps: IMDB, weak labels",
            ("imdb-weak",),
            [*_forms(settings=RINGS), MethodRow("DRIFT", "drift", settings=RINGS)],
            TEXT_GROUPS,
            LEE,
        ),
        Exhibit(
            "tsne",
            "figure 5",
            "learned representations of Cora and CiteSeer (t-SNE), 10 labels per class",
            ("cora-10", "citeseer-10"),
            [MethodRow(title, FORMS[title].method, kind="gcn") for title in (LEE, DETACHED)]
            + [MethodRow("DRIFT", "drift", kind="gcn")],
            _everywhere("graph"),
            LEE,
        ),
    )
}


def find_exhibit(name: str) -> Exhibit:
    """Find an exhibit by its name or by its number in the paper: `weak`, `table1`, `figure-3`."""
    references = {exhibit.reference.replace(" ", ""): exhibit for exhibit in EXHIBITS.values()}
    references |= {"figure1": EXHIBITS["moons"], "figure2": EXHIBITS["moons"]}
    plain = name.lower().replace("-", "").replace(" ", "")
    if plain in ("table6", "table7"):
        raise ConfigError(f"{name} describes datasets; `drift datasets` prints it")
    if exhibit := EXHIBITS.get(name.lower()) or references.get(plain):
        return exhibit
    raise ConfigError(f"there is no table or figure {name!r}{nearest(name, EXHIBITS)}")
