"""The door between op records and the native kernels of ``framework._native``."""

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _native


def native_or(name: str | None, plain: Callable, wide: Callable | None = None, whole: str = "") -> Callable:
    """``plain``, but the extension's function ``name`` is asked first, where there is one.

    It takes the same arguments and returns NotImplemented for cases that it leaves to ``plain``.
    wide: what stands behind it for float16 and bfloat16, for which it is asked once more as float32 before.
    whole: "kept" or "summed": int64 goes to it once more as float64, where that is exact (see ``Op``).
    """
    native: Any = None if name is None else getattr(_native.module, name, None)
    return plain if native is None else _native.module.preferring(native, plain, wide, whole)


def asked(kernel: Any) -> Any:
    """The native function that ``kernel``, which ``native_or`` gave, asks first; None of others."""
    return kernel.native if type(kernel).__name__ == "Preferred" else None


def use_winograd(on: bool) -> bool:
    """Whether wide 3x3 convolutions go by Winograd's minimal filtering; returns what was before.

    On at first. It is up to twice as quick and no less exact; but where the input has an inf or nan, pixels
    beside those that see it (one, with bfloat16 up to three) may be nan as well, which is the reason to
    switch it off.

    >>> before = fw.backends.native.use_winograd(False)
    >>> _ = fw.backends.native.use_winograd(before)
    """
    return False if _native.module is None else _native.module.use_winograd(bool(on))


def _sum_of_two() -> Callable:
    def by_numpy(x: Any, y: Any, out: Any = None) -> Any:
        return np.asarray(np.add(x, y, out=out))  # of two without dimensions NumPy makes a number, no array
    if _native.module is None:
        return by_numpy
    step = ("add", 2, 0, 1, 0)
    return _native.module.make_kernel(("x", "y"), (False, False), (), 0, (step,), 0, False, by_numpy)


add: Callable = _sum_of_two()  # of gradients that meet in backward
copied: Callable = native_or("clone", lambda x: x.copy())  # of a gradient, for a leaf of its own
converted: Callable = native_or("cast", lambda array, dtype: array.astype(dtype))  # of another dtype
