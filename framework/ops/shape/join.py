"""Joining tensors: cat along a dimension, stack along a new one, and their relatives."""

import math
from typing import Any

import numpy as np

from ... import _native
from ...backends import array_module
from ...dtypes import promote_types
from ...errors import LayoutError, ShapeError, kind_of
from ...memory_formats import back, format_of, order
from ...tensor import Tensor
from ..convert.cast import cast
from ..record.args import one_dim
from ..record.batched import along, call, everywhere, on_tensors
from ..record.op import Meta, Op
from ..record.public import public, run_into
from ..record.road import NEVER, row_major
from . import cuda
from .alone import led
from .broadcast import expand
from .grids import atleast_1d, atleast_2d
from .slices import slice_op
from .view import take_shape


def _cat_infer(*xs: Meta, dim: int) -> Meta:
    first = xs[0]
    for i, x in enumerate(xs):
        if x.ndim != first.ndim or any(a != b for d, (a, b) in enumerate(zip(x.shape, first.shape))
                                       if d != dim):
            raise ShapeError(f"cat: tensors must agree in all dimensions but {dim}; the first has shape "
                             f"{list(first.shape)}, tensor {i} has {list(x.shape)}")
    shape = list(first.shape)
    shape[dim] = sum(x.shape[dim] for x in xs)
    return Meta(tuple(shape), first.dtype)


def _cat_vjp(g: Any, xs_shape: tuple, needs: tuple, dim: int) -> list:
    before, grads, start = (slice(None),) * dim, [], 0
    for shape, need in zip(xs_shape, needs):
        stop = start + shape[dim]
        grads.append(slice_op(g, key=(*before, slice(start, stop))) if need else None)
        start = stop
    return grads


def _cat_kernel(xp: Any, *xs: Any, dim: int) -> Any:
    ndim = xs[0].ndim
    if all(format_of(x).ndim == ndim for x in xs):  # channels last, which the result has, too
        axes = order(ndim)
        return xp.concatenate([x.transpose(axes) for x in xs], axis=axes.index(dim)).transpose(back(ndim))
    return row_major(xp.concatenate(xs, axis=dim))


cat_op = Op("cat", "*xs", onnx="Concat(*xs, axis=dim)", runtime="joined(xs, dim)",
            kernel=_cat_kernel, infer=_cat_infer, device=cuda.join,
            batch=along("dim"),
            vjp=_cat_vjp, jvp="linear", native="cat", rounds="cat", loose_from=NEVER)


def _stack_infer(*xs: Meta, dim: int) -> Meta:
    shape = xs[0].shape
    for i, x in enumerate(xs):
        if x.shape != shape:
            raise ShapeError(f"stack: tensors must have equal shapes; the first has {list(shape)}, tensor "
                             f"{i} has {list(x.shape)}")
    return Meta((*shape[:dim], len(xs), *shape[dim:]), xs[0].dtype)


def _stack_vjp(g: Any, needs: tuple, dim: int) -> list:
    before = (slice(None),) * dim
    return [slice_op(g, key=(*before, i)) if need else None for i, need in enumerate(needs)]


@on_tensors()
def batch_stack(op: Op, size: int, arrays: list, batched: tuple, settings: dict) -> Any:
    """The rule for batches: the new dimension lies behind the batch."""
    arrays = everywhere(size, arrays, batched)
    return call(op, *arrays, dim=settings["dim"] % arrays[0].ndim + 1)


stack_op = Op("stack", "*xs", onnx="stacked(xs, dim)", runtime="stacked(xs, dim)",
              kernel=lambda xp, *xs, dim: xp.stack(xs, axis=dim), infer=_stack_infer,
              batch=batch_stack,
              vjp=_stack_vjp, jvp="linear", native="stack", rounds="stack")


def _list_of(tensors: Any, op: str) -> list[Tensor]:
    """The sequence as a list of tensors of one dtype."""
    if isinstance(tensors, Tensor) or not hasattr(tensors, "__iter__"):
        raise TypeError(f"{op}: tensors must be a list or tuple of Tensors, got {type(tensors).__name__}")
    found = list(tensors)
    if not found:
        raise ValueError(f"{op}: tensors is empty; at least one tensor is wanted")
    for i, x in enumerate(found):
        if not isinstance(x, Tensor):
            raise TypeError(f"{op}: tensors[{i}] must be a Tensor, got {kind_of(x)}")
    try:
        own = found[0]._array.dtype
        for x in found:
            if x._array.dtype is not own:
                break
        else:
            return found
    except LayoutError:  # a sparse tensor, which has no array
        pass
    dtypes = [x.dtype for x in found]
    dtype = dtypes[0]
    if dtypes.count(dtype) == len(dtypes):
        return found
    for other in dtypes:
        dtype = promote_types(dtype, other)
    return [x if x.dtype is dtype else cast.run(x, dtype=dtype) for x in found]


