"""Fine-tuning begins where a run without it ends: with a head on fixed vectors, which takes seconds to train.

The head is trained as `drift fit` trains it, with both phases. The last layer of the encoder is then fitted to what the
head answers on texts with and without labels, so that an encoder of any architecture starts at about its accuracy.
"""

from typing import TYPE_CHECKING

import torch

from drift.data.examples import Examples, Labeled
from drift.tasks.scoring import classification_scores
from drift.tasks.text.students import FROZEN
from drift.training.settings import TrainingSettings
from drift.training.threads import threads
from drift.training.trainer import Trainer

if TYPE_CHECKING:
    from drift.tasks.text.task import TextTask

FITTED = 1000  # texts whose answers the last layer is fitted to; 2,000 gave the same accuracy
NOTE = (
    "in place of the first phase, the last layer was fitted to a head on fixed vectors, trained as without --finetune;"
    " model.probe=false turns that off"
)


def head_labels(task: "TextTask", examples: Examples) -> Labeled:
    """Answers of the head, as soft labels of texts that are drawn by seed. examples: the training texts."""
    defaults, config = task.defaults(FROZEN, weak=task.data.weak is not None), task.config
    training = TrainingSettings.read({**defaults["training"], "seed": config.training.seed}, "training")
    first = task.seeds[0]
    seeds = tuple(range(first, first + config.seeds)) if task.same_labels else (first,)
    heads = type(task)(config.model_copy(update={"training": training}), FROZEN, task.method, seeds, task.progress)
    heads.data, heads.method_settings = task.data, task.method_settings
    prepared = heads.prepare()
    with threads(training.threads):
        arguments = training, task.method, task.method_settings, classification_scores
        Trainer(prepared.student, prepared.training, *arguments, seeds=seeds).run()
    model = prepared.finish(prepared.student, None)
    generator = torch.Generator().manual_seed(first)
    rows = torch.randperm(len(examples), generator=generator)[:FITTED].sort().values
    answers = torch.from_numpy(model.predict_proba([task.data.texts[int(row)]["text"] for row in rows]))
    soft = torch.zeros(len(examples), answers.shape[1]).index_copy(0, rows, answers)
    return Labeled(examples, rows, answers.argmax(1), soft)
