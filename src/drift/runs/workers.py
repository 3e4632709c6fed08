"""Several processes at once, on this machine or a cluster, through joblib's back ends."""

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import joblib

from drift.data.table_formats import first_line
from drift.errors import ConfigError, DriftError, Interrupted, StateError, needed_for

CLUSTER = "pip install 'drift-ssl[cluster]'"
ONE_PER_PROCESS = threading.Lock()  # torch has one random generator per process; Dask may run several threads in it


@contextmanager
def workers(cluster: str | None, count: int) -> Iterator[int]:
    """In the block, joblib runs calls on this machine, `count` at once, or on a cluster; yields how many run at once.

    cluster: the address of a Dask scheduler, or "ray".
    """
    if cluster is None:
        threads = max(1, cores() // count)
        with joblib.parallel_config(backend="loky", n_jobs=count, inner_max_num_threads=threads):
            yield count
    elif cluster == "ray":
        with needed_for("--cluster ray", "pip install ray"):
            ray, backend = import_module("ray"), import_module("ray.util.joblib")
        if not ray.is_initialized():
            ray.init(log_to_driver=False, logging_level="error")
        backend.register_ray()
        with joblib.parallel_config(backend="ray", n_jobs=-1):
            yield joblib.effective_n_jobs(None)
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
    # Ray's workers return results only in order, at the end.
    return_as = "list" if cluster == "ray" else "generator" if in_order else "generator_unordered"
    try:
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
