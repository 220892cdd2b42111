"""Variances, standard deviations and covariances."""

import math
from typing import Any

from ... import dtypes
from ...dtypes import FLOAT
from ...errors import ShapeError
from ...tensor import Tensor
from ..pointwise.arithmetic import gate, over, sub_op
from ..pointwise.choose import where_op
from ..pointwise.complex_numbers import complex
from ..pointwise.elementary import sqrt
from ..record.args import floating, many_dims, number_arg, tensor_arg
from ..record.batched import along
from ..record.op import Meta, Op
from ..record.public import public
from . import cuda
from .sums import count, in_dtype, mean_op, reduced, spread, wide_sum


def squared(x: Any) -> Any:
    """The squares of the elements' absolute values."""
    return x.real * x.real + x.imag * x.imag if x.dtype.kind == "c" else x * x


def _var_kernel(xp: Any, x: Any, *, dims: tuple[int, ...], correction: float, keepdim: bool) -> Any:
    n, dtype, x = count(x.shape, dims), x.dtype, _wide(x)
    d = x - wide_sum(x, dims, True) / n  # of nothing: nan; Python's own division would raise
    left = n - correction
    return in_dtype(wide_sum(squared(d), dims, keepdim) / (left if left > 0 else 0), _real(dtype))


def _real(dtype: Any) -> Any:
    return dtypes.BY_NUMPY[dtype].to_real().numpy if dtype.kind == "c" else dtype


def _wide(x: Any) -> Any:
    return x.astype("float32") if x.dtype.char == "e" else x


def _std_kernel(xp: Any, x: Any, **settings: Any) -> Any:
    return in_dtype(xp.sqrt(_var_kernel(xp, _wide(x), **settings)), _real(x.dtype))


def _var_infer(x: Meta, *, dims: tuple[int, ...], correction: float, keepdim: bool) -> Meta:
    return reduced(x, dims, keepdim, x.dtype.to_real())


def _per_degree(x_shape: tuple[int, ...], dims: tuple[int, ...], correction: float) -> float:
    left = count(x_shape, dims) - correction
    return 1 / left if left > 0 else math.inf


def _var_vjp(g: Any, x: Any, dims: tuple[int, ...], correction: float) -> Any:
    g = gate(g, 2 * _per_degree(x.shape, dims, correction))
    return gate(spread(g, x.shape, dims), sub_op(x, mean_op(x, dims=dims, keepdim=True)))


def _std_vjp(g: Any, x: Any, out: Any, dims: tuple[int, ...], correction: float) -> Any:
    g = where_op(out == 0, 0.0, over(g, out))  # all equal: the subgradient 0
    g = gate(g, _per_degree(x.shape, dims, correction))
    return gate(spread(g, x.shape, dims), sub_op(x, mean_op(x, dims=dims, keepdim=True)))


var_op = Op("var", "x", onnx="variance(x, dims, correction, keepdim)",
            batch=along("dims"),
            device=cuda.variance(False), rules_round=False,
            native="var", halves=True, kernel=_var_kernel, infer=_var_infer, adjoint=True,
            vjp={"x": _var_vjp})
std_op = Op("std", "x", onnx="Sqrt(variance(x, dims, correction, keepdim))",
            batch=along("dims"),
            device=cuda.variance(True), rules_round=False,
            native="std", kernel=_std_kernel, infer=_var_infer, adjoint=True, vjp={"x": _std_vjp})


def _spread_of(op: Op, x: Any, dim: Any, unbiased: Any, keepdim: bool, correction: Any) -> Tensor:
    if dim is unbiased is correction is None and type(x) is Tensor and x._array.dtype.kind == "f":
        return op.run(x, dims=many_dims(None, x._array.ndim, op.name), correction=1, keepdim=keepdim)
    if isinstance(dim, bool):  # var(x, unbiased)
        dim, unbiased = None, dim
    if unbiased is not None and correction is not None:
        raise TypeError(f"{op.name}: give unbiased or correction, not both (unbiased=True is "
                        f"correction=1)")
    floating(tensor_arg(x, op.name), op.name)
    correction = number_arg(correction, op.name, "correction")
    if correction is None:
        correction = 1 if unbiased is None else int(unbiased)
    return op.run(x, dims=many_dims(dim, x.ndim, op.name), correction=correction, keepdim=keepdim)


