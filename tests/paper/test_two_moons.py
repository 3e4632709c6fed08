"""Two moons: counts, disjoint parts, and the same points for the same seed."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from drift.paper.demos.two_moons import Moons, two_moons

PARTS = ("labeled", "unlabeled", "test")


def parts(data: Moons) -> list[tuple[torch.Tensor, torch.Tensor]]:
    return [(getattr(data, f"x_{part}"), getattr(data, f"y_{part}")) for part in PARTS]


@settings(deadline=None)
@given(counts=st.tuples(*[st.integers(1, 30)] * 3), seed=st.integers(0, 99), noise=st.sampled_from([0.05, 0.1, 0.3]))
def test_points_per_class_and_disjoint_parts(counts: tuple[int, int, int], seed: int, noise: float) -> None:
    labeled, unlabeled, test = counts
    drawn = parts(two_moons(seed=seed, noise=noise, labeled=labeled, unlabeled=unlabeled, test=test))
    for (x, y), count in zip(drawn, counts, strict=True):
        assert x.shape == (2 * count, 2)
        assert x.dtype == torch.float32
        assert torch.bincount(y).tolist() == [count, count]
    points = torch.cat([x for x, _ in drawn])
    assert len(torch.unique(points, dim=0)) == len(points)


def test_parts_of_equal_size() -> None:
    for x, y in parts(two_moons(seed=0, noise=0.1, labeled=7, unlabeled=7, test=7)):
        assert x.shape == (14, 2)
        assert torch.bincount(y).tolist() == [7, 7]


def test_the_default_is_12_labelled_and_500_unlabelled_points_per_class() -> None:
    assert [len(y) for _, y in parts(two_moons(seed=0, noise=0.1))] == [24, 1000, 500]


def test_the_same_seed_gives_the_same_bits_and_another_does_not() -> None:
    one, again, other = (two_moons(seed=seed, noise=0.1) for seed in (1, 1, 2))
    for (x, y), (x_again, y_again), (x_other, _) in zip(parts(one), parts(again), parts(other), strict=True):
        assert torch.equal(x, x_again)
        assert torch.equal(y, y_again)
        assert not torch.equal(x, x_other)


def test_without_noise_every_point_lies_on_its_moon() -> None:
    for x, y in parts(two_moons(seed=0, noise=0.0)):
        upper, lower = x[y == 0], x[y == 1]
        assert torch.allclose(upper.norm(dim=1), torch.ones(len(upper)), atol=1e-6)
        assert torch.allclose((lower - torch.tensor([1.0, 0.5])).norm(dim=1), torch.ones(len(lower)), atol=1e-6)
