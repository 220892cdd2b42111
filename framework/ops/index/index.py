"""Choosing and writing elements by integer arrays and masks: the records behind ``x[...]``, gather,
scatter and their kin.

Several index arrays travel stacked as one: ``index[k]`` holds the positions along dimension
``dims[k]``, all broadcast to one shape, which replaces those dimensions where they are adjacent and
comes first where they are not, as in NumPy.
"""

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from ...backends import about_to_read, array_module, device_flags, meta, on_device, sums
from ...backends.native import native_or
from ...dtypes import bool_
from ...errors import DTypeError, ShapeError
from ...tensor import Tensor
from ..convert.cast import to
from ..pointwise.arithmetic import plus_sums
from ..pointwise.choose import where_op
from ..record.args import one_dim, tensor_arg
from ..record.batched import (
    Batched,
    aligned,
    call,
    everywhere,
    front_moved,
    innermost,
    looped,
    on_tensors,
    to_front,
)
from ..record.deferred import Positions
from ..record.into import native_into
from ..record.op import Meta, Op
from ..record.public import bare, public
from ..shape.alone import flattened, led
from ..shape.broadcast import expand
from ..shape.join import cat_op
from ..shape.view import take_shape
from ..write.inplace import inplace, scalar_arg
from . import cuda

# -- by positions --------------------------------------------------------------------------------


def _key(index: Any, dims: tuple[int, ...]) -> tuple:
    key: list[Any] = [slice(None)] * (dims[-1] + 1)
    for k, d in enumerate(dims):
        key[d] = index[k]
    return tuple(key)


