"""Where a run computes: device, precision and processes, through accelerate; or this process only, without it."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NoReturn

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.optim import Optimizer

from drift.errors import ConfigError
from drift.training.callbacks import Callback, TrainingState, mean_scores

USE_FSDP = "ACCELERATE_USE_FSDP"  # set by `accelerate launch --use_fsdp`


class SingleProcess:
    """One process on the CPU in full precision, without accelerate."""

    process, processes = 0, 1
    device = torch.device("cpu")
    sharded = False

    def wrap(self, module: nn.Module) -> nn.Module:
        """The module as it is trained on this machine."""
        return module

    def wrap_optimizer(self, optimizer: Optimizer) -> Any:
        return optimizer

    def unwrap(self, module: nn.Module) -> nn.Module:
        """The original module."""
        return module

    def released(self, module: nn.Module) -> nn.Module:
        """The original module after training: it computes in the precision of its parameters again."""
        return self.unwrap(module)

    def whole_state(self, module: nn.Module) -> dict[str, Tensor]:
        """The complete weights of a wrapped module, by their names in the original module; on every process."""
        return dict(module.state_dict())

    def backward(self, loss: Tensor) -> None:
        torch.autograd.backward(loss)

    def clip(self, module: nn.Module, longest: float) -> None:
        """Scale gradients down to this norm if theirs is larger."""
        nn.utils.clip_grad_norm_(module.parameters(), longest)

    @contextmanager
    def not_yet_reduced(self, modules: Sequence[nn.Module]) -> Iterator[None]:
        """In the block, gradients are not reduced over processes, because more micro-batches follow."""
        yield

    def any(self, *flags: bool) -> list[bool]:
        """For each flag, whether any process has set it."""
        return list(flags)

    def mean(self, mine: float) -> float:
        """The mean over processes."""
        return mine

    def gather(self, mine: Any) -> list[Any]:
        """The values of all processes, in their order."""
        return [mine]

    def state_dict(self) -> dict[str, Any]:
        """What it takes to continue exactly, besides models and optimizer: the loss scale of half precision."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what `state_dict` returned."""

    def begin_tracking(self) -> None:
        """Open the trackers."""

    def log(self, values: dict[str, float], step: int) -> None:
        """Send numbers to the trackers."""

    def end_tracking(self) -> None:
        """Close the trackers."""


