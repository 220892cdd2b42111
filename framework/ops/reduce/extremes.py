"""Extremes along dimensions: amax and amin share the gradient among ties, max and min choose one."""

from typing import Any

from ... import dtypes
from ...errors import ShapeError
from ...tensor import Tensor
from ..convert.cast import cast
from ..pointwise.arithmetic import maximum, minimum, over
from ..record import return_types
from ..record.args import many_dims, one_dim, real_arg
from ..record.batched import along
from ..record.op import Meta, Op
from ..record.public import public
from ..shape.alone import flattened
from ..shape.view import reshape_op, take_shape
from . import cuda
from .along import kept_shape, to_chosen
from .sums import reduced, sum_op


def need_elements(x: Any, dims: tuple[int, ...], op: str) -> None:
    """Raise ShapeError where an extreme of no elements is asked for."""
    for d in dims:
        if x.shape[d] == 0:
            raise ShapeError(f"{op}: dimension {d} of a tensor of shape {list(x.shape)} is empty, and "
                             f"{op} of nothing is not defined; reduce another dimension, or check "
                             f"x.numel() first")


def evenly(g: Any, x: Any, out: Any, dims: tuple[int, ...]) -> Any:
    """The gradient of an element chosen by value: equal elements share it."""
    chosen = cast(x == reshape_op(out, shape=kept_shape(x.shape, dims)), dtype=x.dtype)
    ties = sum_op(chosen, dims=dims, keepdim=True)
    return chosen * over(reshape_op(g, shape=kept_shape(x.shape, dims)), ties)


def _extreme_infer(name: str) -> Any:
    def infer(x: Meta, *, dims: tuple[int, ...], keepdim: bool) -> Meta:
        need_elements(x, dims, name)
        return reduced(x, dims, keepdim)
    return infer


def _even_vjp(g: Any, x: Any, out: Any, dims: tuple[int, ...]) -> Any:
    return evenly(g, x, out, dims)


amax_op = Op("amax", "x", onnx="reduced('ReduceMax', x, dims, keepdim)",
             runtime="folded('amax', x, dims, keepdim)",
             masks=True, native="amax", halves=True, device=cuda.folded("amax"), rules_round=False,
             infer=_extreme_infer("amax"), vjp={"x": _even_vjp},
             batch=along("dims"),
             kernel=lambda xp, x, *, dims, keepdim: x.max(axis=dims, keepdims=keepdim))
amin_op = Op("amin", "x", onnx="reduced('ReduceMin', x, dims, keepdim)",
             runtime="folded('amin', x, dims, keepdim)",
             masks=True, native="amin", halves=True, device=cuda.folded("amin"), rules_round=False,
             infer=_extreme_infer("amin"), vjp={"x": _even_vjp},
             batch=along("dims"),
             kernel=lambda xp, x, *, dims, keepdim: x.min(axis=dims, keepdims=keepdim))


def _extreme(op: Op, x: Any, dim: Any, keepdim: bool, name: str) -> Tensor:
    array = real_arg(x, name)._array
    dims = many_dims(dim, array.ndim, name)
    if not array.size:
        need_elements(x, dims, name)
    return op.run(x, dims=dims, keepdim=keepdim)


