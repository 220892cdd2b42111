"""bfloat16: every record computes it in float32 and rounds the result, here and nowhere else.

The loops that ml_dtypes gives NumPy add up in bfloat16 (a sum of ones stops at 256), round after each step of
an expression, and take Python numbers for float32. So kernels and rules see float32 in place of bfloat16;
only records that move elements without computing (``moves``) get the arrays as they are.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import dtypes

_WIDE = np.dtype(np.float32)


def is_rounded(a: Any) -> bool:
    """Whether ``a`` (an array, or a list of parts) is bfloat16."""
    if isinstance(a, (list, tuple)):
        return any(is_rounded(part) for part in a)
    return getattr(a, "dtype", None) == dtypes.rounded


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
    return value.astype(_WIDE) if is_rounded(value) else value


def narrow(value: Any) -> Any:
    """``value`` with its float32 arrays rounded to bfloat16."""
    if isinstance(value, (list, tuple)):
        return [narrow(v) for v in value]
    return value.astype(dtypes.rounded) if getattr(value, "dtype", None) == _WIDE else value


def in_float32(kernel: Callable, /, *arrays: Any, **settings: Any) -> Any:
    """Run a kernel on bfloat16 as on float32; beside a wider array the result stays as it is."""
    out = settings.pop("out") if hasattr(settings.get("out"), "dtype") else None  # a ufunc's, to write into
    result = kernel(*[widen(a) for a in arrays], **widen(settings))
    if not any(getattr(a, "dtype", None) == _WIDE for a in arrays):
        result = narrow(result)
    if out is None:
        return result
    out[...] = result
    return out
