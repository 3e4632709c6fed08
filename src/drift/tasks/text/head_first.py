"""Fine-tuning begins where a run without it ends: with a head on fixed vectors, which takes seconds to train.

The head is trained as `drift fit` trains it, with both phases. The last layer of the encoder is then fitted to what the
head answers on texts with and without labels, so that an encoder of any architecture starts at about its accuracy.
Vectors come from the layers that are trained, on stored outputs of the others if there are any: that is less work than
to embed the texts by the whole encoder.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from drift.core.forward import Inputs
from drift.data.examples import Examples, Labeled, Vectors, moved
from drift.models.devices import best_device, device_of
from drift.models.encoders import encoder_pool, pooled
from drift.models.precision import chosen_mixed_precision
from drift.models.probing import fit_last_layer
from drift.models.stacked import Stacked
from drift.tasks.heads import decay_scale, linear_head, scaling
from drift.tasks.scoring import classification_scores
from drift.tasks.text.settings import TextModelSettings
from drift.tasks.text.students import FROZEN, TextStudent
from drift.training.devices import SingleProcess
from drift.training.evaluation import answers, predict
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


def fit_to_head(task: "TextTask", student: TextStudent, examples: Examples) -> None:
    """Fit the last layer of a fine-tuned encoder to a head on its vectors. examples: the training texts."""
    config, seed = task.config, task.seeds[0]
    bfloat16 = chosen_mixed_precision(config.training.precision) == "bf16"

    def heads(settings: TextModelSettings, _: Any, classes: list[str], seeds: Sequence[int], *more: Any) -> TextStudent:
        vectors = _vectors(student.module, examples, settings, bfloat16)
        mean, scale = map(torch.from_numpy, scaling(vectors.numpy()))

        def scaled(texts: Any) -> Vectors:
            own = task.data.texts is texts
            found = vectors if own else _vectors(student.module, student.examples(texts), settings, bfloat16)
            return Vectors((found - mean) / scale)

        head = [linear_head(vectors.shape[1], len(classes), settings.dropout or 0.0) for _ in seeds]
        return TextStudent(Stacked(head, decay_scale=decay_scale(len(classes))), scaled, student.finish, [])

    defaults = task.defaults(FROZEN, weak=task.data.weak is not None)
    training = TrainingSettings.read({**defaults["training"], "seed": seed}, "training")
    seeds = tuple(range(seed, seed + config.most_seeds)) if task.same_labels else (seed,)
    kind, config = replace(FROZEN, build=heads), config.model_copy(update={"training": training})
    alone = type(task)(config, kind, task.method, seeds, task.progress)
    alone.data, alone.method_settings = replace(task.data, dev=None, test=None), task.method_settings
    prepared = alone.prepare()
    with threads(training.threads):
        arguments = training, task.method, task.method_settings, classification_scores
        trainer = Trainer(prepared.student, prepared.training, *arguments, seeds=seeds)
        trainer.run()
    rows = torch.randperm(len(examples), generator=torch.Generator().manual_seed(seed))[:FITTED].sort().values
    by_seed = predict(trainer.method, prepared.training.labeled.examples, rows, trainer.machine, trials=len(seeds))
    y = by_seed.clamp_min(torch.finfo(by_seed.dtype).tiny).log().mean(0).softmax(-1)  # of the average head, (n, C)
    soft = torch.zeros(len(examples), y.shape[1]).index_copy(0, rows, y)
    fit_last_layer(student.module, Labeled(examples, rows, y.argmax(1), soft), seed=seed, bfloat16=bfloat16)


@torch.inference_mode()
def _vectors(module: Any, examples: Examples, settings: TextModelSettings, bfloat16: bool) -> Tensor:
    """The vectors of the encoder within a classifier, `(n, D)`, as a fixed encoder would give them."""
    home, device = device_of(module), best_device()
    encoder = getattr(module, module.base_model_prefix)
    pool = encoder_pool(settings.name) if settings.pool == "auto" else settings.pool

    def answer(inputs: Inputs) -> Tensor:
        inputs = moved(inputs, device)
        assert isinstance(inputs, dict)
        output = encoder(**inputs, output_hidden_states=pool == "layers")
        return pooled(output, inputs["attention_mask"], pool).float()

    module.eval().to(device)
    with torch.autocast(device.type, torch.bfloat16, enabled=bfloat16):
        vectors = answers(answer, examples, torch.arange(len(examples)), SingleProcess())
    module.train().to(home)
    return vectors
