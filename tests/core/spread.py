"""A few steps of the game in one or several processes. Run by torchrun from test_processes.py; not a test itself.

torchrun --nproc-per-node 2 tests/core/spread.py FILE
"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from safetensors.torch import save_file
from torch import Tensor, nn

from drift import Game
from drift.core import objective
from drift.core.processes import Rows, gather_rows, world_size
from drift.models.mlp import mlp
from drift.training.devices import leave

STEPS, ROWS, LABELED = 20, 24, 8
LEARNING_RATE = {("mlp", "sgd"): 0.3, ("mlp", "adam"): 0.01, ("encoder", "sgd"): 0.03}


@dataclass(frozen=True)
class Case:
    model: str
    optimizer: str = "sgd"
    wrapper: str = "ddp"
    cut: float = 0.5  # share of every batch's rows in the first process
    naive: bool = False  # class masses per process
    coupling: Any = "differentiable"


CASES = {
    "mlp": Case("mlp"),
    "mlp-adam": Case("mlp", optimizer="adam"),
    "mlp-uneven": Case("mlp", cut=0.25),
    "mlp-detached": Case("mlp", coupling="detached"),
    "mlp-sharded": Case("mlp", wrapper="fsdp"),
    "mlp-sharded-detached": Case("mlp", wrapper="fsdp", coupling="detached"),
    "mlp-shared": Case("mlp", cut=0.25, coupling="shared"),
    "mlp-sharded-shared": Case("mlp", wrapper="fsdp", coupling="shared"),
    "encoder": Case("encoder"),
    "encoder-sharded-shared": Case("encoder", wrapper="fsdp", coupling="shared"),
    "encoder-sharded": Case("encoder", wrapper="fsdp"),
    "mlp-naive": Case("mlp", naive=True),
    "encoder-naive": Case("encoder", naive=True),
}


def build(model: str) -> nn.Module:
    torch.manual_seed(0)
    if model == "mlp":
        return mlp(4, 3, hidden=(8,)).double()
    from transformers import BertConfig, BertForSequenceClassification

    config = BertConfig(
        vocab_size=50,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        initializer_range=0.6,  # gives predictions certain enough for pseudo-labels to matter
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        num_labels=3,
    )
    return BertForSequenceClassification(config).double().train()


def batches(model: str) -> list[tuple[Tensor, Tensor, Tensor]]:
    """Unlabelled inputs, labelled inputs and labels of every step's global batch."""
    draw = torch.Generator().manual_seed(1)

    def inputs(rows: int) -> Tensor:
        if model == "mlp":
            return torch.randn(rows, 4, generator=draw, dtype=torch.float64)
        return torch.randint(0, 50, (rows, 6), generator=draw)

    return [(inputs(ROWS), inputs(LABELED), torch.randint(0, 3, (LABELED,), generator=draw)) for _ in range(STEPS)]


def wrapped(module: nn.Module, wrapper: str) -> nn.Module:
    if world_size() == 1:
        return module
    if wrapper == "ddp":
        return nn.parallel.DistributedDataParallel(module)
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (world_size(),))
    for layer in module.modules():  # block by block, as large models are sharded
        if type(layer).__name__ == "BertLayer":
            fully_shard(layer, mesh=mesh)
    return fully_shard(module, mesh=mesh)


def own(x: Tensor, share: float) -> Tensor:
    """This process's rows of a global batch."""
    if world_size() == 1:
        return x
    middle = round(len(x) * share)
    return x[:middle] if dist.get_rank() == 0 else x[middle:]


def local_rows(log_p: Tensor) -> Rows:
    """What the game must not do: treat this process's rows as the whole batch."""
    return Rows(log_p, 0, log_p.shape[-2])


def train(case: Case) -> dict[str, Tensor]:
    """Train; returns the full parameters of student and teacher."""
    student = wrapped(build(case.model), case.wrapper)
    teacher = wrapped(build(case.model), case.wrapper)
    game = Game(student, teacher=teacher, alpha=0.7, coupling=case.coupling)
    make = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}[case.optimizer]
    optimizer = make(student.parameters(), lr=LEARNING_RATE[case.model, case.optimizer])
    objective.gather_rows = local_rows if case.naive else gather_rows
    for x_u, x_l, y in batches(case.model):
        loss = game.loss(unlabeled=own(x_u, case.cut), labeled=(own(x_l, case.cut), own(y, case.cut)))
        game.backward(loss)
        seen = game.diagnostics()
        optimizer.step()
        optimizer.zero_grad()
        game.follow()
    numbers = [seen.leader_norm, seen.interaction_norm, seen.angle or 0.0, seen.mean_omega, *seen.class_mass]
    tensors = {"diagnostics": torch.tensor(numbers, dtype=torch.float64)}
    for player, module in (("student", student), ("teacher", teacher)):
        for name, p in module.named_parameters():
            full = p.full_tensor() if hasattr(p, "full_tensor") else p
            tensors[f"{player}.{name.removeprefix('module.')}"] = full.detach().clone().contiguous()
    return tensors


def gathered_gradient() -> dict[str, Tensor]:
    """The gradient passed into the backward of `gather_rows`, after that call, and the one it returns."""
    local = torch.zeros(2, 3, requires_grad=True)
    gathered = gather_rows(local).log_p
    incoming = torch.ones_like(gathered) * (1 + dist.get_rank())
    (result,) = torch.autograd.grad(gathered, local, grad_outputs=incoming)
    return {"gather/incoming": incoming, "gather/result": result.contiguous()}


if __name__ == "__main__":
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    result = {f"{name}/{key}": tensor for name, case in CASES.items() for key, tensor in train(case).items()}
    result |= gathered_gradient()
    if dist.get_rank() == 0:
        save_file(result, Path(sys.argv[1]))
    dist.barrier()
    leave()
