"""Embedding: rows of a table by index, and its transpose, which adds rows up at their indices."""

from typing import Any

import numpy as np

from ...autograd.mode import no_grad, state
from ...backends import about_to_read, array_module, device_flags, on_device
from ...dtypes import INTEGER, as_dtype, int64
from ...errors import AutogradError, DTypeError, ShapeError
from ...node import Leaf
from ...seam import is_watched, settled
from ...sparse_door import sparse as sparse_tensors
from ...tensor import Tensor, bump, wrap
from ..record.args import tensor_arg
from ..record.batched import call, everywhere, front_moved, leading, looped, on_tensors, spread_out, to_front
from ..record.deferred import Positions
from ..record.op import Meta, Op
from ..record.public import public
from . import cuda
from .index import extremes, summed_at


def _add_rows(xp: Any, x: Any, indices: Any, *, rows: int) -> Any:
    """Row i of the result is the sum of the rows of x whose index is i."""
    return summed_at(xp, (rows, *x.shape[indices.ndim:]), (indices,), x)


def _factor_kernel(xp: Any, indices: Any, *, dtype: Any, padding: int | None, by_frequency: bool) -> Any:
    """The factor of each looked-up row's gradient: 0 for padding, one over the index's frequency."""
    factor = xp.ones(indices.shape, dtype)
    if by_frequency and indices.size:
        factor /= xp.bincount(indices.reshape(-1))[indices].astype(dtype)
    if padding is not None:
        factor[indices == padding] = 0
    return factor[..., None]


def batch_factor(op: Op, size: int, arrays: list, batched: tuple, settings: dict) -> Any:
    """The rule for batches; a frequency is that within an example."""
    if settings["by_frequency"]:
        return looped(op, size, arrays, batched, settings)
    return call(op, arrays[0], **settings)


def _in_one_table(size: int, indices: Any, own: bool, rows: int) -> Any:
    """The indices of each example into the tables of all, one below the other."""
    indices = indices if own else spread_out(indices, size)
    return indices + np.arange(size).reshape((size, *(1,) * (indices.ndim - 1))) * rows


@on_tensors(lambda batched, settings: not batched[0])
def batch_embedding(op: Op, size: int, arrays: list, batched: tuple, settings: dict) -> Any:
    (weight, indices), (own, other) = arrays, batched
    if not own:
        return call(op, weight, indices, **settings)
    if not other:
        out = call(op, front_moved(weight, 1), indices, **settings)
        return to_front(out, indices.ndim)
    rows = weight.shape[1]
    table = weight.reshape((size * rows, *weight.shape[2:]))
    return call(op, table, _in_one_table(size, indices, other, rows), **settings)


def batch_add_rows(op: Op, size: int, arrays: list, batched: tuple, settings: dict) -> Any:
    (x, indices), rows = arrays, settings["rows"]
    x = everywhere(size, [x], batched)[0]
    out = call(op, x, _in_one_table(size, indices, batched[1], rows), rows=size * rows)
    return out.reshape((size, rows, *out.shape[1:]))


factor = Op("embedding_factor", "indices", batch=batch_factor, kernel=_factor_kernel,
             infer=lambda indices, *, dtype, padding, by_frequency: Meta(
                 (*indices.shape, 1), as_dtype(dtype)))


def _embedding_vjp(g: Any, weight_shape: tuple[int, ...], weight_dtype: Any, indices: Any,
                   padding: int | None, by_frequency: bool) -> Any:
    found = cuda.add_lookups(g, indices, weight_shape[0], padding, by_frequency)
    if found is not NotImplemented:
        return found
    if padding is not None or by_frequency:
        g = g * factor(indices, dtype=weight_dtype, padding=padding, by_frequency=by_frequency)
    return add_rows(g, indices, rows=weight_shape[0])


embedding_op = Op(
    "embedding", "weight indices", onnx="Gather(weight, indices, axis=0)",
    runtime="embedding(weight, indices)", batch=batch_embedding,
    vjp={"weight": _embedding_vjp}, native="embedding", device=cuda.take_rows,
    kernel=lambda xp, weight, indices, *, padding, by_frequency: xp.take(weight, indices, axis=0),
    infer=lambda weight, indices, *, padding, by_frequency: Meta(
        indices.shape + weight.shape[1:], weight.dtype))
sparse_embedding = Op(  # its gradient is a sparse tensor
    "sparse_embedding", "weight indices", onnx=embedding_op.onnx, native="embedding", moves=True,
    adjoint=True, jvp="linear", kernel=embedding_op.kernel, infer=embedding_op.infer,
    vjp={"weight": lambda g, weight_shape, weight_dtype, indices, padding,
         by_frequency: sparse_tensors().of_rows(
        g, indices, weight_shape, weight_dtype, padding, by_frequency)})
add_rows = Op(
    "add_rows", "x indices", batch=batch_add_rows, kernel=_add_rows, native="add_rows",
    device=cuda.add_rows,
    infer=lambda x, indices, *, rows: Meta((rows, *x.shape[indices.ndim:]), x.dtype),
    vjp={"x": lambda g, indices: embedding_op(g, indices, padding=None, by_frequency=False)})


def _check_indices(indices: Any, size: int, op: str, what: str) -> None:
    if not indices.size or device_flags.check(
            indices, 0, size, f"{op}: input is {{value}}, but {what} (0 to {{last}})"):
        return
    low, high = extremes(indices)
    if low < 0 or high >= size:
        xp = array_module(indices)
        at = tuple(int(i[0]) for i in xp.nonzero((indices < 0) | (indices >= size)))
        raise IndexError(f"{op}: input{list(at)} is {int(indices[at])}, but {what} (0 to {size - 1})")


