"""bfloat16 and float16: records compute them in float32 and round the result, here and nowhere else.

The loops that ml_dtypes gives NumPy add up in bfloat16 (a sum of ones stops at 256), round after each step of
an expression, and take Python numbers for float32. So kernels and rules see float32 in place of bfloat16;
only records that move elements without computing (``moves``) get the arrays as they are, and those whose
native functions round by themselves (``rounds``).

float16 NumPy can compute itself, one element at a time and slowly; where there is a native function for
float32 it goes there. That is found out when the function has declined, so that nobody else pays for it.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ... import _native, dtypes
from ...backends.native import converted, native_or

_WIDE = np.dtype(np.float32)
_HALF = np.dtype(np.float16)


def is_rounded(a: Any) -> bool:
    """Whether ``a`` (an array, or a list of parts) is bfloat16."""
    if isinstance(a, (list, tuple)):
        return any(is_rounded(part) for part in a)
    dtype = getattr(a, "dtype", None)
    return getattr(dtype, "kind", "") == "V" and dtype == dtypes.rounded  # comparing dtypes takes a while


def is_numpy(a: Any) -> bool:
    """Whether ``a`` (an array, or a list of parts) lies in the memory of the CPU."""
    if isinstance(a, (list, tuple)):
        return any(is_numpy(part) for part in a)
    return isinstance(a, (np.ndarray, np.generic))


def is_half(a: Any) -> bool:
    """Whether ``a`` (an array, or a list of parts) is float16."""
    if isinstance(a, (list, tuple)):
        return any(is_half(part) for part in a)
    return getattr(a, "dtype", None) is _HALF  # NumPy has one object for it


def widen(value: Any, half: bool = False) -> Any:
    """``value`` with float32 in place of bfloat16 (or of float16): arrays, dtypes, and what holds them."""
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)([widen(v, half) for v in value])
    if isinstance(value, dict):
        return {k: widen(v, half) for k, v in value.items()}
    if isinstance(value, np.dtype):
        return _WIDE if value == (_HALF if half else dtypes.rounded) else value
    if value is (dtypes.float16 if half else dtypes.bfloat16):
        return dtypes.float32
    return converted(value, _WIDE) if (is_half if half else is_rounded)(value) else value


def widened(array: Any) -> Any:
    """The array as float32 if it is float16 or bfloat16, whose sums take NumPy a while."""
    narrow = array.dtype.itemsize == 2 and array.dtype.kind in dtypes.FLOATING
    return converted(array, _WIDE) if narrow else array


def rounded_as(value: Any, half: bool = False) -> Any:
    """``value`` with its float32 arrays rounded to bfloat16, or to float16."""
    return _rounded(value, _HALF if half else dtypes.rounded)


def _rounded(value: Any, dtype: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_rounded(v, dtype) for v in value]
    if isinstance(value, np.generic):  # beside a Python number a scalar of bfloat16 becomes float64
        value = np.asarray(value)
    return converted(value, dtype) if getattr(value, "dtype", None) == _WIDE else value


# settings in which no dtype can be
_SIMPLE = frozenset((int, float, bool, type(None), str, slice, type(Ellipsis)))


def _of_one_kind(arrays: tuple, settings: dict) -> np.dtype | None:
    """The dtype to round to where all is usual: arrays of bfloat16, or of float16, beside whole numbers and
    truth values, and settings that are numbers; None where that takes more asking."""
    found = None
    for a in arrays:
        if type(a) is np.ndarray:
            dtype = a.dtype
            if dtype.kind in "iub":
                continue
            if dtype is not _HALF and dtype is not dtypes.rounded or found is not None and dtype is not found:
                return None
            found = dtype
        elif type(a) not in _SIMPLE:
            return None
    for value in settings.values():
        if type(value) is tuple:
            for one in value:
                if type(one) not in _SIMPLE:
                    return None
        elif type(value) not in _SIMPLE:
            return None
    return found


def in_float32(kernel: Callable, /, *arrays: Any, **settings: Any) -> Any:
    """Run a kernel on bfloat16 (or float16) as on float32; beside a wider array the result stays as it is."""
    dtype = _of_one_kind(arrays, settings)
    if dtype is not None:
        result = kernel(*[converted(a, _WIDE) if getattr(a, "dtype", None) is dtype else a for a in arrays],
                        **settings)
        return _rounded(result, dtype)
    half = any(map(is_half, (*arrays, *settings.values())))
    out = settings.pop("out") if hasattr(settings.get("out"), "dtype") else None  # a ufunc's, to write into
    result = kernel(*[widen(a, half) for a in arrays], **widen(settings, half))
    if not any(getattr(a, "dtype", None) == _WIDE for a in arrays):
        result = _rounded(result, _HALF if half else dtypes.rounded)
    if out is None:
        return result
    out[...] = result
    return out


if hasattr(_native.module, "short_in_float32"):
    in_float32 = _native.module.short_in_float32(in_float32)


def narrowing(kernel: Callable) -> Callable:
    """``kernel`` for bfloat16 and float16: as for float32, and rounded."""
    by_python = partial(in_float32, kernel)
    return _native.module.narrowing(kernel, by_python) if hasattr(_native.module, "narrowing") else by_python


def rounded_or(name: str | None, kernel: Callable) -> Callable | None:
    """The native function ``name`` for bfloat16, with the kernel in float32 behind it; None without one."""
    if name is None or not hasattr(_native.module, name):
        return None
    return native_or(name, narrowing(kernel))


def by_float32(plain: Callable, kernel: Callable) -> Callable:
    """``plain``, but what is bfloat16 or float16 goes once more to ``kernel()``, as float32."""
    def fallback(*arrays: Any, **settings: Any) -> Any:
        for a in (*arrays, settings["out"]) if "out" in settings else arrays:
            if type(a) is np.ndarray and (a.dtype is _HALF or a.dtype.kind == "V"):
                break
        else:  # nearly always, and quicker to know
            return plain(*arrays, **settings)
        given = (*arrays, *settings.values())
        if any(map(is_half, given)) or (dtypes.rounded is not None and any(map(is_rounded, given))):
            return in_float32(kernel(), *arrays, **settings)
        return plain(*arrays, **settings)
    return fallback


def native_or_wide(name: str | None, plain: Callable, whole: str = "") -> Callable:
    """``native_or`` for what computes: float16, which the native function declines, goes to it as float32,
    and where there is no such function to ``plain`` as float32."""
    if _native.module is None:
        return plain

    def halves(*arrays: Any, **settings: Any) -> Any:
        if any(map(is_half, arrays)):
            return in_float32(kernel, *arrays, **settings)
        return plain(*arrays, **settings)
    native = None if name is None else getattr(_native.module, name, None)
    kernel = _native.module.preferring(native, plain, halves, "" if native is None else whole)
    return kernel
