"""The temperature against a grid search, and the calibration error against counts by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_softmax, softmax

from drift.tasks.calibration import LIMITS, calibration_error, fit_temperature, rescaled


def draws(rows: int, sharpness: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Logits, and labels that follow the probabilities of logits * sharpness."""
    generator = np.random.default_rng(seed)
    logits = 2 * generator.standard_normal((rows, 3))
    labels = np.array([generator.choice(3, p=p) for p in softmax(logits * sharpness, -1)])
    return logits, labels


@settings(max_examples=20)
@given(st.integers(1, 60), st.floats(0.3, 3), st.integers(0, 1000))
def test_no_temperature_of_a_grid_is_better(rows: int, sharpness: float, seed: int) -> None:
    logits, labels = draws(rows, sharpness, seed)

    def negative_log_likelihood(temperature: float) -> float:
        """Of the labels, and of one more row with equal shares of all classes."""
        log_q = log_softmax(logits / temperature, -1)
        return -(log_q[np.arange(rows), labels].sum() + log_q.mean())

    fitted = fit_temperature(softmax(logits, -1), labels)
    grid = map(negative_log_likelihood, np.geomspace(*LIMITS, 400))
    assert negative_log_likelihood(fitted) <= min(grid) + 1e-5


@pytest.mark.parametrize("sharpness", [0.5, 1.0, 2.0])
def test_the_temperature_inverts_a_scaling_of_the_logits(sharpness: float) -> None:
    logits, labels = draws(20_000, sharpness, seed=1)
    assert fit_temperature(softmax(logits, -1), labels) == pytest.approx(1 / sharpness, rel=0.05)


def test_a_few_rows_that_are_all_right_do_not_make_every_prediction_certain() -> None:
    probabilities, labels = np.array([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3]]), np.array([0, 1, 0])
    temperature = fit_temperature(probabilities, labels)
    assert 2 * LIMITS[0] < temperature < 1
    assert np.exp(rescaled(probabilities, temperature)).max() < 0.999


def test_probabilities_that_were_rounded_to_zero_are_accepted() -> None:
    probabilities = np.array([[1, 0], [0, 1], [1, 0], [0.6, 0.4]], dtype=np.float32)
    temperature = fit_temperature(probabilities, np.array([0, 1, 1, 0]))
    assert LIMITS[0] <= temperature <= LIMITS[1]
    assert np.isfinite(rescaled(probabilities, temperature)).all()


def test_rescaling_divides_the_logits() -> None:
    logits, _ = draws(50, 1.0, seed=2)
    np.testing.assert_allclose(rescaled(softmax(logits, -1), 1.7), log_softmax(logits / 1.7, -1), atol=1e-9)


def test_calibration_error_by_hand() -> None:
    # 15 bins: 0.95 and 1.0 share the last one, 0.62 and 0.65 are in the tenth.
    confidence = np.array([0.95, 1.0, 0.62, 0.65, 0.72])
    labels = np.array([0, 1, 0, 0, 1])
    probabilities = np.stack([confidence, 1 - confidence], 1)
    by_hand = 2 / 5 * abs(1 / 2 - 0.975) + 2 / 5 * abs(1 - 0.635) + 1 / 5 * abs(0 - 0.72)
    assert calibration_error(probabilities, labels) == pytest.approx(by_hand)


def test_calibration_error_of_certain_predictions() -> None:
    certain = np.eye(3)[[0, 1, 2, 1]]
    assert calibration_error(certain, np.array([0, 1, 2, 1])) == 0
    assert calibration_error(certain, np.array([1, 2, 0, 0])) == 1
