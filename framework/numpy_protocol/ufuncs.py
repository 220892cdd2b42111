"""NumPy's ufuncs on tensors: calls, and the methods reduce, accumulate, outer and at."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..ops.record.args import one_dim
from ..tensor import Tensor
from .table import (
    LINALG,
    NO_VALUE,
    UFUNCS,
    T,
    Unsupported,
    floating,
    masked,
    of_one_dtype,
    operand,
    store,
    tensor,
)


def _cbrt(x: Any) -> Tensor:
    return T.sign(x) * T.pow(T.abs(x), 1 / 3)


def _ldexp(x: Any, exponent: Any) -> Tensor:
    return x * T.exp2(tensor(exponent).to(tensor(x).dtype))  # type: ignore[attr-defined]


def _divmod(x: Any, y: Any) -> tuple[Tensor, Tensor]:
    return T.floor_divide(x, y), T.remainder(x, y)


def _modf(x: Any) -> tuple[Tensor, Tensor]:
    whole = T.trunc(x)
    return x - whole, whole


def _matvec(x: Any, y: Any) -> Tensor:
    a, b = of_one_dtype(x, y)
    return T.matmul(a, T.unsqueeze(b, -1))[..., 0]


def _vecmat(x: Any, y: Any) -> Tensor:
    a, b = of_one_dtype(x, y)
    return T.matmul(T.unsqueeze(T.conj(a), -2), b)[..., 0, :]


UFUNCS.update({
    np.add: T.add, np.subtract: T.sub, np.multiply: T.mul, np.divide: T.div, np.floor_divide: T.floor_divide,
    np.power: T.pow, np.float_power: T.float_power, np.remainder: T.remainder, np.fmod: T.fmod,
    np.divmod: _divmod, np.modf: _modf, np.negative: T.neg, np.positive: T.positive, np.absolute: T.abs,
    np.fabs: lambda x: T.abs(floating(x)), np.rint: T.round, np.sign: T.sgn, np.conjugate: T.conj,
    np.exp: T.exp,
    np.exp2: T.exp2, np.expm1: T.expm1, np.log: T.log, np.log2: T.log2, np.log10: T.log10, np.log1p: T.log1p,
    np.sqrt: T.sqrt, np.square: T.square, np.cbrt: _cbrt, np.reciprocal: T.reciprocal, np.sin: T.sin,
    np.cos: T.cos, np.tan: T.tan, np.arcsin: T.asin, np.arccos: T.acos, np.arctan: T.atan,
    np.arctan2: T.atan2, np.hypot: T.hypot, np.sinh: T.sinh, np.cosh: T.cosh, np.tanh: T.tanh,
    np.arcsinh: T.asinh, np.arccosh: T.acosh, np.arctanh: T.atanh, np.degrees: T.rad2deg,
    np.rad2deg: T.rad2deg, np.radians: T.deg2rad, np.deg2rad: T.deg2rad, np.maximum: T.maximum,
    np.minimum: T.minimum, np.fmax: T.fmax, np.fmin: T.fmin, np.floor: T.floor, np.ceil: T.ceil,
    np.trunc: T.trunc, np.copysign: T.copysign, np.heaviside: lambda x, y: T.heaviside(tensor(x), tensor(y)),
    np.logaddexp: T.logaddexp, np.logaddexp2: T.logaddexp2, np.nextafter: T.nextafter, np.ldexp: _ldexp,
    np.isnan: T.isnan, np.isinf: T.isinf, np.isfinite: T.isfinite, np.signbit: T.signbit,
    np.equal: T.eq, np.not_equal: T.ne, np.less: T.lt, np.less_equal: T.le, np.greater: T.gt,
    np.greater_equal: T.ge, np.logical_and: T.logical_and, np.logical_or: T.logical_or,
    np.logical_xor: T.logical_xor, np.logical_not: T.logical_not, np.bitwise_and: T.bitwise_and,
    np.bitwise_or: T.bitwise_or, np.bitwise_xor: T.bitwise_xor, np.invert: T.bitwise_not,
    np.left_shift: T.bitwise_left_shift, np.right_shift: T.bitwise_right_shift, np.gcd: T.gcd, np.lcm: T.lcm,
    np.matmul: lambda x, y: T.matmul(*of_one_dtype(x, y)),
})
if hasattr(np, "vecdot"):  # NumPy 2.0; matvec and vecmat came with 2.2
    UFUNCS[np.vecdot] = lambda x, y: LINALG.vecdot(*of_one_dtype(x, y))
if hasattr(np, "matvec"):
    UFUNCS[np.matvec], UFUNCS[np.vecmat] = _matvec, _vecmat


def call(ufunc: np.ufunc, op: Callable, inputs: tuple, out: Any = None, where: Any = True,
         dtype: Any = None, **settings: Any) -> Any:
    """``ufunc(*inputs)`` with NumPy's keywords."""
    _only(ufunc, settings, casting=("same_kind", "unsafe"), order=("K", "C"), subok=(True, False))
    ready = [operand(x) for x in inputs]
    if dtype is not None:
        ready = [tensor(x).to(dtype=dtype) for x in ready]  # type: ignore[attr-defined]
    result = op(*ready)
    if where is not True:
        if out is None:
            raise TypeError(f"np.{ufunc.__name__}: where= leaves elements without a value unless out= is "
                            f"given; use np.where(mask, result, other)")
        result = T.where(tensor(where), result, tensor(out[0]))
    if isinstance(result, tuple):
        given = out or (None,) * len(result)
        return tuple([store(r, o, ufunc.__name__) for r, o in zip(result, given)])
    return store(result, out, ufunc.__name__)


