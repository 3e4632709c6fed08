"""scikit-learn estimator for feature vectors: `DriftClassifier`."""

from drift.estimator.classifier import DriftClassifier
from drift.estimator.student import ModuleFactory

__all__ = ["DriftClassifier", "ModuleFactory"]
