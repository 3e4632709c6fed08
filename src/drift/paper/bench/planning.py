"""Choose a part of an exhibit, and list the runs it needs."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, product

from drift.errors import ConfigError
from drift.methods import METHODS
from drift.paper.bench.catalogue import WHOLE, Exhibit, MethodRow
from drift.paper.bench.cells import Job
from drift.paper.bench.configs import DEVS, cell_of, dataset_of, has_devs, make_jobs, with_papers_alpha
from drift.paper.presets import PROFILES, task_of
from drift.settings import nearest
from drift.tasks import TASKS

STACKED_SEEDS, SEEDS = 10, 3  # of models that are trained on many seeds at once; of others, as in the paper


def part_of(
    exhibit: Exhibit,
    cells: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    models: Sequence[str] | None = None,
) -> Exhibit:
    """The exhibit with only these cells, methods (by name of a method, or title or name of a row) and groups of models.

    None: all.

    If both cells and models are given, everything chosen is run, even what the profile leaves out.
    """
    kept_cells = _chosen(cells, exhibit.cells, "cell", exhibit)
    known = list(dict.fromkeys([*(row.method for row in exhibit.rows), *chain(*map(_names, exhibit.rows))]))
    kept_methods = set(_chosen(methods, known, "method", exhibit))
    rows = [row for row in exhibit.rows if kept_methods.intersection(_names(row))]
    baseline = exhibit.baseline if exhibit.baseline in [row.title for row in rows] else None
    kept_groups = _chosen(models, list(dict.fromkeys(chain(*exhibit.groups.values()))), "kind of model", exhibit)
    run_all = cells is not None and models is not None
    groups = {
        profile: {group: WHOLE if run_all else part for group, part in parts.items() if group in kept_groups}
        for profile, parts in exhibit.groups.items()
    }
    return replace(exhibit, cells=kept_cells, rows=rows, groups=groups, baseline=baseline)


def command_names(exhibit: Exhibit, methods: Sequence[str] | None) -> list[str] | None:
    """The same choice of methods with names of rows in place of titles, which may have commas."""
    names = {row.title: row.name for row in exhibit.rows}
    return None if methods is None else [names.get(method, method) for method in methods]


def _names(row: MethodRow) -> tuple[str, ...]:
    """What chooses a row: title, name, and its method unless that has the profile's α in another row."""
    return (row.title, row.name) if row.papers_alpha else (row.title, row.name, row.method)


def _chosen(names: Sequence[str] | None, known: Sequence[str], noun: str, exhibit: Exhibit) -> Sequence[str]:
    for name in names or ():
        if name not in known:
            raise ConfigError(f"{name!r} is not a {noun} of {exhibit.name}{nearest(name, known)}")
    return [name for name in known if names is None or name in names]


def with_devs(exhibit: Exhibit, devs: Sequence[str] | None) -> Exhibit:
    """The exhibit with a column per cell and dev set. devs: names in `DEVS`; None: only the full one.

    Tables of words have no columns of other dev sets.
    """
    if devs is None:
        return exhibit
    for dev in devs:
        if dev not in DEVS:
            raise ConfigError(f"{dev!r} is not a dev set; choose from {', '.join(DEVS)}")
    chosen = {cell: devs if has_devs(cell) else ("full",) for cell in exhibit.cells}
    return replace(exhibit, cells=[cell + DEVS[dev] for cell, each in chosen.items() for dev in each])


def jobs_of(
    exhibit: Exhibit,
    profile: str,
    seeds: int | None = None,
    *,
    redraw: bool = False,
    encoder: str | None = None,
    pool: int | None = None,
    trials: int = 0,
) -> list[Job]:
    """All runs of an exhibit, including those that the profile leaves out.

    seeds: seeds per method and cell; default: 10 for models that train them at once, 3 for others.
    redraw, encoder, pool, trials: see `make_jobs`. A pool redraws. Rows at the paper's α are not searched.
    """
    check_profile(profile)
    if not exhibit.groups[profile]:
        raise ConfigError(f"profile {profile} has no such model of {exhibit.name}; leave out --models")
    jobs: list[Job] = []
    for group, part in exhibit.groups[profile].items():
        for cell, row in product(exhibit.cells, exhibit.rows):
            if not serves(row, cell) or (row.papers_alpha and profile == "paper"):
                continue
            kind = row.kind or group
            settings = with_papers_alpha(row.settings, cell, kind) if row.papers_alpha else row.settings
            stacked = TASKS[task_of(dataset_of(cell))].kinds[kind].stacked
            jobs += make_jobs(
                (group, row.title, cell),
                kind=kind,
                profile=profile,
                method=row.method,
                settings=settings,
                gold=row.gold,
                seeds=seeds or (STACKED_SEEDS if stacked else SEEDS),
                left_out=not part.has(row, cell_of(cell)[0]),
                redraw=redraw or pool is not None,
                encoder=encoder,
                pool=pool,
                trials=0 if row.papers_alpha else trials,
            )
    return jobs


def check_profile(profile: str) -> None:
    """Raise ConfigError if there is no such profile."""
    if profile not in PROFILES:
        raise ConfigError(f"there is no profile {profile!r}{nearest(profile, PROFILES)}")


def serves(row: MethodRow, cell: str) -> bool:
    """Whether the method can be used on the data of the cell, and the data has the labels it needs."""
    if METHODS[row.method].trains_on_dev and cell_of(cell)[1] == "none":
        return False
    if row.gold and cell == "webpage-weak":  # its training sentences have only weak tags
        return False
    return METHODS[row.method].serves(TASKS[task_of(dataset_of(cell))].offers)
