"""The errors a user can meet. Each also is the built-in error that Python habits expect.

Programs written for PyTorch catch ``RuntimeError`` for nearly everything, so the classes that stand
for a rejected call are that as well.
"""


class FrameworkError(Exception):
    """Base of every error that this package raises on purpose."""


class ShapeError(FrameworkError, ValueError, RuntimeError):
    """Shapes, axes or sizes that do not fit together."""


class DTypeError(FrameworkError, TypeError, RuntimeError):
    """An element type that an operation does not take."""


class DeviceError(FrameworkError, RuntimeError):
    """Operands on different devices, or a device that is not there."""


class AutogradError(FrameworkError, RuntimeError):
    """A gradient that cannot be had: freed graph, overwritten value, wrong use of a leaf."""


class CheckpointError(FrameworkError, ValueError, RuntimeError):
    """A file that is damaged, foreign or does not belong to this model."""


class MissingExtraError(FrameworkError, ImportError):
    """An optional package is needed that is not installed."""
