"""The game with many types of students: their outputs, parameters and buffers; training, saving and diagnostics."""

import copy
import io
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.testing import assert_close

from drift import Game, Response, SoftStrategy, Strategy
from drift.core import sample_weight
from drift.errors import ShapeError, StateError
from drift.models.mlp import mlp
from drift.models.stacked import Stacked

FEATURES, CLASSES, ROWS = 4, 3, 12
EXACT = {"rtol": 1e-10, "atol": 1e-12}  # float64, two orders of the same sums


def seeded(build: Callable[[], Any], seed: int = 0) -> Any:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return build()


def net(seed: int = 0, **options: Any) -> nn.Module:
    return seeded(lambda: mlp(FEATURES, CLASSES, (6,), **options), seed).double()


def rows(seed: int = 1, n: int = ROWS, dtype: torch.dtype = torch.float64) -> Tensor:
    return seeded(lambda: torch.randn(n, FEATURES, dtype=dtype), seed)


def labelled(seed: int = 2, n: int = ROWS) -> tuple[Tensor, Tensor]:
    return rows(seed, n), seeded(lambda: torch.randint(CLASSES, (n,)), seed)


def apart(game: Game, by: float = 0.3) -> Game:
    """Move the teacher off the student where it is trained, so that a test cannot pass by confusing the two."""
    for student, teacher in zip(game.student.parameters(), game.teacher.parameters(), strict=True):
        if student.requires_grad:
            teacher.data += by * seeded(lambda shape=teacher: torch.randn_like(shape))
    return game


def gradients(module: nn.Module) -> dict[str, Tensor | None]:
    return {n: None if p.grad is None else p.grad.clone() for n, p in module.named_parameters()}


def flat(module: nn.Module) -> Tensor:
    return torch.cat([(torch.zeros_like(p) if p.grad is None else p.grad).flatten() for p in module.parameters()])


def state_of(module: nn.Module) -> dict[str, Tensor]:
    return {n: t.detach().clone() for n, t in (*module.named_parameters(), *module.named_buffers())}


def played(game: Game, *inputs: Any) -> dict[str, Tensor | None]:
    """The student's gradient after one loss and one backward."""
    game.backward(game.loss(*inputs))
    return gradients(game.student)


def train(game: Game, optimizer: torch.optim.Optimizer, batches: list[Any]) -> None:
    for batch in batches:
        game.backward(game.loss(batch))
        optimizer.step()
        optimizer.zero_grad()
        game.follow()


def explicit_gradient(
    game: Game, unlabeled: Any, labeled: tuple[Any, Tensor] | None = None
) -> dict[str, Tensor | None]:
    """The Stackelberg gradient by autograd through an explicit θT(θS), with the formulas in probability space."""
    scale, tau = 1.0 - game.alpha, game.strategy.tau
    leader = {n: p.detach().clone().requires_grad_(p.requires_grad) for n, p in game.student.named_parameters()}
    follower = {n: p.detach() + scale * (leader[n] - leader[n].detach()) for n, p in game.teacher.named_parameters()}

    def probabilities(module: nn.Module, weights: dict[str, Tensor], inputs: Any) -> Tensor:
        args = () if isinstance(inputs, dict) else inputs if isinstance(inputs, (tuple, list)) else (inputs,)
        kwargs = inputs if isinstance(inputs, dict) else {}
        output = functional_call(copy.deepcopy(module), weights, tuple(args), kwargs)
        return torch.softmax(getattr(output, "logits", output), -1)

    q, p = probabilities(game.student, leader, unlabeled), probabilities(game.teacher, follower, unlabeled)
    sharp = p ** (1.0 / tau)
    y = sharp / sharp.sum(0)
    y = y / y.sum(1, keepdim=True)
    omega = 1.0 + (y * y.log()).sum(1) / math.log(y.shape[1])
    loss = (omega * (y * (y / q).log()).sum(1)).mean()
    if labeled is not None:
        x_l, y_l = labeled
        loss = loss - probabilities(game.student, leader, x_l)[torch.arange(len(y_l)), y_l].log().mean()
    trained = [n for n in leader if leader[n].requires_grad]
    actual = torch.autograd.grad(loss, [leader[n] for n in trained], allow_unused=True)
    return dict.fromkeys(leader) | dict(zip(trained, actual, strict=True))


# What a student takes and returns


@dataclass
class Output:
    logits: Tensor


class Pair(nn.Module):
    """Two inputs, by position or by name; logits bare or in an object."""

    def __init__(self, wrap: bool) -> None:
        super().__init__()
        self.body, self.wrap = mlp(2 * FEATURES, CLASSES, (6,)), wrap

    def forward(self, left: Tensor, right: Tensor) -> Tensor | Output:
        logits = self.body(torch.cat([left, right], 1))
        return Output(logits) if self.wrap else logits


def pair(wrap: bool) -> nn.Module:
    return seeded(lambda: Pair(wrap)).double()


def bert() -> nn.Module:
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        vocab_size=20,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        max_position_embeddings=8,
        num_labels=CLASSES,
        initializer_range=0.5,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    return seeded(lambda: transformers.BertForSequenceClassification(config)).double().train()


