"""The errors a user can meet. Each also is the built-in error that Python habits expect.

Programs written for PyTorch catch ``RuntimeError`` for nearly everything, so the classes that stand
for a rejected call are that as well.
"""

import contextlib as _contextlib

import numpy as _np


class FrameworkError(Exception):
    """Base of every error that this package raises on purpose."""


class ShapeError(FrameworkError, ValueError, RuntimeError):
    """Shapes, axes or sizes that do not fit together."""


class DTypeError(FrameworkError, TypeError, RuntimeError):
    """An element type that an operation does not take."""


class LayoutError(FrameworkError, NotImplementedError):
    """A sparse tensor where only dense ones are taken."""


class LinAlgError(FrameworkError, _np.linalg.LinAlgError, RuntimeError):
    """A matrix that has no such factor, inverse or solution."""


class RangeError(FrameworkError, OverflowError, RuntimeError):
    """A Python number that the element type of a tensor cannot hold."""


class DivisionError(FrameworkError, ZeroDivisionError, RuntimeError):
    """Whole numbers divided by 0."""


class DeviceError(FrameworkError, RuntimeError):
    """Operands on different devices, or a device that is not there."""


class OutOfMemoryError(FrameworkError, MemoryError, RuntimeError):
    """Memory that a device has not got."""


class AutogradError(FrameworkError, RuntimeError):
    """A gradient that cannot be had: freed graph, overwritten value, wrong use of a leaf."""


class TraceError(FrameworkError, RuntimeError):
    """What a trace cannot say: a value read by Python, a random draw, a backward."""


class CompileError(FrameworkError, RuntimeError):
    """A strictly compiled function did what no plan covers."""


class AnomalyError(AutogradError, FloatingPointError):
    """A NaN or Inf that anomaly mode found where an op made it."""


class SharingError(AutogradError, BufferError):
    """A tensor that another library cannot share: one that requires grad."""


class CheckpointError(FrameworkError, ValueError, RuntimeError):
    """A file that is damaged, foreign or does not belong to this model."""


class MissingExtraError(FrameworkError, ImportError):
    """An optional package is needed that is not installed."""


class SharedMemoryError(FrameworkError, OSError):
    """Shared memory that cannot be had: no room, no descriptor, or a system without it."""


class SaveError(FrameworkError, OSError):
    """A file that could not be written: no room, or a disk that fails. What was there before still is."""


class DistributedError(FrameworkError, RuntimeError):
    """A call that all ranks must make together and could not be done: one is gone, late or elsewhere."""


def add_note(error: BaseException, text: str) -> None:
    """Add a note to an error that may be the user's; one that takes none (a frozen dataclass) stays as it is.

    >>> error = ValueError("too long")
    >>> fw.errors.add_note(error, "while reading line 3")
    >>> error.__notes__
    ['while reading line 3']
    """
    with _contextlib.suppress(Exception):  # nothing is to hide the error itself
        error.add_note(text)


def kind_of(value: object) -> str:
    """The type of what came, as messages name it: with its package where another library has our name.

    >>> fw.errors.kind_of(1.5)
    'float'
    """
    kind = type(value)
    package = kind.__module__.partition(".")[0]
    ours = package == __name__.partition(".")[0] or kind.__name__ not in ("Tensor", "Parameter", "Module")
    return kind.__name__ if ours else f"{package}.{kind.__name__}"
