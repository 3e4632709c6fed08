"""Calls as tasks of a Ray cluster: one whose worker dies is sent to another worker."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from drift.data.table_formats import first_line
from drift.errors import ConfigError, needed_for

RAY, ADDRESS = "ray", "ray://"  # --cluster ray, or --cluster ray://host:10001
RETRIES = 5  # of a task whose worker dies
Call = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]


def is_ray(cluster: str | None) -> bool:
    return cluster is not None and (cluster == RAY or cluster.startswith(ADDRESS))


@contextmanager
def ray_cluster(cluster: str) -> Iterator[int]:
    """In the block, Ray is connected; yields how many tasks run at once.

    cluster: "ray" is the cluster of `$RAY_ADDRESS`, one that runs on this machine, or else a new one on this machine.
    """
    with needed_for(f"--cluster {cluster}", "pip install 'drift-ssl[ray]'"):
        ray = import_module("ray")
    own = not ray.is_initialized()
    if own:
        address = cluster if cluster.startswith(ADDRESS) else None
        try:
            ray.init(address=address, log_to_driver=False, logging_level="error")
        except (OSError, ValueError, RuntimeError) as error:
            raise ConfigError(f"no Ray cluster answers at {cluster} ({first_line(error)}); fix --cluster") from error
    try:
        yield max(1, int(ray.cluster_resources().get("CPU", 1)))
    finally:
        if own:
            ray.shutdown()


def ray_results(calls: Sequence[Call], *, in_order: bool) -> Iterator[Any]:
    """Results of joblib's delayed calls as they end, or in order."""
    ray = import_module("ray")
    task = ray.remote(max_retries=RETRIES)(_do)
    left = [task.remote(*call) for call in calls]
    try:
        while left:
            done, left = (left[:1], left[1:]) if in_order else ray.wait(left)
            try:
                yield from ray.get(done)
            except ray.exceptions.RayTaskError as error:
                raise error.cause from None  # what the call raised, without Ray's report
    finally:
        for each in left:
            ray.cancel(each)


def _do(function: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    return function(*arguments, **options)