def tokens(seed: int) -> dict[str, Tensor]:
    ids = seeded(lambda: torch.randint(20, (ROWS, 5)), seed)
    mask = torch.ones_like(ids)
    mask[::2, 3:] = 0
    return {"input_ids": ids, "attention_mask": mask}


STUDENTS: dict[str, tuple[Callable[[], nn.Module], Callable[[int], Any]]] = {
    "tensor in, tensor out": (net, rows),
    "tuple in, tensor out": (lambda: pair(False), lambda seed: (rows(seed), rows(seed + 10))),
    "list in, object out": (lambda: pair(True), lambda seed: [rows(seed), rows(seed + 10)]),
    "dict in, tensor out": (lambda: pair(False), lambda seed: {"right": rows(seed), "left": rows(seed + 10)}),
    "dict in, object out": (lambda: pair(True), lambda seed: {"left": rows(seed), "right": rows(seed + 10)}),
    "transformers": (bert, tokens),
}


@pytest.mark.parametrize("kind", STUDENTS)
def test_any_call_gives_the_stackelberg_gradient(kind: str) -> None:
    build, inputs = STUDENTS[kind]
    game = apart(Game(build(), alpha=0.6, tau=0.7), by=0.1)
    x_u, labeled = inputs(1), (inputs(2), labelled()[1])
    expected = explicit_gradient(game, x_u, labeled)
    assert_close(played(game, x_u, labeled), expected, **EXACT)


@pytest.mark.parametrize("kind", STUDENTS)
def test_rows_given_in_two_groups_are_one_batch_to_the_teacher(kind: str) -> None:
    build, inputs = STUDENTS[kind]
    game = apart(Game(build(), tau=0.5, pseudo_label="all"), by=0.1)
    game.loss(inputs(1), (inputs(2), labelled()[1]))
    p = torch.cat([game.predict_proba(inputs(seed), by="teacher") for seed in (2, 1)])  # labelled rows first
    assert_close(game.last.log_p, p.log(), **EXACT)
    sharp = p ** (1 / 0.5)
    y = sharp / sharp.sum(0)
    assert_close(game.last.log_y, (y / y.sum(1, keepdim=True)).log(), **EXACT)
    q = torch.cat([game.predict_proba(inputs(seed)) for seed in (2, 1)])
    kl = (game.last.log_y.exp() * (game.last.log_y - q.log())).sum(1)
    assert_close(game.last.self_trained, (game.last.omega * kl).mean(), **EXACT)


# What a student is made of


class Tied(nn.Module):
    """Token embeddings that are also the output layer: as many classes as tokens."""

    def __init__(self, tokens: int = 5) -> None:
        super().__init__()
        self.embed = nn.Embedding(tokens, 4)
        self.out = nn.Linear(4, tokens)
        self.out.weight = self.embed.weight

    def forward(self, ids: Tensor) -> Tensor:
        return self.out(torch.tanh(self.embed(ids).mean(1)))


def test_tied_parameters_are_one_pair() -> None:
    student = seeded(Tied).double()
    game = apart(Game(student, alpha=0.6))
    ids = seeded(lambda: torch.randint(5, (ROWS, 3)))
    expected = explicit_gradient(game, ids)
    assert_close(played(game, ids), expected, **EXACT)  # merged twice, the interaction would count double

    before = game.teacher.embed.weight.detach().clone()
    torch.optim.SGD(student.parameters(), lr=0.5).step()
    game.follow()
    assert game.teacher.out.weight is game.teacher.embed.weight
    assert game.teacher.out.weight is not student.out.weight
    assert_close(game.teacher.out.weight.detach(), 0.6 * before + 0.4 * student.embed.weight.detach(), **EXACT)

    other = Game(seeded(Tied, seed=9).double(), alpha=0.6)
    other.load_state_dict(game.state_dict())
    assert other.teacher.out.weight is other.teacher.embed.weight
    assert_close(other.teacher.out.weight, game.teacher.out.weight, rtol=0, atol=0)


@pytest.mark.parametrize("alpha", [0.9, 0.5, 1 / 3, 0.0])
def test_frozen_parameters_stay_equal_to_the_bit(alpha: float) -> None:
    student = net().float()
    student[0].requires_grad_(False)
    game = Game(student, alpha=alpha)
    frozen = student[0].weight.clone()
    optimizer = torch.optim.SGD([p for p in student.parameters() if p.requires_grad], lr=0.5)
    head = game.teacher[2].weight.clone()
    train(game, optimizer, [rows(seed, dtype=torch.float32) for seed in range(5)])
    assert torch.equal(student[0].weight, frozen)
    assert torch.equal(game.teacher[0].weight, frozen)
    assert student[0].weight.grad is None
    assert game.teacher[0].weight.grad is None
    assert not torch.equal(game.teacher[2].weight, head)


