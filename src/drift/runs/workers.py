"""Work done by several processes at once, of this machine or of a cluster, through joblib's back ends."""

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import joblib

from drift.data.packages import needed_for
from drift.data.table_formats import first_line
from drift.errors import ConfigError, DriftError, Interrupted, StateError

CLUSTER = "pip install 'drift-ssl[cluster]'"
ONE_A_PROCESS = threading.Lock()  # torch has one random generator a process; Dask may have several threads in it


@contextmanager
def workers(cluster: str | None, count: int) -> Iterator[int]:
    """In the block joblib runs its calls here, `count` at once, or on a cluster; gives how many it takes at once.

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
            yield max(1, joblib.effective_n_jobs(None))  # workers may be on their way


def results(calls: Sequence[Any], cluster: str | None, *, kept: str, in_order: bool = False) -> Iterator[Any]:
    """What delayed calls give, as each ends or in their order, by the `workers` around; kept: what a stop leaves."""
    # Ray's workers give results in order only, at the end.
    given = "list" if cluster == "ray" else "generator" if in_order else "generator_unordered"
    try:
        yield from joblib.Parallel(return_as=given, batch_size=1)(calls)
    except (Interrupted, KeyboardInterrupt) as stop:
        raise Interrupted(f"stopped; {kept}") from stop
    except DriftError:
        raise
    except Exception as error:  # of the processes or the cluster
        raise StateError(
            f"the workers stopped ({type(error).__name__}: {first_line(error)}); {kept};"
            " if memory was short, use a smaller --jobs"
        ) from error


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
