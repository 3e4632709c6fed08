"""What can go wrong, by name. Every message says what was seen, where, and what to do."""


class DriftError(Exception):
    """Base of every error this package raises on purpose."""


class ConfigError(DriftError, ValueError):
    """A setting is out of range, or two settings contradict each other."""


class ShapeError(DriftError, ValueError):
    """A tensor or array does not have the shape the call needs."""


class DataError(DriftError, ValueError):
    """Values in the data cannot be computed with."""


class LabelError(DriftError, ValueError):
    """Labels are missing, out of range, or mean two things at once."""


class StateError(DriftError, RuntimeError):
    """A call came out of order, or a saved state does not fit."""


class FileError(DriftError, OSError):
    """A file is missing, damaged, or not one of ours."""


class Interrupted(DriftError, RuntimeError):  # noqa: N818 - a wish, not an error
    """Somebody stopped the run; what was reached is saved."""