def _alike(tensors: Any) -> int:
    """How many dimensions all tensors of a list or tuple have, twice, and one more where they have one shape.

    -1 for anything else: other kinds, several dtypes or numbers of dimensions, none, tensors of shape (0,).
    """
    shapes = []
    try:
        for x in tensors if type(tensors) in (list, tuple) else ():
            a = x._array if isinstance(x, Tensor) else None
            if type(a) is not np.ndarray or a.shape in ((), (0,)):
                return -1
            if a.dtype is not tensors[0]._array.dtype or a.ndim != tensors[0]._array.ndim:
                return -1
            shapes.append(a.shape)
    except LayoutError:  # a sparse tensor, which has no array
        return -1
    return 2 * len(shapes[0]) + (shapes.count(shapes[0]) == len(shapes)) if shapes else -1


if hasattr(_native.module, "alike"):
    _alike = _native.module.alike
# whether ``out`` may share memory with one of the tensors
_may_meet: Any = getattr(_native.module, "may_meet", lambda out, tensors: True)


@public(alias="concat concatenate", op=cat_op, deferred=True)
def cat(tensors: Any, dim: int = 0, *, out: Tensor | None = None) -> Tensor:
    """The tensors one after another along ``dim``; all other dimensions must agree.

    Dtypes are promoted to a common one. Empty tensors of shape (0,) are passed over. Raises ShapeError
    naming the tensor that does not fit.

    >>> fw.cat([fw.ones(1, 2), fw.zeros(1, 2)])
    tensor([[1., 1.],
            [0., 0.]])
    """
    if (found := _alike(tensors)) > 0:
        ndim = found >> 1
        at = dim if type(dim) is int and 0 <= dim < ndim else one_dim(dim, ndim, "cat")
        if out is not None:
            return _joined_into(out, cat_op, tensors, at)
        if len(tensors) == 2:  # a list spread out takes Python a fifth of the call
            first, second = tensors
            return cat_op.run(first, second, dim=at)
        return cat_op.run(*tensors, dim=at)
    xs = _list_of(tensors, "cat")
    try:
        shapes: list = [x._array.shape for x in xs]
    except LayoutError:  # a sparse tensor, which has no array
        shapes = [x.shape for x in xs]
    if () in shapes:
        raise ShapeError("cat: tensors of 0 dimensions cannot be joined along one; use stack()")
    if (0,) in shapes:
        xs = [x for x in xs if x.shape != (0,)] or xs[:1]
        shapes = [x.shape for x in xs]
    ndims = [len(shape) for shape in shapes]
    at = one_dim(dim, ndims[0], "cat")
    if ndims.count(ndims[0]) != len(ndims):
        _cat_infer(*[Meta(x.shape, x.dtype) for x in xs], dim=at)
    return _joined_into(out, cat_op, xs, at)


def _joined_into(out: Tensor | None, op: Op, xs: Any, dim: int) -> Tensor:
    """What the record gives of the tensors, in ``out=`` if that is given."""
    if out is None:
        return op.run(*xs, dim=dim)
    if isinstance(out, Tensor) and _may_meet(out, xs):
        a = out._array
        for b in [x._array for x in xs]:
            views = a.base is not None or b.base is not None  # others own their memory
            if b is a or views and array_module(a).may_share_memory(a, b):
                raise ValueError("cat: out= shares memory with one of the tensors, which would change while "
                                 "it is read; give it memory of its own")
    return run_into(op.run, tuple(xs), {"dim": dim}, out, "cat", False, op)


@public(op=stack_op, deferred=True)
def stack(tensors: Any, dim: int = 0, *, out: Tensor | None = None) -> Tensor:
    """The tensors, of equal shape, along a new dimension at ``dim``.

    >>> fw.stack([fw.tensor([1, 2]), fw.tensor([3, 4])], 1)
    tensor([[1, 3],
            [2, 4]])
    """
    if (found := _alike(tensors)) & 1 and found > 0:
        xs, ndim = tensors, (found >> 1) + 1
        at = dim if type(dim) is int and 0 <= dim < ndim else one_dim(dim, ndim, "stack")
    else:
        xs = _list_of(tensors, "stack")
        at = one_dim(dim, xs[0].ndim + 1, "stack")
    if out is None:
        return stack_op.run(*xs, dim=at)
    return run_into(stack_op.run, tuple(xs), {"dim": at}, out, "stack", False, stack_op)


@public(deferred=True)
def hstack(tensors: Any, *, out: Tensor | None = None) -> Tensor:
    """The tensors side by side: along dimension 1, or 0 for vectors.

    >>> fw.hstack([fw.tensor([1, 2]), fw.tensor([3])])
    tensor([1, 2, 3])
    """
    if (found := _alike(tensors)) > 0:
        return _joined_into(out, cat_op, tensors, 0 if found < 4 else 1)
    xs = [x if x.ndim else atleast_1d(x) for x in _list_of(tensors, "hstack")]
    return cat(xs, 0 if xs[0].ndim == 1 else 1, out=out)