def indexed_shape(shape: tuple[int, ...], index: tuple[int, ...], dims: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of a choice by index arrays of shape ``index`` at ``dims`` (ascending)."""
    rest = tuple(s for i, s in enumerate(shape) if i not in dims)
    at = dims[0] if dims[-1] - dims[0] == len(dims) - 1 else 0
    return rest[:at] + index + rest[at:]


def _index_infer(x: Meta, index: Meta, *, dims: tuple[int, ...]) -> Meta:
    if dims[-1] >= x.ndim:
        raise IndexError(f"index: dimension {dims[-1]} does not exist in a tensor of shape {list(x.shape)}")
    return Meta(indexed_shape(x.shape, index.shape[1:], dims), x.dtype)


def _index_kernel(xp: Any, x: Any, index: Any, *, dims: tuple[int, ...]) -> Any:
    if len(dims) == 1:
        return xp.take(x, index[0], axis=dims[0])
    return x[_key(index, dims)]


def summed_at(xp: Any, shape: tuple[int, ...], key: tuple, values: Any) -> Any:
    """Zeros of ``shape`` with ``values`` added at ``key`` (arrays and full slices), repeats summed.

    On the CPU the places are flattened first: NumPy's ``add.at`` is 2 to 5 times faster on one
    dimension than on several.
    """
    out = xp.zeros(shape, values.dtype)
    if not values.size:
        return out
    if xp is not np:
        sums.add_at(xp, out, key, values)
        return out
    if len(key) == 1:  # whole rows
        width = prod(shape[1:])
        flat = key[0].astype(np.int64).reshape(-1, 1) % shape[0] * width + np.arange(width)
    else:
        flat = np.arange(out.size).reshape(shape)[key]
    np.add.at(out.reshape(-1), flat.reshape(-1), values.reshape(-1))
    return out


def _unindex_kernel(xp: Any, x: Any, index: Any, *, dims: tuple[int, ...],
                    shape: tuple[int, ...]) -> Any:
    key, n = _key(index, dims), shape[dims[0]]
    if xp is np and len(dims) == 1 and index.size and x.size > index.size:
        positions = index.reshape(-1) % n
        if np.bincount(positions, minlength=n).max() <= 1:  # nothing to add: several times faster
            out = np.zeros(shape, x.dtype)
            out[key] = x
            return out
    return summed_at(xp, shape, key, x)


# the rules for batches. Positions that all examples share choose behind the batch; positions that each
# example has its own of get the number of the example beside them, and what they choose then lies right
# behind the batch.


def _by_example(size: int, index: Any) -> Any:
    """Positions (batch, k, ...) as (k + 1, batch, ...), the first of which are the examples' numbers."""
    index = front_moved(index, 1)
    numbers = np.arange(size).reshape((1, size, *(1,) * (index.ndim - 2)))
    if type(index) is Batched:
        numbers = numbers + (index[:1] * 0)
        return call(cat_op, numbers, index, dim=0)
    return np.concatenate([np.broadcast_to(numbers, (1, *index.shape[1:])), index])


def _place(dims: tuple[int, ...]) -> int:
    return dims[0] if dims[-1] - dims[0] == len(dims) - 1 else 0


def _block_moved(a: Any, count: int, start: int, to: int) -> Any:
    """The array with ``count`` dimensions from ``start`` on moved to begin at ``to``, of the others."""
    block = list(range(start, start + count))
    order = [i for i in range(a.ndim) if i not in block]
    order[to:to] = block
    return a.transpose(order)


@on_tensors(lambda batched, settings: not all(batched))
def batch_index(op: Op, size: int, arrays: list, batched: tuple, settings: dict) -> Any:
    (x, index), dims = arrays, settings["dims"]
    moved = tuple([d + 1 for d in dims])
    count = index.ndim - 1 - batched[1]
    if not batched[1]:
        out = call(op, x, index, dims=moved)
        return out if _place(dims) or _place(moved) else to_front(out, count)
    if not batched[0]:  # the batch is one more dimension of the positions
        return to_front(call(op, x, front_moved(index, 1), dims=dims), _place(dims))
    out = call(op, x, _by_example(size, index), dims=(0, *moved))
    return _block_moved(out, count, 1, 1 + _place(dims))


def batch_unindex(op: Op, size: int, arrays: list, batched: tuple, settings: dict) -> Any:
    (x, index), dims, shape = arrays, settings["dims"], settings["shape"]
    moved = tuple([d + 1 for d in dims])
    count = index.ndim - 1 - batched[1]
    x = everywhere(size, [x], batched)[0]
    if not batched[1]:
        if not _place(moved):
            x = front_moved(x, count)
        return call(op, x, index, dims=moved, shape=(size, *shape))
    x = _block_moved(x, count, 1 + _place(dims), 1)
    return call(op, x, _by_example(size, index), dims=(0, *moved), shape=(size, *shape))


def batch_index_put(op: Op, size: int, arrays: list, batched: tuple, settings: dict) -> Any:
    (x, value, index), dims = arrays, settings["dims"]
    moved = tuple([d + 1 for d in dims])
    count = index.ndim - 1 - batched[2]
    x = everywhere(size, [x], batched)[0]
    if batched[2] or batched[1] or hasattr(value, "ndim") and value.ndim:
        chosen = indexed_shape(x.shape[1:], index.shape[1 + batched[2]:], dims)
        value = aligned([value, np.empty((1,) * len(chosen))], (batched[1], False))[0]
        value = value if hasattr(value, "ndim") else np.asarray(value, x.dtype)
        value = call(expand, value, size=(size, *chosen))
        if batched[2]:
            value = _block_moved(value, count, 1 + _place(dims), 1)
        elif not _place(moved):
            value = front_moved(value, count)
    if not batched[2]:
        return call(op, x, value, index, dims=moved)
    return call(op, x, value, _by_example(size, index), dims=(0, *moved))


def batch_mask(op: Op, size: int, arrays: list, batched: tuple, settings: dict) -> Any:
    """Of choices by a mask, which all examples share: else their results had different sizes."""
    *values, mask = arrays
    if batched[-1] or type(mask) is Batched:
        return looped(op, size, arrays, batched, settings)
    positions = np.stack(np.nonzero(mask)) if mask.ndim else np.zeros((0, int(mask)), int)
    if not mask.ndim:
        return looped(op, size, arrays, batched, settings)
    dims = tuple(range(mask.ndim))
    if op is mask_op:
        return batch_index(index_op, size, [*values, positions], batched, {"dims": dims})
    if op is unmask:
        return batch_unindex(unindex, size, [*values, positions], batched,
                             {"dims": dims, "shape": settings["shape"]})
    return batch_index_put(index_put_op, size, [*values, positions], batched, {"dims": dims})


index_op = Op("index", "x index", onnx="indexed(x, index, dims)", real_indices=True,
              runtime="indexed(x, index, dims)",
              masks=True, kernel=_index_kernel, infer=_index_infer, jvp="linear",
              batch=batch_index,
              native="index", rounds="index", device=cuda.take_at,
              vjp={"x": lambda g, index, x_shape, dims: unindex(g, index, dims=dims, shape=x_shape)})
unindex = Op("unindex", "x index", onnx="placed(zeros(shape, x), x, index, dims, 'add')",
             kernel=_unindex_kernel, jvp="linear", native="unindex",
             batch=batch_unindex,
             infer=lambda x, index, *, dims, shape: Meta(shape, x.dtype),
             vjp={"x": lambda g, index, dims: index_op(g, index, dims=dims)})


def _index_add_kernel(xp: Any, x: Any, src: Any, index: Any, *, dims: tuple[int, ...]) -> Any:
    sums = _unindex_kernel(xp, src, index, dims=dims, shape=x.shape)
    return xp.where(sums == 0, x, x + sums)


# ``plus_sums`` of ``unindex``, in one pass over memory
index_add_op = Op("index_add", "x src index", onnx="placed(x, src, index, dims, 'add')", jvp="linear",
                  kernel=_index_add_kernel, native="index_add",
                  infer=lambda x, src, index, *, dims: x,
                  vjp={"x": lambda g: g, "src": lambda g, index, dims: index_op(g, index, dims=dims)})
_ADDED = "fdli"  # the numbers of which the record has a kernel


def added_at(x: Tensor, values: Tensor, index: Tensor, dims: tuple[int, ...]) -> Tensor:
    """``x`` with ``values`` added at the positions, those of one place summed up first."""
    array, given = x._array, values._array
    if type(array) is type(given) is np.ndarray and array.dtype is given.dtype and array.dtype.char in _ADDED:
        return index_add_op.run(x, values, index, dims=dims)
    return plus_sums.run(x, unindex.run(values, index, dims=dims, shape=array.shape))


def _index_put_kernel(xp: Any, x: Any, value: Any, index: Any, *, dims: tuple[int, ...]) -> Any:
    out = xp.array(x, copy=True, order="C")
    out[_key(index, dims)] = value
    return out


index_put_op = Op("index_put", "x value index", onnx="placed(x, value, index, dims)", masks=True,
                  real_indices=True,
                  kernel=_index_put_kernel, jvp="linear",
                  batch=batch_index_put,
                  native="index_put", rounds="index_put", device=cuda.put_at,
                  infer=lambda x, value, index, *, dims: x,
                  vjp={"x": lambda g, index, dims: index_put_op(g, 0.0, index, dims=dims),
                       "value": lambda g, index, dims: index_op(g, index, dims=dims)})


# -- by a mask over the leading dimensions -------------------------------------------------------


def _unmask_kernel(xp: Any, x: Any, mask: Any, *, shape: tuple[int, ...]) -> Any:
    out = xp.zeros(shape, x.dtype)
    out[mask] = x
    return out


def _mask_put_kernel(xp: Any, x: Any, value: Any, mask: Any, *, count: int) -> Any:
    out = xp.array(x, copy=True, order="C")
    out[mask] = value
    return out


# count: how many elements the mask chooses, so that shapes are known without looking at values
mask_op = Op("masked_select", "x mask", onnx="selected(x, mask)",
             batch=batch_mask, masks=True, jvp="linear", native="masked_select",
             rounds="masked_select", real_indices=True,
             kernel=lambda xp, x, mask, *, count: x[mask],
             infer=lambda x, mask, *, count: Meta((count, *x.shape[mask.ndim:]), x.dtype),
             vjp={"x": lambda g, mask, x_shape: unmask(g, mask, shape=x_shape)})
unmask = Op("unmask", "x mask", batch=batch_mask, kernel=_unmask_kernel, jvp="linear", native="unmask",
            rounds="unmask",
            infer=lambda x, mask, *, shape: Meta(shape, x.dtype),
            vjp={"x": lambda g, mask, x_shape: mask_op(g, mask, count=x_shape[0])})
mask_put = Op("mask_put", "x value mask", batch=batch_mask, kernel=_mask_put_kernel, jvp="linear",
              native="mask_put", rounds="mask_put",
              infer=lambda x, value, mask, *, count: x,
              vjp={"x": lambda g, mask, count: mask_put(g, 0.0, mask, count=count),
                   "value": lambda g, mask, count: mask_op(g, mask, count=count)})


_count_true = native_or("count_true", lambda mask: int(np.count_nonzero(mask)))


def count_true(mask: Tensor) -> int:
    """How many elements of a bool tensor hold."""
    if type(mask._array) is np.ndarray:
        # of an array with gaps it takes nine times as long
        return _count_true(np.ascontiguousarray(mask._array))  # type: ignore[no-any-return]
    about_to_read(mask._array, "the number of elements that a mask chooses")
    with on_device(mask._array):
        return int(array_module(mask._array).count_nonzero(mask._array))


# -- arguments -----------------------------------------------------------------------------------


def positions(index: Any, size: int, op: str, dim: int, name: str = "index",
              negative: bool = False) -> Tensor:
    """An integer index tensor as int64, checked against the size of the dimension it points into.

    Shares the version counter with ``index``, so that a later change in place is noticed.
    """
    if isinstance(index, Tensor) and _all_within(index._array, -size if negative else 0, size):
        return index  # nearly always
    tensor_arg(index, op, name)
    array = index._array
    if array.dtype.kind not in "iu":
        raise DTypeError(f"{op}: argument '{name}' must hold integers, got {index.dtype}; use {name}.long()")
    if array.dtype.itemsize != 8:
        return positions(to(index, np.int64), size, op, dim, name, negative)
    if not index.is_cuda and array.size:
        check_range(array, size, op, dim, name, negative)
    elif index.is_cuda:  # told at the next wait: nobody waits here to look at values
        device_flags.check(array, -size if negative else 0, size,
                           f"{op}: {name} {{value}} is out of range for dimension {dim} of size {{size}}")
    return index


# whether an array is of int64 with elements, all of them in a range; False where that is not known
_all_within: Callable = native_or("all_within", lambda array, low, high: False)
# the smallest and the largest of some positions
_extremes = native_or("index_range", lambda array: (
    (0, 0) if type(array) is meta.MetaArray else (int(array.min()), int(array.max()))))


def extremes(array: Any) -> tuple[int, int]:
    """The smallest and the largest index, of all examples of a batch."""
    return _extremes(innermost(array))


def check_range(array: np.ndarray, size: int, op: str, dim: int, name: str, negative: bool = True) -> None:
    """Raise the IndexError that names the first position outside of the dimension."""
    if not array.size:
        return
    if device_flags.check(array, -size if negative else 0, size,
                          f"{op}: {name} {{value}} is out of range for dimension {dim} of size {{size}}"):
        return
    low = -size if negative else 0
    least, most = extremes(array)
    if most >= size or least < low:
        wrong = array[(array >= size) | (array < low)]
        raise IndexError(f"{op}: {name} {int(wrong[0])} is out of range for dimension {dim} of size {size}")


# the dimension in [0, ndim) along which an index of one dimension, checked, fits; -1 where that is not known
_fitting = native_or("line_fits", lambda x, index, dim: -1)


def _line(x: Any, dim: int, index: Any, op: str) -> tuple[int, Tensor]:
    """``dim`` and a checked index of one dimension."""
    if isinstance(x, Tensor) and isinstance(index, Tensor):
        at = _fitting(x._array, index._array, dim)
        if at >= 0:  # nearly always
            return at, index
    at = one_dim(dim, tensor_arg(x, op).ndim, op)
    if tensor_arg(index, op, "index").ndim > 1:
        raise ShapeError(f"{op}: index must have one dimension, got shape {list(index.shape)}")
    if index.ndim == 0:
        index = take_shape(index, (1,))
    return at, positions(index, x.shape[at] if x.ndim else 1, op, at)


# -- along one dimension -------------------------------------------------------------------------


def _selected_from(input: Tensor, dim: int, index: Tensor) -> Positions:
    return Positions(2, input.shape[dim] if input.ndim else 1)


@public(method=True, op=index_op, out=True, deferred=_selected_from)
def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """The entries at the positions ``index`` (one dimension of integers) along ``dim``, as a copy.

    Raises IndexError for a position out of range.

    >>> fw.index_select(fw.tensor([[1, 2], [3, 4]]), 1, fw.tensor([1, 1]))
    tensor([[2, 2],
            [4, 4]])
    """
    at, index = _line(input, dim, index, "index_select")
    if input._array.ndim == 0:
        return index_select(take_shape(input, (1,)), 0, index).reshape(())  # type: ignore[attr-defined]
    return index_op.run(input, led(index), dims=(at,))


def _source(x: Tensor, at: int, index: Tensor, source: Any, op: str) -> Tensor:
    """``source`` checked to have the shape of ``x`` with the index's length at ``at``."""
    own, there, given = x._array, index._array.shape, tensor_arg(source, op, "source")._array
    want = own.shape[:at] + there + own.shape[at + 1:] if own.ndim else there
    if given.shape == want and given.dtype is own.dtype:
        return source
    if source.shape != want and not (source.ndim == 0 and index.numel() == 1 and len(want) <= 1):
        raise ShapeError(f"{op}: source must have shape {list(want)}, got {list(source.shape)}")
    if source.dtype is not x.dtype:
        raise DTypeError(f"{op}: source must be {x.dtype} like the tensor, got {source.dtype}; convert it")
    return take_shape(source, want) if source.shape != want else source


@public(method=True, out=True)
def index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: float = 1) -> Tensor:
    """``input`` with ``alpha * source`` added at the positions ``index`` along ``dim``; repeats add up.

    Raises ShapeError unless ``source`` has the shape of ``input`` with ``len(index)`` at ``dim``.

    >>> fw.index_add(fw.zeros(3), 0, fw.tensor([0, 2, 2]), fw.ones(3))
    tensor([1., 0., 2.])
    """
    at, index = _line(input, dim, index, "index_add")
    source = _source(input, at, index, source, "index_add")
    truth = source.dtype is bool_  # of which the result is one, too: whether any was added
    if alpha != 1:
        source = source & bool(alpha) if truth else source * alpha  # type: ignore[operator]
    if input._array.ndim == 0:
        return input + (source.any() if truth else source.sum())  # type: ignore[operator, attr-defined]
    return added_at(input, source, led(index), (at,))