class Accelerated(SingleProcess):
    """One or several processes, as started by `accelerate launch`, `torchrun` or `python`: CPU or GPU, DDP or FSDP2."""

    def __init__(self, *, precision: str = "no", trackers: Sequence[str] = (), folder: Path | None = None) -> None:
        """trackers: tensorboard, wandb, mlflow. folder: for trackers that write files, in `tracking/drift`."""
        from accelerate import Accelerator
        from accelerate.state import AcceleratorState
        from accelerate.tracking import get_available_trackers

        # accelerate accepts both: it would scale losses in vain, and silently leave out trackers.
        if precision == "fp16" and not torch.accelerator.is_available():
            raise ConfigError("precision='fp16' needs a GPU; use 'bf16', or 'no' for float32")
        if absent := sorted(set(trackers) - {str(tracker) for tracker in get_available_trackers()}):
            raise ConfigError(f"trackers={absent} are not installed; install the packages, or leave them out")
        # accelerate keeps one state per process and refuses another precision later, but every run has its own.
        AcceleratorState._reset_state()
        try:
            self.accelerator = Accelerator(
                cpu=not torch.accelerator.is_available(),  # otherwise it takes several CPU processes for one
                mixed_precision=precision,
                log_with=list(trackers) or None,
                project_dir=None if folder is None else str(folder / "tracking"),
            )
        except (ValueError, ImportError) as error:
            raise ConfigError(f"precision={precision!r}, trackers={list(trackers)}: {error}") from error
        self.trackers = tuple(trackers)
        self.process, self.processes = self.accelerator.process_index, self.accelerator.num_processes
        self.device = self.accelerator.device
        # accelerate shards only on GPUs; torch also on CPUs, so that `--use_fsdp` works there too.
        self._by_torch = self.processes > 1 and self.device.type == "cpu" and os.environ.get(USE_FSDP) == "true"
        self.sharded = self._by_torch or bool(self.accelerator.is_fsdp2)
        # accelerate would import torch's compiler and sharding, for two seconds, to find that out.
        self._wraps_nothing = self.processes == 1 and self.device.type == "cpu" and precision == "no"

    def wrap(self, module: nn.Module) -> nn.Module:
        if self._by_torch:
            return _shard(module)
        if self._wraps_nothing:
            return module
        if not self.sharded:
            return self.accelerator.prepare_model(module)  # type: ignore[no-any-return]
        # FSDP2 can only be prepared with an optimizer; the real ones are made over the sharded parameters.
        wrapped, _ = self.accelerator.prepare(module, torch.optim.SGD(module.parameters(), lr=0.0))
        return wrapped  # type: ignore[no-any-return]

    def wrap_optimizer(self, optimizer: Optimizer) -> Any:
        # accelerate's clipping unscales the gradients of every optimizer it knows: those of an earlier phase twice.
        self.accelerator._optimizers.clear()
        return self.accelerator.prepare_optimizer(optimizer)

    def unwrap(self, module: nn.Module) -> nn.Module:
        return module if self._wraps_nothing else self.accelerator.unwrap_model(module)

    def released(self, module: nn.Module) -> nn.Module:
        if self._wraps_nothing:
            return module
        original: nn.Module = self.accelerator.unwrap_model(module, keep_fp32_wrapper=False)
        vars(original).pop("forward", None)  # accelerate leaves one on the object, which hides that of its class
        return original

    def whole_state(self, module: nn.Module) -> dict[str, Tensor]:
        state = self.unwrap(module).state_dict()
        return {name: value.full_tensor() if hasattr(value, "full_tensor") else value for name, value in state.items()}

    def backward(self, loss: Tensor) -> None:
        self.accelerator.backward(loss)

    def clip(self, module: nn.Module, longest: float) -> None:
        self.accelerator.clip_grad_norm_(module.parameters(), longest)

    @contextmanager
    def not_yet_reduced(self, modules: Sequence[nn.Module]) -> Iterator[None]:
        with ExitStack() as stack:
            for module in () if self._by_torch else modules:
                stack.enter_context(self.accelerator.no_sync(module))
            yield

    def any(self, *flags: bool) -> list[bool]:
        if self.processes == 1:
            return list(flags)
        raised = torch.tensor(flags, dtype=torch.int32, device=self.device)
        dist.all_reduce(raised, op=dist.ReduceOp.MAX)
        return [bool(flag) for flag in raised]

    def mean(self, mine: float) -> float:
        if self.processes == 1:
            return mine
        total = torch.tensor(mine, dtype=torch.float64, device=self.device)
        dist.all_reduce(total)
        return float(total) / self.processes

    def gather(self, mine: Any) -> list[Any]:
        if self.processes == 1:
            return [mine]
        everyone: list[Any] = [None] * self.processes
        dist.all_gather_object(everyone, mine)
        return everyone

    def state_dict(self) -> dict[str, Any]:
        return {} if self.accelerator.scaler is None else dict(self.accelerator.scaler.state_dict())

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        if self.accelerator.scaler is not None:
            self.accelerator.scaler.load_state_dict(dict(state))

    def begin_tracking(self) -> None:
        if self.trackers:
            self.accelerator.init_trackers("drift")

    def log(self, values: dict[str, float], step: int) -> None:
        self.accelerator.log(values, step=step)

    def end_tracking(self) -> None:
        for tracker in self.accelerator.trackers:  # accelerate's end_training would end the process group too
            tracker.finish()


class Trackers(Callback):
    """Sends the numbers of a run to TensorBoard, Weights & Biases or MLflow, if the machine has any of these."""

    def __init__(self, machine: SingleProcess) -> None:
        self.machine = machine

    def on_run_begin(self, state: TrainingState) -> None:
        self.machine.begin_tracking()

    def on_log(self, state: TrainingState, entry: Mapping[str, Any]) -> None:
        numbers = {name: value for name, value in entry.items() if isinstance(value, float)}
        self.machine.log({f"{state.phase}/{name}": value for name, value in numbers.items()}, state.total_steps)

    def on_evaluate(self, state: TrainingState, scores: Sequence[Mapping[str, float]]) -> None:
        means = {f"{state.phase}/dev_{name}": value for name, value in mean_scores(scores).items()}
        self.machine.log(means, state.total_steps)

    def on_run_end(self, state: TrainingState) -> None:
        self.machine.end_tracking()


def leave() -> NoReturn:
    """End this process, one of several, at once: torch's threads may hold tensors while Python shuts down, and abort.

    https://github.com/pytorch/pytorch/pull/179291 has the cause; destroying the process group first does not help.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _shard(module: nn.Module) -> nn.Module:
    """Shard a module over all processes, block by block if it names its blocks, as transformers do."""
    from torch.distributed.fsdp import fully_shard

    blocks = set(getattr(module, "_no_split_modules", None) or ())
    for part in module.modules():
        if type(part).__name__ in blocks:
            fully_shard(part)
    fully_shard(module)
    return module
