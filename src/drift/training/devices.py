"""Where a run computes: device, precision and processes, through accelerate; or this process alone, without it."""

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

USE_FSDP = "ACCELERATE_USE_FSDP"  # set by `accelerate launch --use_fsdp`


class SingleProcess:
    """One process on the CPU in full precision, whatever else the program does."""

    process, processes = 0, 1
    device = torch.device("cpu")
    sharded = False

    def wrap(self, module: nn.Module) -> nn.Module:
        """The module as it is trained here."""
        return module

    def wrap_optimizer(self, optimizer: Optimizer) -> Any:
        return optimizer

    def unwrap(self, module: nn.Module) -> nn.Module:
        """The user's own module again."""
        return module

    def whole_state(self, module: nn.Module) -> dict[str, Tensor]:
        """The weights of a wrapped module, unsharded, by the names they have in the user's own; on every process."""
        return dict(module.state_dict())

    def backward(self, loss: Tensor) -> None:
        torch.autograd.backward(loss)

    def clip(self, module: nn.Module, longest: float) -> None:
        """Scale gradients down to this norm if they are longer."""
        nn.utils.clip_grad_norm_(module.parameters(), longest)

    @contextmanager
    def not_yet_reduced(self, modules: Sequence[nn.Module]) -> Iterator[None]:
        """In the block, gradients stay each process's own: more micro-batches follow."""
        yield

    def any(self, *flags: bool) -> list[bool]:
        """For each flag whether any process raised it."""
        return list(flags)

    def mean(self, mine: float) -> float:
        """The mean over processes: of their losses, the loss of the global batch."""
        return mine

    def gather(self, mine: Any) -> list[Any]:
        """What every process has, in their order."""
        return [mine]

    def state_dict(self) -> dict[str, Any]:
        """What it takes to go on exactly, beside players and optimiser: the scale of losses in half precision."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Put back what `state_dict` gave."""

    def begin_tracking(self) -> None:
        """Open the trackers."""

    def log(self, values: dict[str, float], step: int) -> None:
        """Send numbers to the trackers."""

    def end_tracking(self) -> None:
        """Close the trackers."""


class Accelerated(SingleProcess):
    """What `accelerate launch`, `torchrun` or plain `python` started: one process or many, CPU or GPU, DDP or FSDP2."""

    def __init__(self, *, precision: str = "no", trackers: Sequence[str] = (), folder: Path | None = None) -> None:
        """trackers: tensorboard, wandb, mlflow. folder: where those that write files do so, in `tracking/drift`."""
        from accelerate import Accelerator
        from accelerate.state import AcceleratorState
        from accelerate.tracking import get_available_trackers

        # accelerate lets both pass: it would scale losses for nothing, and leave out trackers without a word.
        if precision == "fp16" and not torch.accelerator.is_available():
            raise ConfigError("precision='fp16' needs a GPU; use 'bf16', or 'no' for float32")
        if absent := sorted(set(trackers) - {str(tracker) for tracker in get_available_trackers()}):
            raise ConfigError(f"trackers={absent} are not installed; install the packages, or leave them out")
        # It keeps one state a process and refuses another precision later; every run chooses its own.
        AcceleratorState._reset_state()
        try:
            self.accelerator = Accelerator(
                cpu=not torch.accelerator.is_available(),  # else several processes on CPUs are taken for one
                mixed_precision=precision,
                log_with=list(trackers) or None,
                project_dir=None if folder is None else str(folder / "tracking"),
            )
        except (ValueError, ImportError) as error:
            raise ConfigError(f"precision={precision!r}, trackers={list(trackers)}: {error}") from error
        self.trackers = tuple(trackers)
        self.process, self.processes = self.accelerator.process_index, self.accelerator.num_processes
        self.device = self.accelerator.device
        # accelerate shards on GPUs alone; torch does on CPUs too, and what `--use_fsdp` asks for is honoured there.
        self._by_torch = self.processes > 1 and self.device.type == "cpu" and os.environ.get(USE_FSDP) == "true"
        self.sharded = self._by_torch or bool(self.accelerator.is_fsdp2)

    def wrap(self, module: nn.Module) -> nn.Module:
        if self._by_torch:
            return _shard(module)
        if not self.sharded:
            return self.accelerator.prepare_model(module)  # type: ignore[no-any-return]
        # FSDP2 is prepared with an optimiser only; the real ones are made over the sharded parameters.
        wrapped, _ = self.accelerator.prepare(module, torch.optim.SGD(module.parameters(), lr=0.0))
        return wrapped  # type: ignore[no-any-return]

    def wrap_optimizer(self, optimizer: Optimizer) -> Any:
        # accelerate's clipping unscales the gradients of every optimiser it knows: of an earlier phase's, twice.
        self.accelerator._optimizers.clear()
        return self.accelerator.prepare_optimizer(optimizer)

    def unwrap(self, module: nn.Module) -> nn.Module:
        return self.accelerator.unwrap_model(module)  # type: ignore[no-any-return]

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


def leave() -> NoReturn:
    """End this process of several, at once: torch's threads may hold tensors while Python is taken down, and abort it.

    https://github.com/pytorch/pytorch/pull/179291 has the cause; destroying the process group first does not help.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _shard(module: nn.Module) -> nn.Module:
    """Over all processes, block by block where the module says what its blocks are, as transformers do."""
    from torch.distributed.fsdp import fully_shard

    blocks = set(getattr(module, "_no_split_modules", None) or ())
    for part in module.modules():
        if type(part).__name__ in blocks:
            fully_shard(part)
    fully_shard(module)
    return module
