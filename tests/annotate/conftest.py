"""Sessions of the tests learn from clusters: a few steps are enough."""

import pytest

from drift.annotate import heads

STEPS = {"initial_steps": 40, "steps": 30, "unlabeled_batch_size": 32, "batch_size": 32}


@pytest.fixture(autouse=True, scope="package")
def few_steps() -> object:
    """Fewer steps, except in the training process of a session, which reads the settings of the package."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(heads.QUICK, "training", {**heads.QUICK["training"], **STEPS})
        yield