@public(method=True, op=amax_op, out=True, deferred=True)
def amax(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """The largest element over ``dim`` (an int, several, or None for all); nan wins.

    Equal elements share the gradient. Raises ShapeError for an empty dimension.

    >>> fw.amax(fw.tensor([[1.0, 5.0], [3.0, 4.0]]), dim=0)
    tensor([3., 5.])
    """
    return _extreme(amax_op, input, dim, keepdim, "amax")


@public(method=True, op=amin_op, out=True, deferred=True)
def amin(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """The smallest element over ``dim`` (an int, several, or None for all); nan wins.

    Equal elements share the gradient. Raises ShapeError for an empty dimension.

    >>> fw.amin(fw.tensor([[1.0, 5.0], [3.0, 4.0]]), dim=0)
    tensor([1., 4.])
    """
    return _extreme(amin_op, input, dim, keepdim, "amin")


@public(method=True, out="exact")
def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False) -> Any:
    """(min, max): the smallest and the largest element, of all or along one dimension.

    >>> fw.aminmax(fw.tensor([3.0, 1.0, 2.0]))
    aminmax(min=tensor(1.), max=tensor(3.))
    """
    own = real_arg(input, "aminmax")._array
    dims = many_dims(None if dim is None else one_dim(dim, own.ndim, "aminmax"), own.ndim, "aminmax")
    if not own.size:
        need_elements(input, dims, "aminmax")
    return return_types.aminmax(amin_op.run(input, dims=dims, keepdim=keepdim),
                                amax_op.run(input, dims=dims, keepdim=keepdim))


def best_kernel(method: str) -> Any:
    """The kernel of (values, indices) of the element that ``argmax`` or ``argmin`` finds."""
    def kernel(xp: Any, x: Any, *, dim: int, keepdim: bool) -> tuple:
        if not x.ndim:
            return x.copy(), xp.zeros((), "int64")
        indices = xp.expand_dims(getattr(x, method)(axis=dim), dim)
        values = xp.take_along_axis(x, indices, axis=dim)
        shape = kept_shape(x.shape, (dim,)) if keepdim else x.shape[:dim] + x.shape[dim + 1:]
        return values.reshape(shape), indices.reshape(shape)
    return kernel


def chosen_infer(name: str) -> Any:
    """The shape rule of an op that chooses one element along ``dim``."""
    def infer(x: Meta, *, dim: int, keepdim: bool, **settings: Any) -> tuple[Meta, Meta]:
        dims = (dim,) if x.ndim else ()
        need_elements(x, dims, name)
        return reduced(x, dims, keepdim), reduced(x, dims, keepdim, dtypes.int64)
    return infer


def chosen_vjp(g: Any, indices: Any, x_shape: tuple[int, ...], dim: int) -> Any:
    """The rule of an op that chooses one element along ``dim``."""
    return to_chosen(g, indices, x_shape, dim)


max_op = Op("max", "x", onnx="best(x, dim, keepdim, True)", runtime="best('max', x, dim, keepdim)",
            masks=True, native="max", kernel=best_kernel("argmax"), infer=chosen_infer("max"),
            batch=along("dim"),
            outputs="values indices", differentiable=1, vjp={"x": chosen_vjp})
min_op = Op("min", "x", onnx="best(x, dim, keepdim, False)", runtime="best('min', x, dim, keepdim)",
            masks=True, native="min", kernel=best_kernel("argmin"), infer=chosen_infer("min"),
            batch=along("dim"),
            outputs="values indices", differentiable=1, vjp={"x": chosen_vjp})


@public(method=True, op=max_op, out=True, deferred=True)
def max(input: Tensor, dim: Any = None, keepdim: bool = False, *, other: Tensor | None = None) -> Any:
    """The largest element; along ``dim``: (values, indices); with another tensor: ``maximum``.

    Without ``dim`` equal elements share the gradient; with it, the element at the index gets it.
    Raises ShapeError for an empty dimension.

    >>> fw.max(fw.tensor([[1.0, 5.0], [3.0, 4.0]]))
    tensor(5.)
    >>> values, indices = fw.max(fw.tensor([[1.0, 5.0], [3.0, 4.0]]), dim=1)
    >>> indices
    tensor([1, 1])
    """
    if isinstance(dim, Tensor) or other is not None:
        return maximum(input, dim if other is None else other)
    if dim is None:
        return _extreme(amax_op, input, None, keepdim, "max")
    return return_types.max(*_best(max_op, input, dim, keepdim))


@public(method=True, op=min_op, out=True, deferred=True)
def min(input: Tensor, dim: Any = None, keepdim: bool = False, *, other: Tensor | None = None) -> Any:
    """The smallest element; along ``dim``: (values, indices); with another tensor: ``minimum``.

    Without ``dim`` equal elements share the gradient; with it, the element at the index gets it.
    Raises ShapeError for an empty dimension.

    >>> fw.min(fw.tensor([[1.0, 5.0], [3.0, 4.0]]))
    tensor(1.)
    >>> values, indices = fw.min(fw.tensor([[1.0, 5.0], [3.0, 4.0]]), dim=1)
    >>> indices
    tensor([0, 0])
    """
    if isinstance(dim, Tensor) or other is not None:
        return minimum(input, dim if other is None else other)
    if dim is None:
        return _extreme(amin_op, input, None, keepdim, "min")
    return return_types.min(*_best(min_op, input, dim, keepdim))


def _best(op: Op, x: Any, dim: Any, keepdim: bool) -> tuple:
    array = real_arg(x, op.name)._array
    at = one_dim(dim, array.ndim, op.name)
    if not array.size:
        need_elements(x, (at,) if x.ndim else (), op.name)
    return op.run(x, dim=at, keepdim=keepdim)


@public(method=True, out=True)
def argmax(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """The index (int64) of the largest element along ``dim``, or in the flattened tensor.

    Raises ShapeError for an empty dimension.

    >>> fw.argmax(fw.tensor([[1.0, 5.0], [3.0, 4.0]]), dim=1)
    tensor([1, 1])
    """
    return _arg(max_op, input, dim, keepdim, "argmax")


@public(method=True, out=True)
def argmin(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """The index (int64) of the smallest element along ``dim``, or in the flattened tensor.

    Raises ShapeError for an empty dimension.

    >>> fw.argmin(fw.tensor([[1.0, 5.0], [3.0, 4.0]]), dim=1)
    tensor([0, 0])
    """
    return _arg(min_op, input, dim, keepdim, "argmin")


def _arg(op: Op, x: Any, dim: int | None, keepdim: bool, name: str) -> Tensor:
    array = real_arg(x, name)._array
    if x._node is not None:
        x = x.detach()
    ndim = array.ndim
    if dim is not None:
        at = one_dim(dim, ndim, name)
        if not array.size:
            need_elements(x, (at,) if ndim else (), name)
        return op.run(x, dim=at, keepdim=keepdim)[1]
    if not array.size:
        need_elements(x, tuple(range(ndim)), name)
    indices = op.run(flattened(x), dim=0, keepdim=False)[1]
    return take_shape(indices, (1,) * x.ndim) if keepdim else indices
