"""cuDNN. It is not used by this package yet, so its settings are kept and change nothing."""

from contextlib import AbstractContextManager
from typing import Any

from .flags import checking, set_for

KINDS = {"enabled": bool, "benchmark": bool, "deterministic": bool, "allow_tf32": bool}
enabled = True
benchmark = False
benchmark_limit: int | None = 10
deterministic = False
allow_tf32 = True


def is_available() -> bool:
    """Whether convolutions may go to cuDNN: False."""
    return False


def version() -> int | None:
    """The version in use: None."""
    return None


def is_acceptable(tensor: Any) -> bool:
    """Whether cuDNN would take this tensor: False."""
    return False


def flags(enabled: bool | None = None, benchmark: bool | None = None, benchmark_limit: int | None = None,
          deterministic: bool | None = None, allow_tf32: bool | None = None) -> AbstractContextManager:
    """A block with other settings.

    >>> with fw.backends.cudnn.flags(benchmark=True):
    ...     fw.backends.cudnn.benchmark
    True
    >>> fw.backends.cudnn.benchmark
    False
    """
    return set_for(__name__, enabled=enabled, benchmark=benchmark, benchmark_limit=benchmark_limit,
                   deterministic=deterministic, allow_tf32=allow_tf32)


checking(__name__)