@public(method=True, out=True, autocast="widest")
def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """``input`` with the entries at the positions ``index`` along ``dim`` replaced by those of ``source``.

    >>> fw.index_copy(fw.zeros(3), 0, fw.tensor([2, 0]), fw.tensor([1.0, 2.0]))
    tensor([2., 0., 1.])
    """
    at, index = _line(input, dim, index, "index_copy")
    source = _source(input, at, index, source, "index_copy")
    if input._array.ndim == 0:
        return source.reshape(())  # type: ignore[attr-defined]
    return index_put_op.run(input, source, led(index), dims=(at,))


@public(method=True)
def index_fill(input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """``input`` with ``value`` (a number or 0-dim tensor) at the positions ``index`` along ``dim``.

    >>> fw.index_fill(fw.zeros(3), 0, fw.tensor([0, 2]), 5)
    tensor([5., 0., 5.])
    """
    at, index = _line(input, dim, index, "index_fill")
    value = scalar_arg(input, value, "index_fill")
    if input.ndim == 0:
        return index_fill(take_shape(input, (1,)), 0, index, value).reshape(())  # type: ignore[attr-defined]
    if not isinstance(value, Tensor):
        return index_put_op.run(input, value, led(index), dims=(at,))
    # by a mask: to a position that stands there twice, the value contributes once
    line = input.new_zeros((input.shape[at],), dtype=bool_)  # type: ignore[attr-defined]
    line = index_put_op.run(line, True, led(index), dims=(0,))
    mask = take_shape(line, (input.shape[at], *(1,) * (input.ndim - at - 1)))
    return where_op.run(mask, value, input)


# the entries at positions of one dimension in memory: (x, dim, index, what is added or written, name)
_add_into, _put_into = native_into("sums"), native_into("entries")
_scattered_into = native_into("scattered")  # of whole rows: (x, dim, index, source, how, True, name)
_in_place = [inplace(bare(f), f.__name__, None) for f in (index_add, index_copy, index_fill)]
_index_add_into, _index_copy_into, _index_fill_into = _in_place


@public("", method=True)
def index_add_(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: float = 1) -> Tensor:
    """``index_add`` in place: writes into this tensor and returns it.

    >>> fw.zeros(3).index_add_(0, fw.tensor([0, 2, 2]), fw.ones(3))
    tensor([1., 0., 2.])
    """
    if alpha == 1 and _add_into(input, dim, index, source, "index_add_") is input:
        return input
    if isinstance(source, Tensor) and (alpha == 1 or source._array.dtype.kind == "f"):
        added: Any = source if alpha == 1 else source * alpha  # type: ignore[operator]
        if _scattered_into(input, dim, index, added, "sum", True, "index_add_") is input:
            return input
    return _index_add_into(input, dim, index, source, alpha=alpha)


@public("", method=True)
def index_copy_(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """``index_copy`` in place: writes into this tensor and returns it.

    >>> fw.zeros(3).index_copy_(0, fw.tensor([2, 0]), fw.tensor([1.0, 2.0]))
    tensor([2., 0., 1.])
    """
    if isinstance(source, Tensor) and _put_into(input, dim, index, source, "index_copy_") is input:
        return input
    return _index_copy_into(input, dim, index, source)


@public("", method=True)
def index_fill_(input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """``index_fill`` in place: writes into this tensor and returns it.

    >>> fw.zeros(3).index_fill_(0, fw.tensor([0, 2]), 5)
    tensor([5., 0., 5.])
    """
    if not isinstance(value, Tensor) and _put_into(input, dim, index, value, "index_fill_") is input:
        return input
    return _index_fill_into(input, dim, index, value)


@public(method=True, op=index_op, out=True)
def take(input: Tensor, index: Tensor) -> Tensor:
    """The elements at positions ``index`` of the flattened tensor, in the shape of ``index``.

    >>> fw.take(fw.tensor([[1, 2], [3, 4]]), fw.tensor([0, -1]))
    tensor([1, 4])
    """
    n = tensor_arg(input, "take")._array.size
    index = positions(index, n, "take", 0, negative=True)
    return index_op.run(flattened(input), led(index), dims=(0,))
