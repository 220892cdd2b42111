"""Reductions over dimensions."""

from typing import Any

from .. import dtypes
from ..tensor import Tensor
from .args import floating, many_dims, tensor_arg
from .broadcast import expand
from .op import Meta, Op
from .public import public
from .view import reshape_op


def kept_shape(shape: tuple[int, ...], dims: tuple[int, ...]) -> tuple[int, ...]:
    """The shape after reducing ``dims`` with keepdim."""
    return tuple(1 if i in dims else s for i, s in enumerate(shape))


def reduced(x: Meta, dims: tuple[int, ...], keepdim: bool, dtype: Any = None) -> Meta:
    """The Meta after reducing ``dims``."""
    shape = (kept_shape(x.shape, dims) if keepdim
             else tuple(s for i, s in enumerate(x.shape) if i not in dims))
    return Meta(shape, x.dtype if dtype is None else dtype)


def spread(g: Any, x_shape: tuple[int, ...], dims: tuple[int, ...]) -> Any:
    """The gradient of a sum: every element gets that of the sum it went into."""
    return expand(reshape_op(g, shape=kept_shape(x_shape, dims)), size=x_shape)


sum_op = Op("sum", "x", jvp="linear",
            kernel=lambda xp, x, *, dims, keepdim: x.sum(axis=dims, keepdims=keepdim, dtype=x.dtype),
            infer=lambda x, *, dims, keepdim: reduced(x, dims, keepdim),
            vjp={"x": lambda g, x_shape, dims: spread(g, x_shape, dims)})
mean_op = Op("mean", "x", jvp="linear",
             kernel=lambda xp, x, *, dims, keepdim: x.mean(axis=dims, keepdims=keepdim, dtype=x.dtype),
             infer=lambda x, *, dims, keepdim: reduced(x, dims, keepdim),
             vjp={"x": lambda g, x_shape, dims: spread(g * (1 / _count(x_shape, dims)), x_shape, dims)})


def _count(shape: tuple[int, ...], dims: tuple[int, ...]) -> int:
    count = 1
    for d in dims:
        count *= shape[d]
    return max(count, 1)


@public(method=True, op=sum_op)
def sum(x: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The sum over ``dim`` (an int, several, or None for all).

    Integers and bools are summed as int64 unless ``dtype`` says otherwise.

    >>> fw.sum(fw.tensor([[1.0, 2.0], [3.0, 4.0]]), dim=0)
    """
    tensor_arg(x, "sum")
    if dtype is not None or x.dtype.category < dtypes.FLOAT:
        x = x.to(dtypes.int64 if dtype is None else dtype)  # type: ignore[attr-defined]
    return sum_op.run(x, dims=many_dims(dim, x.ndim, "sum"), keepdim=keepdim)


@public(method=True, op=mean_op)
def mean(x: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The mean over ``dim`` (an int, several, or None for all) of a floating tensor.

    Raises DTypeError for integers unless ``dtype`` is given.

    >>> fw.mean(fw.tensor([[1.0, 2.0], [3.0, 4.0]]), dim=1)
    """
    tensor_arg(x, "mean")
    if dtype is not None:
        x = x.to(dtype)  # type: ignore[attr-defined]
    floating(x, "mean")
    return mean_op.run(x, dims=many_dims(dim, x.ndim, "mean"), keepdim=keepdim)