def _only(ufunc: np.ufunc, settings: dict, **harmless: tuple) -> None:
    for name, value in settings.items():
        if value not in harmless.get(name, ()) and value is not NO_VALUE:
            raise Unsupported(f"np.{ufunc.__name__}: {name}={value!r} is not supported for tensors; use the "
                            f"ops of framework, or x.detach().numpy()")


# -- reduce ----------------------------------------------------------------------------------------

def _prod(x: Tensor, axes: tuple, keepdims: bool) -> Tensor:
    for d in axes:
        x = T.prod(x, d, True)
    return x if keepdims else T.squeeze(x, axes)


_REDUCTIONS: dict[np.ufunc, tuple[Callable, Any]] = {  # and what leaves the result as it is
    np.add: (T.sum, 0), np.multiply: (_prod, 1), np.maximum: (T.amax, -np.inf), np.minimum: (T.amin, np.inf),
    np.logical_and: (T.all, True), np.logical_or: (T.any, False), np.logaddexp: (T.logsumexp, -np.inf),
}


def reduce(ufunc: np.ufunc, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None,
           keepdims: bool = False, initial: Any = NO_VALUE, where: Any = True) -> Any:
    """``ufunc.reduce``: over the first axis unless ``axis`` says otherwise."""
    if ufunc not in _REDUCTIONS:
        raise Unsupported(f"np.{ufunc.__name__}.reduce is not supported for tensors; use x.detach().numpy()")
    op, neutral = _REDUCTIONS[ufunc]
    x = tensor(array)
    if dtype is not None:
        x = x.to(dtype=dtype)  # type: ignore[attr-defined]
    x = masked(x, where, neutral)
    axes = tuple(range(x.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    axes = tuple([one_dim(a, x.ndim, ufunc.__name__, "axis") for a in axes])
    result = op(x, axes, keepdims) if axes else x
    if initial is not NO_VALUE and initial is not None:
        result = UFUNCS[ufunc](result, operand(initial))
    return store(result, out, ufunc.__name__)


_RUNNING: dict[np.ufunc, Callable] = {
    np.add: T.cumsum, np.multiply: T.cumprod, np.logaddexp: T.logcumsumexp,
    np.maximum: lambda x, d: T.cummax(x, d)[0], np.minimum: lambda x, d: T.cummin(x, d)[0],
}


def accumulate(ufunc: np.ufunc, array: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
    """``ufunc.accumulate``: the results of reducing the first 1, 2, ... elements."""
    if ufunc not in _RUNNING:
        raise Unsupported(f"np.{ufunc.__name__}.accumulate is not supported for tensors; use "
                        f"x.detach().numpy()")
    x = tensor(array) if dtype is None else tensor(array).to(dtype=dtype)  # type: ignore[attr-defined]
    return store(_RUNNING[ufunc](x, axis), out, ufunc.__name__)


def outer(ufunc: np.ufunc, first: Any, second: Any, **settings: Any) -> Any:
    """``ufunc.outer``: on every of_one_dtype of elements."""
    a, b = tensor(first), tensor(second)
    pairs = T.reshape(a, a.shape + (1,) * b.ndim), b
    return call(ufunc, UFUNCS[ufunc], pairs, **settings)


def at(ufunc: np.ufunc, array: Any, indices: Any, values: Any = None) -> None:
    """``ufunc.at``: in place at the indices, again for an index that is there again."""
    if ufunc not in (np.add, np.subtract) or not isinstance(array, Tensor):
        raise TypeError(f"np.{ufunc.__name__}.at is supported for np.add and np.subtract into a tensor "
                        f"only; use index_add_, scatter_reduce_ or x.detach().numpy()")
    keys = indices if isinstance(indices, tuple) else (indices,)
    change = tensor(values).to(array.dtype)  # type: ignore[attr-defined]
    array.index_put_(  # type: ignore[attr-defined]
        tuple([tensor(k) for k in keys]), change if ufunc is np.add else T.neg(change), accumulate=True)


METHODS: dict[str, Callable] = {"reduce": reduce, "accumulate": accumulate, "outer": outer, "at": at}