def _whole_numbers(x: Any, op: str) -> None:
    if tensor_arg(x, op, "input").dtype.category != INTEGER:
        raise DTypeError(f"{op}: input must hold integers, got {x.dtype}; convert it with input.long()")


def _leaves_weights(input: Tensor, weight: Tensor, padding_idx: int | None = None,
                    max_norm: float | None = None, *others: Any, **settings: Any) -> Positions | str:
    if settings or max_norm is not None or any(others[2:]):
        return "weights that are changed, or settings by name"
    return Positions(0, weight.shape[0])


@public("nn.functional", op=embedding_op, deferred=_leaves_weights)
def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = None,
              max_norm: float | None = None, norm_type: float = 2.0,
              scale_grad_by_freq: bool = False, sparse: bool = False) -> Tensor:
    """The rows of ``weight`` (V, D) at the integers ``input`` (any shape S): (S, D).

    padding_idx: a row that gets no gradient. max_norm: rows that are looked up are first shrunk, in
    place, to that norm (of order ``norm_type``). scale_grad_by_freq: divide each row's gradient by how
    often it was looked up. Raises IndexError for an index outside the table, DTypeError for indices
    that are no integers. sparse: the gradient of ``weight`` is a sparse tensor that holds the rows that were
    looked up, if ``weight`` is a leaf; that of a computed weight is dense.

    >>> table = fw.tensor([[0.0, 0.1], [1.0, 1.1], [2.0, 2.1]])
    >>> fw.nn.functional.embedding(fw.tensor([2, 0]), table)
    tensor([[2.0000, 2.1000],
            [0.0000, 0.1000]])
    """
    _whole_numbers(input, "embedding")
    if tensor_arg(weight, "embedding", "weight").ndim != 2:
        raise ShapeError(f"embedding: weight must be a table (V, D), got shape {list(weight.shape)}")
    rows = weight.shape[0]
    if not rows or not cuda.checks_itself(input._array):
        _check_indices(input._array, rows, "embedding", f"the table has {rows} rows")
    if padding_idx is not None:
        if not -rows <= padding_idx < rows:
            raise IndexError(f"embedding: padding_idx={padding_idx} is outside the table of {rows} rows")
        padding_idx %= rows
    if max_norm is not None:
        with on_device(weight._array):
            _shrink_rows(weight, input._array, float(max_norm), float(norm_type))
    op = sparse_embedding if sparse and type(weight._node) is Leaf else embedding_op
    return op.run(weight, input, padding=padding_idx, by_frequency=scale_grad_by_freq)


def _shrink_rows(weight: Tensor, indices: Any, max_norm: float, p: float) -> None:
    """Scale the rows that are looked up to at most ``max_norm``, in place and unrecorded."""
    settled((weight,))
    if weight._node is not None and type(weight._node) is not Leaf and state.enabled:
        raise AutogradError("embedding: max_norm changes weight in place, which must then be a leaf, this "
                            "one was computed; pass weight.detach(), or leave max_norm out")
    xp, table = array_module(weight._array), weight._array
    if not is_watched() and cuda.shrink_rows(table, indices, max_norm, p):
        bump(weight, "embedding(max_norm=...)")
        return
    used = xp.unique(indices)
    rows = table[used]
    sizes = xp.abs(rows)
    if p == float("inf"):
        norms = sizes.max(axis=1, keepdims=True)
    else:
        norms = (sizes ** p).sum(axis=1, keepdims=True, dtype=rows.dtype) ** (1 / p)
    if not bool((norms > max_norm).any()):
        return
    rows = xp.where(norms > max_norm, rows * (max_norm / (norms + 1e-7)), rows)
    if is_watched():
        with no_grad():
            weight[wrap(used)] = wrap(rows)
        return
    table[used] = rows
    bump(weight, "embedding(max_norm=...)")


@public("nn.functional")
def one_hot(input: Tensor, num_classes: int = -1) -> Tensor:
    """int64 vectors with a 1 at the given classes: shape S becomes (S, num_classes).

    num_classes: -1 for one more than the largest. Raises IndexError for a class outside it, ValueError
    if the number cannot be told, DTypeError unless the classes are integers.

    >>> fw.nn.functional.one_hot(fw.tensor([0, 2]))
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    _whole_numbers(input, "one_hot")
    classes = input._array
    if num_classes == -1:
        if not classes.size:
            raise ValueError("one_hot: num_classes=-1 needs at least one element; pass num_classes")
        about_to_read(classes, "one_hot, which counts the classes,")
        with on_device(classes):
            num_classes = max(int(classes.max()), 0) + 1
    if num_classes < 1 and classes.size:
        raise ValueError(f"one_hot: num_classes must be positive or -1, got {num_classes}")
    _check_indices(classes, num_classes, "one_hot", f"there are {num_classes} classes")
    return one_hot_op.run(input, count=num_classes)


one_hot_op = Op("one_hot", "x", onnx="one_hot(x, count)", runtime="one_hot(x, count)",
                native="one_hot", infer=lambda x, *, count: Meta((*x.shape, count), int64),
                batch=leading,
                kernel=lambda xp, x, *, count: (x[..., None] == xp.arange(count)).astype(int64.numpy,
                                                                                         order="C"))
