"""The door between op records and the native kernels of ``framework._native``."""

from collections.abc import Callable
from functools import update_wrapper
from typing import Any

from .. import _native


def native_or(name: str | None, plain: Callable) -> Callable:
    """``plain``, but the extension's function ``name`` is asked first, where there is one.

    It takes the same arguments and returns NotImplemented for cases that it leaves to ``plain``.
    """
    native: Any = None if name is None else getattr(_native.module, name, None)
    if native is None:
        return plain

    def kernel(*arrays: Any, **settings: Any) -> Any:
        out = native(*arrays, **settings)
        return plain(*arrays, **settings) if out is NotImplemented else out
    return update_wrapper(kernel, plain) if hasattr(plain, "__name__") else kernel
