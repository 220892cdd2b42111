"""cuDNN's settings. It computes convolutions, batch norms and attention where NVIDIA's frontend is installed
(``cudnn_graphs.py``), and recurrent layers where libcudnn is, unless bitwise equal runs are asked for
(``cudnn_recurrent.py``); ``benchmark`` is kept and changes nothing: the first plan that fits is taken.
"""

from contextlib import AbstractContextManager
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from . import cuda, precision
from .flags import checking, set_for

KINDS = {"enabled": bool, "benchmark": bool, "deterministic": bool, "allow_tf32": bool}
enabled = True
benchmark = False
benchmark_limit: int | None = 10
deterministic = False
allow_tf32 = True


class _Kind:
    """Precision of convolutions, or of recurrent layers; both are what ``allow_tf32`` says."""

    @property
    def fp32_precision(self) -> str:
        """ "tf32" or "ieee"."""
        return "tf32" if allow_tf32 else "ieee"

    @fp32_precision.setter
    def fp32_precision(self, word: str) -> None:
        global allow_tf32
        allow_tf32 = precision.is_tf32(word, "backends.cudnn")


conv = rnn = _Kind()


def is_available() -> bool:
    """Whether convolutions may go to cuDNN: there is a GPU, and ``nvidia-cudnn-frontend`` is installed."""
    return find_spec("cudnn") is not None and cuda.is_available()


def version() -> int | None:
    """The version in use, 92801 say; None without it."""
    return int(import_module("cudnn").backend_version()) if is_available() else None


def is_acceptable(tensor: Any) -> bool:
    """Whether cuDNN would take this tensor: one of 16 bits or float32 on a GPU."""
    return is_available() and tensor.is_cuda and tensor.is_floating_point() and tensor.element_size() < 8


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