def test_frozen_parameters_may_be_of_a_type_that_has_no_average() -> None:
    student = net()
    student.register_parameter("codes", nn.Parameter(torch.arange(4), requires_grad=False))
    game = Game(student)
    game.follow()
    assert torch.equal(game.teacher.codes, student.codes)


@pytest.mark.parametrize("whose", ["student", "teacher"])
def test_a_frozen_parameter_that_somebody_changes_is_averaged(whose: str) -> None:
    game = Game(half_frozen(), alpha=0.5)
    frozen = {"student": game.student[0].weight, "teacher": game.teacher[0].weight}
    with torch.no_grad():
        frozen[whose].add_(1.0)
    expected = torch.lerp(frozen["teacher"], frozen["student"], 0.5)
    game.follow()
    assert torch.equal(frozen["teacher"], expected)


def half_frozen() -> nn.Module:
    student = net()
    student[0].requires_grad_(False)
    return student


@pytest.mark.parametrize("frozen_first", [True, False])
def test_freezing_and_unfreezing_in_mid_game(frozen_first: bool) -> None:
    student = net()
    student[0].requires_grad_(not frozen_first)
    game = apart(Game(student, alpha=0.6))
    optimizer = torch.optim.SGD(student.parameters(), lr=0.5)
    train(game, optimizer, [rows(1), rows(2)])
    student[0].requires_grad_(frozen_first)
    expected = explicit_gradient(game, rows(3))
    actual = played(game, rows(3))
    assert (actual["0.weight"] is None) is not frozen_first
    assert_close(actual, expected, **EXACT)


