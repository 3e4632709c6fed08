"""Several processes at once: on this machine or on Dask through joblib's back ends, or on Ray."""

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import joblib

from drift.data.table_formats import first_line
from drift.errors import ConfigError, DriftError, Interrupted, StateError, needed_for
from drift.runs.ray_tasks import is_ray, ray_cluster, ray_results

CLUSTER = "pip install 'drift-ssl[cluster]'"
ONE_PER_PROCESS = threading.Lock()  # torch has one random generator per process; Dask may run several threads in it


@contextmanager
def workers(cluster: str | None, count: int) -> Iterator[int]:
    """In the block, joblib runs calls on this machine, `count` at once, or on a cluster; yields how many run at once.

    cluster: the address of a Dask scheduler, "ray", or a Ray cluster's address, "ray://host:10001".
    """
    if cluster is None:
        threads = max(1, cores() // count)
        with joblib.parallel_config(backend="loky", n_jobs=count, inner_max_num_threads=threads):
            yield count
    elif is_ray(cluster):
        with ray_cluster(cluster) as count_there:
            yield count_there
    else:
        with needed_for("--cluster", CLUSTER):
            distributed = import_module("distributed")
        try:
            client = distributed.Client(cluster, timeout="10s")
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"no Dask scheduler answers at {cluster} ({error}); start one, or fix --cluster"
            ) from error
        with client, joblib.parallel_config(backend="dask", n_jobs=-1):
            yield max(1, joblib.effective_n_jobs(None))  # workers may still be starting


def results(calls: Sequence[Any], cluster: str | None, *, kept: str, in_order: bool = False) -> Iterator[Any]:
    """Results of delayed calls in a `workers` block as they end or in order. kept: what a stop leaves, in messages."""
    try:
        if is_ray(cluster):
            yield from ray_results(calls, in_order=in_order)
        else:
            return_as = "generator" if in_order else "generator_unordered"
            yield from joblib.Parallel(return_as=return_as, batch_size=1)(calls)
    except (Interrupted, KeyboardInterrupt) as stop:
        raise Interrupted(f"stopped; {kept}") from stop
    except DriftError:
        raise
    except Exception as error:  # raised by the processes or the cluster
        raise StateError(
            f"the workers stopped ({type(error).__name__}: {first_line(error)}); {kept};"
            " if memory was short, use a smaller --jobs"
        ) from error


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