@public(alias="row_stack", deferred=True)
def vstack(tensors: Any, *, out: Tensor | None = None) -> Tensor:
    """The tensors below each other: along dimension 0, vectors as rows.

    >>> fw.vstack([fw.tensor([1, 2]), fw.tensor([3, 4])])
    tensor([[1, 2],
            [3, 4]])
    """
    if (found := _alike(tensors)) > 2:
        return _joined_into(out, cat_op if found > 3 else stack_op, tensors, 0)
    rows, alone = [], True
    for x in _list_of(tensors, "vstack"):
        ndim = x._array.ndim
        if ndim == 1:
            plain = x._node is None and type(x._array) is np.ndarray
            x = led(x) if plain else take_shape(x, (1, -1))
        rows.append(x if ndim else take_shape(x, (1, 1)))
        alone = alone and 0 < ndim < 3
    return _joined_into(out, cat_op, rows, 0) if alone else cat(rows, 0, out=out)


@public(deferred=True)
def dstack(tensors: Any, *, out: Tensor | None = None) -> Tensor:
    """The tensors behind each other: along dimension 2.

    >>> fw.dstack([fw.tensor([1, 2]), fw.tensor([3, 4])])
    tensor([[[1, 3],
             [2, 4]]])
    """
    if (found := _alike(tensors)) > 4:
        return _joined_into(out, cat_op if found > 5 else stack_op, tensors, 2)
    deep = [x if x.ndim > 2 else take_shape(x, (*x.shape, 1) if x.ndim == 2 else (1, x.numel(), 1))
            for x in _list_of(tensors, "dstack")]
    return cat(deep, 2, out=out)


@public(deferred=True)
def column_stack(tensors: Any, *, out: Tensor | None = None) -> Tensor:
    """The tensors side by side, vectors as columns.

    >>> fw.column_stack([fw.tensor([1, 2]), fw.tensor([3, 4])])
    tensor([[1, 3],
            [2, 4]])
    """
    if (found := _alike(tensors)) > 2:
        return _joined_into(out, cat_op if found > 3 else stack_op, tensors, 1)
    columns = [x if x.ndim > 1 else take_shape(x, (x.numel(), 1))
               for x in _list_of(tensors, "column_stack")]
    return cat(columns, 1, out=out)


def _blocks(shapes: Any) -> list[tuple]:
    """Where the blocks of these shapes stand."""
    found, top, left = [], 0, 0
    for *_, height, width in shapes:
        found.append((Ellipsis, slice(top, top + height), slice(left, left + width)))
        top, left = top + height, left + width
    return found


def _block_kernel(xp: Any, *xs: Any) -> Any:
    height = width = top = left = 0
    for x in xs:
        height, width = height + x.shape[-2], width + x.shape[-1]
    out = xp.zeros((*xs[0].shape[:-2], height, width), xs[0].dtype)
    for x in xs:
        below, right = top + x.shape[-2], left + x.shape[-1]
        out[..., top:below, left:right] = x
        top, left = below, right
    return out


@on_tensors()
def batch_blocks(op: Op, size: int, arrays: list, batched: tuple, settings: dict) -> Any:
    """The rule for batches: blocks of each example."""
    return call(op, *everywhere(size, arrays, batched))


block_diag_op = Op("block_diag", "*xs", kernel=_block_kernel, batch=batch_blocks, moves=True, jvp="linear",
                   infer=lambda *xs: Meta(tuple(map(sum, zip(*[x.shape for x in xs]))), xs[0].dtype),
                   vjp=lambda g, xs_shape, needs: [slice_op(g, key=key) if need else None
                                                   for key, need in zip(_blocks(xs_shape), needs)])


@public(op=block_diag_op)
def block_diag(*tensors: Tensor) -> Tensor:
    """A matrix with the given matrices along its diagonal and zeros elsewhere.

    Vectors count as rows, numbers as 1 x 1.

    >>> fw.block_diag(fw.tensor([[1, 2]]), fw.tensor(3))
    tensor([[1, 2, 0],
            [0, 0, 3]])
    """
    blocks = []
    for x in _list_of(tensors, "block_diag"):
        if x._array.ndim > 2:
            raise ShapeError(f"block_diag: wanted at most 2 dimensions, got shape {list(x.shape)}")
        blocks.append(x if x._array.ndim == 2 else atleast_2d(x))
    return block_diag_op.run(*blocks)


@public()
def cartesian_prod(*tensors: Tensor) -> Tensor:
    """Every combination of one element from each vector, as rows, the last one running fastest.

    >>> fw.cartesian_prod(fw.tensor([1, 2]), fw.tensor([3, 4]))
    tensor([[1, 3],
            [1, 4],
            [2, 3],
            [2, 4]])
    """
    xs = _list_of(tensors, "cartesian_prod")
    for x in xs:
        if x.ndim != 1:
            raise ShapeError(f"cartesian_prod: wanted vectors, got shape {list(x.shape)}")
    if len(xs) == 1:
        return take_shape(xs[0], xs[0].shape)
    sizes = tuple(x.numel() for x in xs)
    grids = [take_shape(x, (1,) * i + x.shape + (1,) * (len(xs) - i - 1)) for i, x in enumerate(xs)]
    full = stack_op.run(*[expand.run(g, size=sizes) for g in grids], dim=len(xs))
    return take_shape(full, (math.prod(sizes), len(xs)))
