"""The game on a real pretrained encoder and real texts, if they are available."""

import copy
import gzip
import itertools
import json
import os
from pathlib import Path

import pytest
import torch

from drift import Game

transformers = pytest.importorskip("transformers", reason="needs transformers: pip install 'drift-ssl[text]'")
ENCODER = Path(os.environ.get("DRIFT_MODELS") or "nowhere") / "paraphrase-MiniLM-L3-v2"
TEXTS = Path(os.environ.get("DRIFT_DATA") or "nowhere") / "agnews" / "train.jsonl.gz"
pytestmark = pytest.mark.skipif(
    not (ENCODER.is_dir() and TEXTS.is_file()),
    reason="set DRIFT_MODELS to a folder with paraphrase-MiniLM-L3-v2 and DRIFT_DATA to one with agnews",
)


@pytest.fixture(scope="module")
def texts() -> dict[str, torch.Tensor]:
    with gzip.open(TEXTS, "rt", encoding="utf-8") as lines:
        batch = [json.loads(line)["text"] for line in itertools.islice(lines, 8)]
    tokenizer = transformers.AutoTokenizer.from_pretrained(ENCODER)
    return dict(tokenizer(batch, padding=True, truncation=True, max_length=32, return_tensors="pt"))


@pytest.fixture(scope="module")
def encoder() -> torch.nn.Module:
    torch.manual_seed(0)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(ENCODER, dtype=torch.float64, num_labels=4)
    with torch.no_grad():
        model.classifier.weight.mul_(50)  # a new head predicts nearly uniformly; pseudo-labels need larger logits
    return model.train()


def test_the_gradient_is_that_of_the_total_derivative_along_a_direction(
    encoder: torch.nn.Module, texts: dict[str, torch.Tensor]
) -> None:
    """Moving the student by h moves the teacher by (1 - α) h: finite differences in float64, dropout off."""
    student = copy.deepcopy(encoder).eval()
    game = Game(student, alpha=0.7)
    game.backward(game.loss(unlabeled=texts))
    generator = torch.Generator().manual_seed(1)
    direction = [
        torch.randn(p.shape, generator=generator, dtype=p.dtype) * p.detach().std() for p in student.parameters()
    ]
    analytic = sum(
        float((p.grad * d).sum()) for p, d in zip(student.parameters(), direction, strict=True) if p.grad is not None
    )
    values = []
    for h in (1e-5, -1e-5):
        moved = copy.deepcopy(game)
        with torch.no_grad():
            for p, t, d in zip(moved.student.parameters(), moved.teacher.parameters(), direction, strict=True):
                p.add_(d, alpha=h)
                t.add_(d, alpha=0.3 * h)
            values.append(float(moved.loss(unlabeled=texts)))
    assert (values[0] - values[1]) / 2e-5 == pytest.approx(analytic, rel=1e-4)


def test_a_step_moves_student_and_teacher(encoder: torch.nn.Module, texts: dict[str, torch.Tensor]) -> None:
    game = Game(copy.deepcopy(encoder).float(), alpha=0.9)
    before = game.teacher.classifier.weight.clone()
    optimizer = torch.optim.AdamW(game.student.parameters(), lr=1e-3)
    game.backward(game.loss(unlabeled=texts))
    diagnostics = game.diagnostics()
    optimizer.step()
    game.follow()
    assert diagnostics.interaction_norm > 0
    expected = 0.9 * before + 0.1 * game.student.classifier.weight
    torch.testing.assert_close(game.teacher.classifier.weight, expected)