@public(method=True, op=var_op, out=True, deferred=True)
def var(input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *,
        correction: float | None = None) -> Tensor:
    """The variance over ``dim``: ``sum(|input - mean(input)| ** 2) / max(0, n - correction)``.

    ``correction`` is 1 unless given; ``unbiased=False`` is ``correction=0``. Raises DTypeError for
    integers.

    >>> fw.var(fw.tensor([1.0, 2.0, 3.0, 4.0]), correction=0)
    tensor(1.2500)
    """
    return _spread_of(var_op, input, dim, unbiased, keepdim, correction)


@public(method=True, op=std_op, out=True, deferred=True)
def std(input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *,
        correction: float | None = None) -> Tensor:
    """The standard deviation over ``dim``, the square root of ``var``.

    Its derivative where all elements are equal is 0. Raises DTypeError for integers.

    >>> fw.std(fw.tensor([1.0, 2.0, 3.0]))
    tensor(1.)
    """
    return _spread_of(std_op, input, dim, unbiased, keepdim, correction)


def _mean_of(x: Tensor, dim: Any, keepdim: bool) -> Tensor:
    """The mean of what ``_spread_of`` has looked at."""
    dims = many_dims(None if isinstance(dim, bool) else dim, x._array.ndim, "mean")
    return mean_op.run(x, dims=dims, keepdim=keepdim)


@public()
def var_mean(input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *,
             correction: float | None = None) -> tuple[Tensor, Tensor]:
    """(var, mean) over ``dim``; see ``var``.

    >>> fw.var_mean(fw.tensor([1.0, 2.0, 3.0]))
    (tensor(1.), tensor(2.))
    """
    return (_spread_of(var_op, input, dim, unbiased, keepdim, correction),
            _mean_of(input, dim, keepdim))


@public()
def std_mean(input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *,
             correction: float | None = None) -> tuple[Tensor, Tensor]:
    """(std, mean) over ``dim``; see ``std``.

    >>> fw.std_mean(fw.tensor([1.0, 2.0, 3.0]))
    (tensor(1.), tensor(2.))
    """
    return (_spread_of(std_op, input, dim, unbiased, keepdim, correction),
            _mean_of(input, dim, keepdim))


@public(method=True)
def cov(input: Tensor, *, correction: int = 1, fweights: Tensor | None = None,
        aweights: Tensor | None = None) -> Tensor:
    """The covariances of variables (rows) over observations (columns): (d, n) -> (d, d), (n) -> ().

    correction: taken from the number of observations. fweights: how often each was made (integers);
    aweights: its importance; both (n). Raises ShapeError for other shapes.

    >>> fw.cov(fw.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    x: Any = tensor_arg(input, "cov")
    if x.ndim > 2:
        raise ShapeError(f"cov: input must have at most 2 dimensions, got shape {list(x.shape)}")
    if x.dtype.category < FLOAT:
        x = x.to(float)
    shape = x.shape
    x = x.reshape(1, -1) if x.ndim < 2 else x
    weights: Any = None
    for name, w in (("fweights", fweights), ("aweights", aweights)):
        if w is not None:
            if tensor_arg(w, "cov", name).shape != x.shape[1:]:
                raise ShapeError(f"cov: {name} must have shape {list(x.shape[1:])}, got {list(w.shape)}")
            weights = w.to(x.dtype) if weights is None else weights * w  # type: ignore[attr-defined]
    if weights is None:
        total: Any = float(x.shape[1])
        centered = x - x.mean(1, keepdim=True)
        weighted, degrees = centered, max(total - correction, 0.0)
    else:
        total = weights.sum()
        centered = x - (x * weights).sum(1, keepdim=True) / total
        weighted = centered * weights
        lost = correction if aweights is None else correction * (weights * aweights).sum() / total
        degrees = (total - lost).clamp(min=0)
    out = centered @ weighted.mH / degrees
    return out if len(shape) == 2 and shape[0] != 1 else out.reshape(())


@public(method=True)
def corrcoef(input: Tensor) -> Tensor:
    """The correlations of variables (rows) over observations (columns): (d, n) -> (d, d), (n) -> ().

    >>> fw.corrcoef(fw.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    c: Any = cov(tensor_arg(input, "corrcoef"))
    if not c.ndim:
        return c / c
    spread: Any = sqrt(c.diagonal())
    c = c / spread.unsqueeze(1) / spread
    if c.is_complex():
        return complex(c.real.clamp(-1.0, 1.0), c.imag.clamp(-1.0, 1.0))
    return c.clamp(-1.0, 1.0)
