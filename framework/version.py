"""The version of this package, and of what it was built with or runs on.

>>> fw.version.hip is None
True
"""

from typing import Any

from .backends import cuda as _backend
from .config.listing import own as _own

__version__ = "0.1.0"
debug = False
git_version = "unknown"
hip = None
rocm = None
xpu = None


def _cuda() -> str | None:
    """The CUDA that the installed CuPy is built for, "12.9" say; None without CuPy."""
    if not _backend.is_built():
        return None
    number = _backend.cupy().cuda.runtime.runtimeGetVersion()
    return f"{number // 1000}.{number % 1000 // 10}"


def __getattr__(name: str) -> Any:
    if name == "cuda":
        return _cuda()
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


__dir__ = _own(globals(), "debug git_version hip rocm xpu")
