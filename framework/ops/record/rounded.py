"""bfloat16: every record computes it in float32 and rounds the result, here and nowhere else.

The loops that ml_dtypes gives NumPy add up in bfloat16 (a sum of ones stops at 256), round after each step of
an expression, and take Python numbers for float32. So kernels and rules see float32 in place of bfloat16;
only records that move elements without computing (``moves``) get the arrays as they are, and those whose
native functions round by themselves (``rounds``).
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import _native, dtypes

_WIDE = np.dtype(np.float32)


def _convert() -> Callable:
    native = getattr(_native.module, "cast", None)
    if native is None:
        return lambda array, dtype: array.astype(dtype)

    def convert(array: Any, dtype: Any) -> Any:
        out = native(array, dtype)
        return array.astype(dtype) if out is NotImplemented else out
    return convert


_converted = _convert()


def is_rounded(a: Any) -> bool:
    """Whether ``a`` (an array, or a list of parts) is bfloat16."""
    if isinstance(a, (list, tuple)):
        return any(is_rounded(part) for part in a)
    dtype = getattr(a, "dtype", None)
    return getattr(dtype, "kind", "") == "V" and dtype == dtypes.rounded  # comparing dtypes takes a while


def widen(value: Any) -> Any:
    """``value`` with float32 in place of bfloat16: arrays, dtypes, and what holds them."""
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)([widen(v) for v in value])
    if isinstance(value, dict):
        return {k: widen(v) for k, v in value.items()}
    if isinstance(value, np.dtype):
        return _WIDE if value == dtypes.rounded else value
    if value is dtypes.bfloat16:
        return dtypes.float32
    return _converted(value, _WIDE) if is_rounded(value) else value


def in_bfloat16(value: Any) -> Any:
    """``value`` with its float32 arrays rounded to bfloat16."""
    if isinstance(value, (list, tuple)):
        return [in_bfloat16(v) for v in value]
    return _converted(value, dtypes.rounded) if getattr(value, "dtype", None) == _WIDE else value


def in_float32(kernel: Callable, /, *arrays: Any, **settings: Any) -> Any:
    """Run a kernel on bfloat16 as on float32; beside a wider array the result stays as it is."""
    out = settings.pop("out") if hasattr(settings.get("out"), "dtype") else None  # a ufunc's, to write into
    result = kernel(*[widen(a) for a in arrays], **widen(settings))
    if not any(getattr(a, "dtype", None) == _WIDE for a in arrays):
        result = in_bfloat16(result)
    if out is None:
        return result
    out[...] = result
    return out


def rounded_or(name: str | None, kernel: Callable) -> Callable | None:
    """The native function ``name`` for bfloat16, with the kernel in float32 behind it; None without one."""
    native: Any = None if name is None else getattr(_native.module, name, None)
    if native is None:
        return None

    def rounded(*arrays: Any, **settings: Any) -> Any:
        out = native(*arrays, **settings)
        return in_float32(kernel, *arrays, **settings) if out is NotImplemented else out
    return rounded


def by_float32(plain: Callable, kernel: Callable) -> Callable:
    """``plain``, but what is bfloat16 goes once more to ``kernel()``, as float32."""
    def fallback(*arrays: Any, **settings: Any) -> Any:
        if dtypes.rounded is not None and any(map(is_rounded, (*arrays, *settings.values()))):
            return in_float32(kernel(), *arrays, **settings)
        return plain(*arrays, **settings)
    return fallback