class Partial(nn.Module):
    """One layer that nobody calls, and one that is called in evaluation mode only."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(FEATURES, CLASSES)
        self.unused = nn.Linear(FEATURES, CLASSES)
        self.evaluated = nn.Linear(FEATURES, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.body(x) if self.training else self.body(x) + self.evaluated(x)


def test_unused_parameters_and_those_only_the_teacher_uses() -> None:
    student = seeded(Partial).double()
    game = apart(Game(student, alpha=0.6))
    expected = explicit_gradient(game, rows())
    actual = played(game, rows())
    assert actual["unused.weight"] is None
    through_teacher = actual["evaluated.weight"]
    assert through_teacher is not None
    assert through_teacher.norm() > 1e-6
    assert_close(actual, expected, **EXACT)
    detached = Game(copy.deepcopy(student), coupling="detached", teacher=copy.deepcopy(game.teacher))
    detached.student.zero_grad()
    assert played(detached, rows())["evaluated.weight"] is None
    assert game.diagnostics().leader_norm == pytest.approx(float(flat(detached.student).norm()))

    old = game.teacher.unused.weight.detach().clone()
    game.follow()
    assert_close(game.teacher.unused.weight.detach(), 0.6 * old + 0.4 * student.unused.weight.detach(), **EXACT)


class Colliding(nn.Module):
    """A submodule called "module", as data-parallel wrappers call theirs, beside a layer of the same inner name."""

    def __init__(self) -> None:
        super().__init__()
        self.module = nn.ModuleDict({"head": nn.Linear(FEATURES, FEATURES)})
        self.head = nn.Linear(FEATURES, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.tanh(self.module["head"](x)))


def test_a_submodule_called_module_is_followed_too() -> None:
    student = seeded(Colliding).double()
    game = apart(Game(student, alpha=0.6))
    expected = explicit_gradient(game, rows())
    assert_close(played(game, rows()), expected, **EXACT)
    torch.optim.SGD(student.parameters(), lr=0.5).step()
    old = state_of(game.teacher)
    game.follow()
    for name, now in state_of(game.teacher).items():
        assert_close(now, 0.6 * old[name] + 0.4 * state_of(student)[name], **EXACT)


def test_sparse_gradients_are_merged() -> None:
    def build(sparse: bool) -> nn.Module:
        return nn.Sequential(nn.EmbeddingBag(10, 4, mode="sum", sparse=sparse), nn.Linear(4, CLASSES))

    ids = seeded(lambda: torch.randint(10, (ROWS, 3)))
    sparse, dense = (apart(Game(seeded(lambda s=s: build(s)).double(), alpha=0.6)) for s in (True, False))
    actual, expected = played(sparse, ids), played(dense, ids)
    assert actual["0.weight"].is_sparse
    assert_close(actual["0.weight"].to_dense(), expected["0.weight"], **EXACT)


# Buffers, and the teacher's mode


class Tracker(nn.Module):
    """Keeps a running mean that is not saved, a count, a flag and a mask; writes in place or assigns new tensors."""

    def __init__(self, in_place: bool = True) -> None:
        super().__init__()
        self.in_place = in_place
        self.register_buffer("mean", torch.zeros(FEATURES), persistent=False)
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))
        self.register_buffer("seen", torch.zeros((), dtype=torch.bool))

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            mean = 0.8 * self.mean + 0.2 * x.detach().mean(0)
            if self.in_place:
                self.mean.copy_(mean)
                self.count.add_(1)
                self.seen.fill_(True)
            else:
                self.mean, self.count, self.seen = mean, self.count + 1, torch.ones_like(self.seen)
        return x - self.mean


def with_buffers(in_place: bool = True) -> nn.Module:
    def build() -> nn.Module:
        return nn.Sequential(
            Tracker(in_place), nn.Linear(FEATURES, 6), nn.BatchNorm1d(6), nn.Tanh(), nn.Linear(6, CLASSES)
        )

    return seeded(build).double()


@pytest.mark.parametrize("in_place", [True, False])
@pytest.mark.parametrize("teacher_mode", ["eval", "train"])
def test_buffers_follow_the_average_and_counts_are_copied(in_place: bool, teacher_mode: str) -> None:
    student = with_buffers(in_place)
    game = Game(student, alpha=0.7, teacher_mode=teacher_mode)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
    by_hand = state_of(game.teacher)
    for seed in range(4):
        train(game, optimizer, [rows(seed)])
        for name, now in state_of(student).items():
            by_hand[name] = 0.7 * by_hand[name] + 0.3 * now if now.is_floating_point() else now
    actual = state_of(game.teacher)
    assert {"0.mean", "0.count", "0.seen", "2.running_mean", "2.running_var", "2.num_batches_tracked"} < set(actual)
    for name, expected in by_hand.items():
        assert_close(actual[name], expected, **EXACT)
    assert actual["2.num_batches_tracked"] == actual["0.count"] == 4
    assert actual["0.seen"]
    assert not torch.equal(actual["0.mean"], student[0].mean)


@pytest.mark.parametrize("in_place", [True, False])
def test_a_teacher_in_training_mode_leaves_its_buffers_alone(in_place: bool) -> None:
    game = Game(with_buffers(in_place), teacher_mode="train")
    before = state_of(game.teacher)
    played(game, rows(), labelled())
    game.diagnostics()
    for name, now in state_of(game.teacher).items():
        assert torch.equal(now, before[name]), name
    assert game.student[2].num_batches_tracked == 2


@pytest.mark.parametrize("teacher_mode", ["eval", "train"])
def test_batchnorm_statistics_depend_on_the_teacher_mode(teacher_mode: str) -> None:
    game = apart(Game(with_buffers(), alpha=0.6, teacher_mode=teacher_mode))
    body = copy.deepcopy(game.teacher)
    assert body.training is (teacher_mode == "train")
    expected_gradient = explicit_gradient(game, rows())
    assert_close(played(game, rows()), expected_gradient, **EXACT)
    expected = torch.log_softmax(body(rows()), -1).detach()
    assert_close(game.last.log_p, expected, **EXACT)


def test_an_eval_teacher_ignores_dropout_and_a_train_teacher_does_not() -> None:
    steady = net(dropout=0.5).eval()  # no dropout in the student itself
    losses = {
        mode: [Game(steady, teacher_mode=mode).loss(rows()).item() for _ in range(2)] for mode in ("eval", "train")
    }
    assert losses["eval"][0] == losses["eval"][1]
    assert losses["train"][0] != losses["train"][1]

    game = Game(net(dropout=0.5).train())
    first, answer = game.loss(rows()).item(), game.last.log_y
    second = game.loss(rows()).item()
    assert first != second  # the student drops out
    assert torch.equal(game.last.log_y, answer)  # the teacher does not


def test_an_eval_teacher_draws_no_random_numbers() -> None:
    student = net(dropout=0.5)
    game = Game(student)
    torch.manual_seed(0)
    student(rows())
    alone = torch.rand(())
    torch.manual_seed(0)
    game.loss(rows())
    assert torch.rand(()) == alone


def test_infinite_buffers_stay_unchanged() -> None:
    class Masked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = mlp(FEATURES, CLASSES + 1, (6,))
            self.register_buffer("mask", torch.tensor([0.0, 0.0, 0.0, -math.inf]), persistent=False)

        def forward(self, x: Tensor) -> Tensor:
            return self.body(x) + self.mask

    student = seeded(Masked).double()
    game = Game(student)
    train(game, torch.optim.SGD(student.parameters(), lr=0.1), [rows(1), rows(2)])
    assert torch.equal(game.teacher.mask, student.mask)  # -inf - -inf is NaN
    assert torch.isfinite(game.loss(rows(3)))


# Training


OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.1),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.01),
    "lbfgs": lambda p: torch.optim.LBFGS(p, lr=0.5, max_iter=3),
}


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_any_optimiser_moves_the_student_and_the_teacher_follows(name: str, alpha: float) -> None:
    student = net()
    game = apart(Game(student, alpha=alpha))
    optimizer = OPTIMIZERS[name](student.parameters())
    for step in range(3):

        def closure(step: int = step) -> Tensor:
            optimizer.zero_grad()
            loss = game.loss(rows(step), labelled())
            game.backward(loss)
            return loss

        student_before, teacher_before = state_of(student), state_of(game.teacher)
        optimizer.step(closure)
        game.follow()
        for key, now in state_of(student).items():
            assert not torch.equal(now, student_before[key])
            expected = alpha * teacher_before[key] + (1 - alpha) * now
            assert_close(state_of(game.teacher)[key], expected, rtol=1e-14, atol=1e-15)
    assert game.steps == 3


def test_merging_once_equals_merging_every_micro_batch_and_the_mean_by_hand() -> None:
    micro = [rows(seed) for seed in range(3)]
    once, always, by_hand = (apart(Game(net(), alpha=0.6)) for _ in range(3))
    for i, x in enumerate(micro):
        once.backward(once.loss(x, labelled()) / 3, merge=i == 2)
        always.backward(always.loss(x, labelled()) / 3)
    by_hand.backward(torch.stack([by_hand.loss(x, labelled()) for x in micro]).mean())
    explicit = [explicit_gradient(once, x, labelled()) for x in micro]
    for name, actual in gradients(once.student).items():
        assert_close(actual, gradients(always.student)[name], **EXACT)
        assert_close(actual, gradients(by_hand.student)[name], **EXACT)
        assert_close(actual, torch.stack([g[name] for g in explicit]).mean(0), **EXACT)
    assert all(p.grad is None for p in once.teacher.parameters())


def test_the_teacher_does_not_follow_between_micro_batches() -> None:
    game = Game(net())
    game.backward(game.loss(rows()), merge=False)
    with pytest.raises(StateError, match="merged"):
        game.follow()
    game.backward(game.loss(rows()))
    game.follow()
    assert game.steps == 1


@pytest.mark.filterwarnings("error")
def test_autocast_is_close_to_float32() -> None:
    exact, rounded = (apart(Game(net().float(), alpha=0.6, tau=0.5)) for _ in range(2))
    x_u, x_l, y_l = rows(dtype=torch.float32), rows(2, dtype=torch.float32), labelled()[1]
    loss = exact.loss(x_u, (x_l, y_l))
    exact.backward(loss)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        half = rounded.loss(x_u, (x_l, y_l))
    rounded.backward(half)
    assert half.dtype == torch.float32
    assert_close(half, loss, rtol=2e-2, atol=2e-2)
    leader, follower = flat(exact.student), flat(rounded.student)
    assert torch.isfinite(follower).all()
    assert float((leader - follower).norm() / leader.norm()) < 0.03  # bfloat16 keeps 8 bits
    assert not torch.equal(leader, follower)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_compiled_student_plays_the_same_game(backend: str) -> None:
    torch._dynamo.reset()
    plain = apart(Game(net(), alpha=0.6))
    game = apart(Game(torch.compile(net(), backend=backend), alpha=0.6))
    expected = played(plain, rows(), labelled())
    actual = played(game, rows(), labelled())
    assert_close({n.removeprefix("_orig_mod."): g for n, g in actual.items()}, expected, **EXACT)
    for each in (plain, game):
        torch.optim.SGD(each.student.parameters(), lr=0.1).step()
        each.follow()
    assert_close(list(game.teacher.parameters()), list(plain.teacher.parameters()), **EXACT)
    plain.load_state_dict(game.state_dict())  # names without the prefix of torch.compile
    assert_close(game.predict_proba(rows(), by="teacher"), plain.predict_proba(rows(), by="teacher"), **EXACT)


def test_the_teacher_shares_no_storage() -> None:
    student = nn.Sequential(with_buffers(), nn.Linear(CLASSES, CLASSES).double())
    game = Game(student)

    def storages(module: nn.Module) -> set[int]:
        return {t.untyped_storage().data_ptr() for t in (*module.parameters(), *module.buffers())}

    assert len(storages(student)) == len(list(student.parameters())) + len(list(student.buffers()))
    assert storages(student).isdisjoint(storages(game.teacher))


def test_a_teacher_given_by_the_user() -> None:
    teacher = net(seed=7)
    game = Game(net(), alpha=0.6, teacher=teacher)
    assert game.teacher is teacher
    assert not teacher.training
    old = state_of(teacher)
    expected = explicit_gradient(game, rows())
    assert_close(played(game, rows()), expected, **EXACT)
    game.follow()
    for name, now in state_of(teacher).items():
        assert_close(now, 0.6 * old[name] + 0.4 * state_of(game.student)[name], **EXACT)
    game.reset()
    assert_close(state_of(teacher), state_of(game.student), rtol=0, atol=0)
    assert game.steps == 0


def test_gradients_a_teacher_was_left_with_do_not_count() -> None:
    teacher = net(seed=7)
    teacher(rows()).square().sum().backward()  # left over from its own training
    game = Game(net(), alpha=0.6, teacher=teacher)
    expected = explicit_gradient(game, rows())
    assert_close(played(game, rows()), expected, **EXACT)


# The order of calls


def test_another_backward_is_called_with_the_loss() -> None:
    seen = []

    def doubled(loss: Tensor) -> None:
        seen.append(loss)
        (2 * loss).backward()

    game, plain = (apart(Game(net(), alpha=0.6)) for _ in range(2))
    loss = game.loss(rows())
    game.backward(loss, backward=doubled)
    assert len(seen) == 1
    assert seen[0] is loss
    expected = played(plain, rows())
    assert_close(gradients(game.student), {n: 2 * g for n, g in expected.items()}, **EXACT)


@pytest.mark.parametrize(
    "options",
    [
        {"coupling": "detached"},
        {"alpha": 1.0},
        {"differentiate_labels": False, "differentiate_weights": False},
    ],
)
def test_a_game_without_interaction_needs_no_merging(options: dict[str, Any]) -> None:
    game = Game(net(), **options)
    game.loss(rows()).backward()
    assert all(p.grad is None for p in game.teacher.parameters())
    game.follow()
    assert game.steps == 1


def test_bypassing_backward_is_refused_at_follow() -> None:
    game = Game(net())
    before = state_of(game.teacher)
    game.loss(rows()).backward()
    with pytest.raises(StateError, match=r"game\.backward.*coupling='detached'"):
        game.follow()
    assert game.steps == 0
    assert_close(state_of(game.teacher), before, rtol=0, atol=0)


def test_a_loss_without_gradients_needs_no_merging() -> None:
    game = Game(net())
    with torch.no_grad():
        value = game.loss(rows())
    game.follow()
    assert not value.requires_grad
    assert game.steps == 1


def test_a_custom_loss_on_the_response() -> None:
    game, plain = (apart(Game(net(), alpha=0.6)) for _ in range(2))
    response = game.respond(rows())
    log_q = torch.log_softmax(game.student(rows()), -1)
    game.backward((response.omega * (response.log_y.exp() * (response.log_y - log_q)).sum(-1)).mean())
    assert_close(gradients(game.student), played(plain, rows()), **EXACT)


# Saving


def saved(state: dict[str, Any]) -> dict[str, Any]:
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


def run(game: Game, optimizer: torch.optim.Optimizer, steps: range) -> list[tuple[float, int | None]]:
    trace = []
    for step in steps:
        loss = game.loss(rows(step), labelled(100 + step))
        game.backward(loss)
        trace.append((loss.item(), game.diagnostics().flips))
        optimizer.step()
        optimizer.zero_grad()
        game.follow()
    return trace


@pytest.mark.parametrize("build", [net, with_buffers])
def test_a_run_resumed_halfway_equals_the_whole_run(build: Callable[[], nn.Module]) -> None:
    def fresh() -> tuple[Game, torch.optim.Optimizer]:
        game = Game(build(), alpha=0.7)
        game.probe = rows(50, n=40)
        return game, torch.optim.Adam(game.student.parameters(), lr=0.1)

    game, optimizer = fresh()
    whole = run(game, optimizer, range(10))
    assert any(flips for _, flips in whole)

    first, first_optimizer = fresh()
    halves = run(first, first_optimizer, range(5))
    file = saved({"game": first.state_dict(), "student": state_of(first.student), "opt": first_optimizer.state_dict()})
    second, second_optimizer = fresh()
    second.alpha = 0.1  # to be restored
    with torch.no_grad():
        for name, tensor in (*second.student.named_parameters(), *second.student.named_buffers()):
            tensor.copy_(file["student"][name])
    second_optimizer.load_state_dict(file["opt"])
    second.load_state_dict(file["game"])
    assert second.steps == 5
    assert second.alpha == 0.7
    halves += run(second, second_optimizer, range(5, 10))

    assert halves == whole
    assert second.steps == game.steps == 10
    for actual, expected in ((second.student, game.student), (second.teacher, game.teacher)):
        for name, tensor in state_of(expected).items():
            assert torch.equal(state_of(actual)[name], tensor), name


def test_a_saved_state_does_not_change_with_the_game() -> None:
    game = Game(net())
    state = game.state_dict()
    before = {name: tensor.clone() for name, tensor in state["teacher"].items()}
    train(game, torch.optim.SGD(game.student.parameters(), lr=0.5), [rows()])
    assert_close(state["teacher"], before, rtol=0, atol=0)
    assert not torch.equal(game.teacher[0].weight, before["0.weight"])


def test_restoring_forgets_gradients_that_were_not_merged() -> None:
    game = apart(Game(net(), alpha=0.6))
    state = game.state_dict()
    game.backward(game.loss(rows(1)), merge=False)
    game.student.zero_grad()
    game.load_state_dict(state)
    expected = explicit_gradient(game, rows(2))
    assert_close(played(game, rows(2)), expected, **EXACT)


# Custom strategies, and stacked trials


@dataclass(frozen=True)
class GatedResponse(Response):
    gate: Tensor  # (N,), the teacher's top probability


class Gated(Strategy):
    """A third part: each example counts by the teacher's top probability, and pays for the student's entropy."""

    def respond(self, log_p: Tensor) -> GatedResponse:
        log_y = torch.log_softmax(2 * log_p, -1)
        return GatedResponse(log_y, sample_weight(log_y), log_p.exp().amax(-1))

    def loss(self, response: Response, log_q: Tensor) -> Tensor:
        assert isinstance(response, GatedResponse)
        entropy = -(log_q.exp() * log_q).sum(-1)
        return response.gate * super().loss(response, log_q) + (1 - response.gate) * entropy


@pytest.mark.parametrize("seed", range(3))
def test_a_third_part_is_differentiated_too(seed: int) -> None:
    game = apart(Game(net(), alpha=0.6, strategy=Gated()))
    played(game, rows(), labelled())
    direction = [seeded(lambda p=p: torch.randn_like(p), seed) for p in game.student.parameters()]
    slope = sum(float((p.grad * d).sum()) for p, d in zip(game.student.parameters(), direction, strict=True))

    @torch.no_grad()
    def at(h: float) -> float:
        """The loss when the student moves by h, and its average by (1 - α) h."""
        moved = copy.deepcopy(game)
        for module, scale in ((moved.student, h), (moved.teacher, (1 - game.alpha) * h)):
            for p, d in zip(module.parameters(), direction, strict=True):
                p += scale * d
        return moved.loss(rows(), labelled()).item()

    h = 1e-5  # error of h² against rounding of 1e-16 / h
    assert slope == pytest.approx((at(h) - at(-h)) / (2 * h), rel=1e-6, abs=1e-9)

    game.student.zero_grad()
    game.coupling = "detached"
    leader = sum(
        float((g * d).sum()) for g, d in zip(played(game, rows(), labelled()).values(), direction, strict=True)
    )
    assert abs(slope - leader) > 1e-4 * abs(slope)  # the tested term is not zero


def test_stacked_trials_equal_separate_games() -> None:
    trials, steps = 3, 10
    modules = [net(seed).float() for seed in range(trials)]
    x_u = seeded(lambda: torch.randn(steps, trials, ROWS, FEATURES))
    x_l = seeded(lambda: torch.randn(steps, trials, 5, FEATURES), 1)
    y_l = seeded(lambda: torch.randint(CLASSES, (steps, trials, 5)), 2)

    together = Game(Stacked(modules), alpha=0.7, stacked=True)
    games = [Game(module, alpha=0.7) for module in modules]
    optimizers = [torch.optim.Adam(game.student.parameters(), lr=0.01) for game in (together, *games)]
    for t in range(steps):
        losses = []
        for i, (game, optimizer) in enumerate(zip((together, *games), optimizers, strict=True)):
            trial = slice(None) if i == 0 else i - 1
            loss = game.loss(x_u[t, trial], (x_l[t, trial], y_l[t, trial]))
            game.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            game.follow()
            losses.append(loss.item())
        assert losses[0] == pytest.approx(sum(losses[1:]), rel=1e-5)
    assert together.last.self_trained.shape == (trials,)
    assert together.last.omega.shape == (trials, ROWS)
    for i, game in enumerate(games):
        for stack, alone in ((together.student, game.student), (together.teacher, game.teacher)):
            assert_close(state_of(stack.trial(i)), state_of(alone), rtol=1e-5, atol=1e-6)


# Diagnostics


@pytest.mark.parametrize("teacher_mode", ["eval", "train"])
def test_diagnostics_draw_no_random_numbers(teacher_mode: str) -> None:
    game = Game(net(dropout=0.5), teacher_mode=teacher_mode)
    game.backward(game.loss(rows()))
    before = torch.random.get_rng_state()
    game.diagnostics()
    assert torch.equal(torch.random.get_rng_state(), before)
    assert game.teacher.training == (teacher_mode == "train")


def test_a_gradient_is_split_with_the_alpha_it_was_merged_with() -> None:
    game = apart(Game(net(), alpha=0.5))
    game.backward(game.loss(rows()))
    before = game.diagnostics()
    game.alpha = 0.9
    after = game.diagnostics()
    assert (after.leader_norm, after.interaction_norm) == (before.leader_norm, before.interaction_norm)


def test_norms_and_angle_against_two_separate_runs() -> None:
    game, detached = apart(Game(net(), alpha=0.6)), apart(Game(net(), alpha=0.6, coupling="detached"))
    for each in (game, detached):
        played(each, rows(), labelled())
    leader = flat(detached.student)
    interaction = flat(game.student) - leader
    look = game.diagnostics()
    assert look.leader_norm == pytest.approx(float(leader.norm()), rel=1e-9)
    assert look.interaction_norm == pytest.approx(float(interaction.norm()), rel=1e-9)
    angle = math.degrees(math.acos(float(leader @ interaction / (leader.norm() * interaction.norm()))))
    assert look.angle == pytest.approx(angle, rel=1e-6)
    assert look.mean_omega == pytest.approx(float(game.last.omega.mean()))

    alone = detached.diagnostics()
    assert alone.leader_norm == pytest.approx(float(leader.norm()), rel=1e-9)
    assert alone.interaction_norm == 0.0
    assert alone.angle is None
    assert alone.as_dict()["leader_norm"] == alone.leader_norm


def test_class_mass_is_the_share_of_each_class() -> None:
    game = apart(Game(net(), tau=0.7))
    played(game, rows())
    look = game.diagnostics()
    mass = game.predict_proba(rows(), by="teacher").pow(1 / 0.7).sum(0)
    assert look.class_mass == pytest.approx((mass / mass.sum()).tolist())
    assert sum(look.class_mass) == pytest.approx(1.0)


def test_a_class_of_probability_zero_has_no_mass() -> None:
    class Impossible(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Linear(FEATURES, CLASSES)

        def forward(self, x: Tensor) -> Tensor:
            return self.body(x) + x.new_tensor([0.0, -math.inf, 0.0])

    game = Game(seeded(Impossible).double())
    played(game, rows())
    mass = game.diagnostics().class_mass
    assert mass[1] == 0.0
    assert sum(mass) == pytest.approx(1.0)


def test_flips_are_counted_on_the_probe() -> None:
    game = Game(net(), alpha=0.5, tau=0.7)
    game.probe = rows(9, n=50)
    strategy = SoftStrategy(tau=0.7)

    def probe_labels() -> Tensor:
        p = game.predict_proba(game.probe, by="teacher")
        return strategy.respond(p.log()).log_y.argmax(-1)

    played(game, rows())
    look, before = game.diagnostics(), probe_labels()
    assert look.flips is None
    assert look.probe_size == 50
    assert game.diagnostics().flips == 0

    game.student.zero_grad()
    apart(game, by=1.0)
    played(game, rows(2))
    expected = int((probe_labels() != before).sum())
    assert expected > 0
    assert game.diagnostics().flips == expected
    game.reset()
    assert game.diagnostics().flips is None


def test_the_probe_is_the_first_batch_unless_set() -> None:
    game = Game(net())
    played(game, rows(1), labelled())
    game.diagnostics()
    played(game, rows(2))
    game.diagnostics()
    assert torch.equal(game.probe, rows(1))


@pytest.mark.parametrize("change", ["set another probe", "restore"])
def test_flips_are_not_counted_between_different_inputs(change: str) -> None:
    x = rows(n=40)
    game = apart(Game(net()))
    played(game, x)
    game.diagnostics()
    if change == "restore":
        state, game = game.state_dict(), Game(net())
        game.load_state_dict(saved(state))
    else:
        game.probe = x.flip(0)
    played(game, x.flip(0))
    assert game.diagnostics().flips in (None, 0)  # the teacher has not moved, so no label has changed


@pytest.mark.parametrize("coupling", ["differentiable", "shared", "detached"])
@pytest.mark.parametrize(
    "spoil",
    [
        lambda student: nn.utils.clip_grad_norm_(student.parameters(), 1e-3),
        lambda student: student.zero_grad(set_to_none=True),
        lambda student: student.zero_grad(set_to_none=False),
    ],
    ids=["clipped", "cleared", "zeroed"],
)
def test_diagnostics_refuse_gradients_that_were_changed(spoil: Callable[[nn.Module], Any], coupling: str) -> None:
    game = Game(net(), coupling=coupling)
    played(game, rows())
    assert game.diagnostics().leader_norm > 0
    spoil(game.student)
    with pytest.raises(StateError, match=r"before clipping or zero_grad"):
        game.diagnostics()


def test_diagnostics_over_micro_batches_do_not_depend_on_when_they_merge() -> None:
    once, always = (apart(Game(net(), alpha=0.3)) for _ in range(2))
    for i, seed in enumerate((1, 2)):
        once.backward(once.loss(rows(seed)), merge=i == 1)
        always.backward(always.loss(rows(seed)))
    actual, expected = always.diagnostics(), once.diagnostics()
    assert actual.interaction_norm == pytest.approx(expected.interaction_norm)
    assert actual.leader_norm == pytest.approx(expected.leader_norm)
    assert actual.angle == pytest.approx(expected.angle)


# Prediction


@pytest.mark.parametrize("training", [True, False])
def test_prediction_is_the_students_in_evaluation_mode(training: bool) -> None:
    student = net(dropout=0.5).train(training)
    game = apart(Game(student, teacher_mode="train"))
    modes = {
        name: module.training for name, module in (*student.named_modules(), *game.teacher.named_modules(prefix="t"))
    }
    by_student, by_teacher = game.predict_proba(rows()), game.predict_proba(rows(), by="teacher")
    assert modes == {n: m.training for n, m in (*student.named_modules(), *game.teacher.named_modules(prefix="t"))}
    assert not by_student.requires_grad
    assert_close(by_student, torch.softmax(copy.deepcopy(student).eval()(rows()), -1).detach(), **EXACT)
    assert_close(by_teacher, torch.softmax(copy.deepcopy(game.teacher).eval()(rows()), -1).detach(), **EXACT)
    assert (by_student - by_teacher).abs().max() > 1e-3


def test_prediction_restores_the_mode_of_each_submodule() -> None:
    student = with_buffers().train()
    student[2].eval()  # BatchNorm held fixed while the rest trains
    Game(student).predict_proba(rows())
    assert student.training
    assert student[1].training
    assert not student[2].training


def test_prediction_restores_modes_when_the_student_fails() -> None:
    student = net()
    with pytest.raises(ShapeError, match=r"could not be called with a tensor \(2, \d+\) of torch.float64"):
        Game(student).predict_proba(torch.zeros(2, FEATURES + 1, dtype=torch.float64))
    assert student.training
