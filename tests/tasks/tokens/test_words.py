"""Tagged words in windows: a step uses the first sub-words of tagged words, not padding or other sub-words."""

from random import Random

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from drift import Game
from drift.core.labels import log_soft_labels
from drift.data.examples import Batch
from drift.data.windows import Windows
from drift.methods.supervised import Supervised, SupervisedSettings
from drift.tasks.tokens.words import LabeledWords, UnlabeledWords, tagged
from drift.training.devices import SingleProcess
from drift.training.evaluation import predict
from drift.training.feeds import Feed

# Special sub-words are 0 and 1, padding is 9; a word's first sub-word is 2 to 5, the others 6 to 8.
IDS = [[0, 2, 6, 3, 1], [0, 4, 1], [0, 5, 6, 7, 2, 4, 8, 1]]
PLACES = [[1, 3], [1], [1, 4, 5]]
FIRSTS = torch.tensor([2, 3, 4, 5, 2, 4])


class WordByWord(nn.Module):
    """Logits of a sub-word that depend only on its id."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(10, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64))

    def forward(self, input_ids: Tensor, attention_mask: Tensor, words: Tensor) -> Tensor:
        return self.table[input_ids].flatten(0, 1)[words]


def windows() -> Windows:
    return Windows([np.array(row) for row in IDS], [np.array(row) for row in PLACES], [0, 1, 2], padding=9)


def test_only_words_with_a_tag_have_logits() -> None:
    student = WordByWord()
    part = tagged(windows(), np.array([2, -1, -1, 0, -1, 1]))
    assert part.rows.tolist() == [0, 2]  # the window between them has no tag
    assert part.size == 3
    inputs, labels = part.pair(torch.tensor([1, 0]))
    assert labels.tolist() == [0, 1, 2]
    assert len(inputs["input_ids"]) == 2  # words without a tag are context
    loss = Supervised(student, SupervisedSettings()).initial_loss(Batch((inputs, labels)))
    torch.testing.assert_close(loss, cross_entropy(student.table[FIRSTS[[3, 5, 0]]], labels))


def test_a_word_without_a_tag_gives_no_gradient() -> None:
    student = WordByWord()
    part = tagged(windows(), np.array([-1, 1, -1, -1, -1, -1]))
    Supervised(student, SupervisedSettings()).initial_loss(Batch(part.pair(torch.tensor([0])))).backward()
    touched = student.table.grad.abs().sum(1) > 0
    assert touched.nonzero().flatten().tolist() == [3]


def test_class_masses_count_only_first_sub_words() -> None:
    student = WordByWord()
    game = Game(student, tau=0.5)
    part = UnlabeledWords(windows(), torch.arange(3), torch.tensor([0, 1, -1, 2, 0, 1]))
    loss = game.loss(unlabeled=part.examples.inputs(part.rows))
    log_p = student.table[FIRSTS].log_softmax(-1).detach()
    torch.testing.assert_close(game.last.log_p, log_p)
    torch.testing.assert_close(game.last.log_y, log_soft_labels(log_p, 0.5))
    game.backward(loss)
    masses = (log_p / 0.5).exp().sum(0)
    torch.testing.assert_close(torch.tensor(game.diagnostics().class_mass), (masses / masses.sum()).float())
    assert (student.table.grad[[0, 1, 6, 7, 8, 9]] == 0).all()


def test_gold_tags_are_in_the_order_of_the_first_windows() -> None:
    gold = torch.tensor([0, 1, -1, 2, 0, 1])
    part = UnlabeledWords(windows(), torch.tensor([2, 0, 1]), gold)
    assert part.first_gold(2).tolist() == [2, 0, 1, 0, 1]
    assert UnlabeledWords(windows(), torch.tensor([2])).first_gold(2) is None


@given(st.lists(st.integers(1, 6), min_size=1, max_size=300), st.randoms())
def test_predictions_come_in_the_order_of_the_words(counts: list[int], random: Random) -> None:
    """The id of a word is its number, and its logit is that number; windows have other lengths than words."""
    firsts = np.concatenate([[0], np.cumsum(counts)])
    sizes = [count + random.randint(0, 4) for count in counts]
    ids = [
        np.pad(np.arange(first, first + n), (0, size - n))
        for first, n, size in zip(firsts[:-1], counts, sizes, strict=True)
    ]
    made = Windows(ids, [np.arange(n) for n in counts], list(range(len(counts))), padding=0)

    class Echo(nn.Module):
        def forward(self, input_ids: Tensor, attention_mask: Tensor, words: Tensor) -> Tensor:
            logits = input_ids.flatten()[words].double()[:, None] / firsts[-1]
            return torch.cat([logits, torch.zeros_like(logits)], 1)

    probabilities = predict(Supervised(Echo(), SupervisedSettings()), made, torch.arange(len(made)), SingleProcess())
    expected = torch.sigmoid(torch.arange(firsts[-1], dtype=torch.float64) / firsts[-1])
    torch.testing.assert_close(probabilities[:, 0], expected)


def test_chosen_rows_have_their_words_in_the_order_of_the_rows() -> None:
    student = WordByWord()
    part = LabeledWords(windows(), torch.tensor([2, 1]), torch.zeros(6, dtype=torch.long))
    probabilities = predict(Supervised(student, SupervisedSettings()), part.examples, part.rows, SingleProcess())
    torch.testing.assert_close(probabilities, student.table[FIRSTS[[3, 4, 5, 2]]].softmax(-1))


def test_micro_batches_know_the_number_of_words_of_their_step() -> None:
    many = Windows([np.array([k % 9, 1, 2]) for k in range(12)], [np.arange(1 + k % 3) for k in range(12)],
                   list(range(12)), padding=9)  # fmt: skip
    tags = np.where(np.arange(int(many.counts.sum())) % 2, 1, -1)
    parts = (tagged(many, tags), UnlabeledWords(many, torch.arange(12)))
    feeds = [
        Feed(*parts, batch_size=5, unlabeled_batch_size=7, seeds=(0,), process=process, processes=2, micro_batches=2)
        for process in range(2)
    ]
    for _ in range(3):
        pieces = [piece for feed in feeds for piece in next(feed)]
        (totals,) = {piece.totals for piece in pieces}
        assert totals.labeled == sum(len(piece.labeled[1]) for piece in pieces)
        assert totals.unlabeled == sum(int(many.counts[piece.unlabeled_rows].sum()) for piece in pieces)
        assert [piece.pieces for piece in pieces] == [2] * 4
        elsewhere = pieces[0].to(torch.device("meta"))
        assert (elsewhere.totals, elsewhere.pieces) == (totals, 2)
    (whole,) = next(Feed(*parts, batch_size=5, unlabeled_batch_size=7, seeds=(0,)))
    assert whole.totals is None
