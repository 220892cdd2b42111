"""The tables NumPy -> our ops, and what their entries share."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from .. import dtypes
from ..autograd.mode import state
from ..backends import move
from ..device import CPU
from ..errors import ShapeError
from ..ops import namespace
from ..ops.record.public import check_out
from ..tensor import Tensor, wrap

T: Any = SimpleNamespace(**namespace("framework"))
LINALG: Any = SimpleNamespace(**namespace("linalg"))
FFT: Any = SimpleNamespace(**namespace("fft"))

UFUNCS: dict[np.ufunc, Callable] = {}
FUNCTIONS: dict[Callable, Callable] = {}
NO_VALUE: Any = np._NoValue  # type: ignore[attr-defined]


class Unsupported(TypeError):
    """A setting that our ops do not know: NumPy computes the call, unless a gradient would be lost."""


def implements(*functions: Callable) -> Callable:
    """Register what NumPy functions do on tensors; the arguments are NumPy's."""
    def register(ours: Callable) -> Callable:
        for function in functions:
            FUNCTIONS[function] = ours
        return ours
    return register


def tensor(x: Any) -> Tensor:
    """A tensor of anything NumPy takes as an array; arrays share their memory."""
    if isinstance(x, Tensor):
        return x
    if isinstance(x, (list, tuple)) and any(isinstance(v, (Tensor, list, tuple)) for v in x):
        return T.stack([tensor(v) for v in x])
    array = np.asarray(x)
    if isinstance(x, (float, complex)):
        return wrap(array.astype(dtypes.as_dtype(type(x)).numpy))
    return wrap(array.astype(dtypes.as_dtype(array.dtype.newbyteorder("=")).numpy, copy=False))


def operand(x: Any) -> Any:
    """What an elementwise op takes: tensors, and numbers as they are (they are weak)."""
    return x if isinstance(x, (Tensor, bool, int, float, complex)) else (
        x.item() if isinstance(x, np.generic) else tensor(x))


def floating(x: Any) -> Tensor:
    """A tensor of ``x``, of the default float dtype where it holds integers."""
    x = tensor(x)
    return x if x.dtype.category >= dtypes.FLOAT else x.to(dtypes.get_default_dtype())  # type: ignore[attr-defined]


def of_one_dtype(*values: Any) -> list[Tensor]:
    """Tensors of the values in their common dtype, for products, which want one."""
    found = [tensor(v) for v in values]
    dtype = found[0].dtype
    for t in found[1:]:
        dtype = dtypes.promote_types(dtype, t.dtype)
    return [t.to(dtype=dtype) for t in found]  # type: ignore[attr-defined]


def recorded(*values: Any) -> bool:
    """Whether a tensor among the values, however nested, requires grad while the thread records."""
    return state.enabled and any(v._node is not None for v in tensors_in(values))


def tensors_in(value: Any) -> list[Tensor]:
    """All tensors in nested lists, tuples and dicts."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = tuple(value.values())
    return [t for v in value for t in tensors_in(v)] if isinstance(value, (list, tuple)) else []


def store(result: Any, out: Any, name: str) -> Any:
    """``out=`` of a NumPy function: a tensor, an array (what is recorded cannot go there), or None."""
    if isinstance(out, tuple) and len(out) == 1:
        out = out[0]
    if out is None:
        return result
    if isinstance(out, Tensor):
        return check_out(out, result, name)
    if recorded(result):
        raise TypeError(f"np.{name}: out= is a NumPy array, which cannot hold a result that requires grad; "
                        f"leave out= away (in place of a += b write a = a + b), or use .detach()")
    if out.shape != result.shape:
        raise ShapeError(f"np.{name}: the result has shape {list(result.shape)}, out= has {list(out.shape)}")
    np.copyto(out, move(result._array, CPU), casting="same_kind")
    return out


def masked(x: Tensor, where: Any, fill: Any) -> Tensor:
    """``x`` with ``fill`` where the mask of a reduction's ``where=`` is false."""
    return x if where is NO_VALUE or where is True else T.where(tensor(where), x, fill)
