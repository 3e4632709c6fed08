"""Every run that a table or figure of the catalogue takes."""

from itertools import product

from drift.errors import ConfigError
from drift.methods import METHODS
from drift.paper.bench.catalogue import Exhibit, MethodRow
from drift.paper.bench.cells import Job
from drift.paper.bench.configs import make_jobs, task_of
from drift.paper.presets import PROFILES
from drift.settings import nearest
from drift.tasks.base import STACKED

STACKED_SEEDS, SEEDS = 10, 3  # of models that train many seeds at once, and of others, as the paper has


def jobs_of(exhibit: Exhibit, profile: str, seeds: int | None = None) -> list[Job]:
    """Every run it takes, those that the profile leaves out too."""
    check_profile(profile)
    if not exhibit.groups[profile]:
        raise ConfigError(f"profile {profile} has no such model of {exhibit.name}; leave out --models")
    jobs: list[Job] = []
    for group, part in exhibit.groups[profile].items():
        for cell, row in product(exhibit.cells, exhibit.rows):
            if not serves(row, cell):
                continue
            kind = row.kind or group
            jobs += make_jobs(
                (group, row.title, cell),
                kind=kind,
                profile=profile,
                method=row.method,
                settings=row.settings,
                gold=row.gold,
                seeds=seeds or (STACKED_SEEDS if kind in STACKED else SEEDS),
                left_out=not part.has(row, cell),
            )
    return jobs


def check_profile(profile: str) -> None:
    if profile not in PROFILES:
        raise ConfigError(f"there is no profile {profile!r}{nearest(profile, PROFILES)}")


def serves(row: MethodRow, cell: str) -> bool:
    """Whether the method is for the task of such a cell, and there are labels to learn from."""
    if row.gold and cell == "webpage-weak":  # its training sentences have weak tags alone
        return False
    return task_of(cell.rpartition("-")[0]) in METHODS[row.method].tasks
