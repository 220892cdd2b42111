"""``x[key] = value`` for every key that NumPy and PyTorch take, index_put and put."""

from typing import Any

import numpy as np

from ...autograd.mode import state
from ...backends import device_code
from ...backends.native import native_or
from ...dtypes import as_dtype, can_cast
from ...errors import DTypeError, ShapeError, kind_of
from ...quiet import quiet, quietly, readable
from ...seam import settled
from ...tensor import Tensor, bump, wrap
from ..convert.cast import from_array, to
from ..pointwise.choose import where_op
from ..record.args import tensor_arg
from ..record.autocast import by_place
from ..record.into import call_into, count_if_begun, guard, native_into
from ..record.public import public
from ..shape.alone import flattened, led
from ..shape.broadcast import broadcast_shape, expand, take_size
from ..shape.slices import slice_op
from ..shape.view import take_shape
from ..write.inplace import fill_op, fitted, inplace, overwrite, store, write
from .index import (
    _key,
    added_at,
    count_true,
    index_put_op,
    indexed_shape,
    mask_put,
    positions,
)
from .keys import (
    Choice,
    basic_key,
    explain_range,
    is_positions,
    list_as_positions,
    place_of,
    places_of_mask,
    read_key,
    stacked_positions,
    together,
)

_NO_SETTINGS: dict = {}
_scattered_into = native_into("scattered")
_put_positions = native_into("positions")  # x[key] = value by tensors of positions, or a mask and a number


@public("", method="__setitem__", name="__setitem__", op=index_put_op)
def setitem(input: Tensor, key: Any, value: Any) -> None:
    """``input[key] = value``: write a number, or a tensor that broadcasts to the shape of ``input[key]``.

    Gradients flow to the new values and to the old ones that stay. Raises IndexError, ShapeError, or
    AutogradError for a leaf that requires grad.

    >>> x = fw.zeros(2, 3)
    >>> x[:, 1] = fw.tensor([1.0, 2.0])
    >>> x
    tensor([[0., 1., 0.],
            [0., 2., 0.]])
    """
    if _put_positions(input, key, value, "__setitem__") is input:
        return
    if type(key) is list:
        key = list_as_positions(key)
    basic = basic_key(key)
    if _set_quickly(input, basic, value) if basic is not None else _set_chosen_quickly(input, key, value):
        return
    settled((input,))
    guard(input, "__setitem__")
    choice = Choice(basic) if basic is not None else read_key(input, key)
    y = input if choice.basic is None else slice_op.run(input, key=choice.basic)
    value = _value(input, value)
    if choice.mask is None and choice.places is None:
        if not (isinstance(value, Tensor) and _same_memory(value, y)):
            value = _shaped(value, y.shape, y)
            overwrite(y, Ellipsis, value, fill_op, (y, value), {}, "__setitem__")
        return
    if isinstance(value, Tensor) and not can_cast(value.dtype, input.dtype):
        raise DTypeError(f"__setitem__: values of {value.dtype} do not fit a tensor of {input.dtype}; "
                         f"convert them first")
    if choice.mask is not None:
        if _written_where(y, choice.mask, value):
            return
        count = count_true(choice.mask)
        value = _shaped(value, (count, *input.shape[choice.mask.ndim:]), y)
        overwrite(y, choice.mask._array, value, mask_put, (y, value, choice.mask), {"count": count},
                  "__setitem__")
        return
    index, dims = choice.places, choice.dims
    explain_range(y, choice)
    value = _shaped(value, indexed_shape(y.shape, index.shape[1:], dims), y)  # type: ignore[union-attr]
    if _put_quickly(y, index._array, dims, value):  # type: ignore[union-attr]
        return
    overwrite(y, _key(index._array, dims), value, index_put_op, (y, value, index),  # type: ignore[union-attr]
              {"dims": dims}, "__setitem__")


def _written_where(x: Any, mask: Any, value: Any) -> bool:
    """Write where a mask holds on a GPU, if all places get the same: nobody waits to count them."""
    rest = x.shape[mask.ndim:]
    if not device_code.is_device_array(x._array):
        return False
    if isinstance(value, Tensor):
        if value.ndim > len(rest) or any(n not in (1, m) for n, m in zip(value.shape[::-1], rest[::-1])):
            return False
        value = to(value, x.dtype.numpy)
    elif x._array.dtype.kind in "biu":
        value = _as_written(value, x.dtype.numpy)
    where = take_shape(mask, (*mask.shape, *(1,) * len(rest)))
    write(x, where_op.run(where, value, x), "__setitem__")
    return True


def _as_written(value: Any, dtype: np.dtype) -> Any:
    """The number that NumPy leaves in memory of integers or bools: 2 or True of 2.5, and no 300 in int8."""
    memory = np.empty((), dtype)
    try:
        quietly(memory.__setitem__, (), value)
    except OverflowError as error:
        raise readable(error, "__setitem__") from None
    return memory.item()


def _is_recorded(x: Tensor) -> bool:
    if x._node is None and (x._more is None or x._more.base is None or x._more.base._node is None):
        return False
    return bool(state.enabled)


_assign = native_or("index_assign", lambda x, value, index, dims: NotImplemented)


def _put_quickly(x: Tensor, index: Any, dims: tuple[int, ...], value: Any) -> bool:
    """Write rows where nothing is recorded; False: take the long road."""
    if _is_recorded(x) or quiet.run is None or state.batches:
        return False
    if isinstance(value, Tensor):
        if state.enabled and value._node is not None:
            return False
        value = value._array
    try:
        if quietly(_assign, x._array, value, index, dims) is NotImplemented:
            return type(x._array) is type(index) is np.ndarray and _stored(x, _key(index, dims), value)
        bump(x, "__setitem__")
    except BaseException as error:
        count_if_begun(x, "__setitem__", error)
        raise
    return True


def _stored(x: Tensor, key: Any, value: Any) -> bool:
    """``store``, unless NumPy finds something wrong before it writes."""
    try:
        store(x, key, value, "__setitem__")
    except (IndexError, TypeError, ValueError):  # the long road says precisely what was wrong
        return False
    return True


def _set_quickly(x: Tensor, key: tuple, value: Any) -> bool:
    """Write where nothing is recorded and nothing needs conversion; False: take the long road."""
    if _is_recorded(x) or quiet.run is None or state.batches:
        return False
    if isinstance(value, Tensor):
        array = value._array
        if (array.dtype is not x._array.dtype or type(array) is not type(x._array)
                or state.enabled and value._node is not None):
            return False
        if array.ndim and array.size == 1:  # for a single place NumPy wants it without dimensions
            array = array.reshape(())
    elif type(value) in (float, int, bool):
        array = value
    else:
        return False
    return _stored(x, key, array)


def _set_chosen_quickly(x: Tensor, key: Any, value: Any) -> bool:
    """The same for tensors of positions, or one mask and a number, where the values fit as they are."""
    if type(x._array) is not np.ndarray:
        return False
    memory = x._array
    if isinstance(value, Tensor) and _is_number_of(value, memory):
        value = value._array.item()
    if type(key) is tuple:
        places, dims = stacked_positions(key, memory), tuple(range(len(key)))
        if places is NotImplemented and (d := place_of(key, x)) >= 0:
            places, dims = key[d]._array[None], (d,)
        return (places is not NotImplemented
                and _fits(value, memory, indexed_shape(memory.shape, places.shape[1:], dims))
                and _put_quickly(x, places, dims, value))
    if not isinstance(key, Tensor):
        return False
    index = key._array
    if type(index) is np.ndarray and index.dtype == bool and index.shape == memory.shape \
            and _number_fits(value, memory):
        if _is_recorded(x) or quiet.run is None or state.batches:
            return False
        if call_into(where_op, x, (key, value, x), _NO_SETTINGS, where_op.writes, "__setitem__") is not x:
            store(x, index, value, "__setitem__")
        return True
    if not is_positions(key, x):
        return False
    return _fits(value, memory, index.shape + memory.shape[1:]) and _put_quickly(x, index[None], (0,), value)


def _is_number_of(value: Tensor, memory: np.ndarray) -> bool:
    """Whether a tensor is one number of the memory's dtype, in no graph that is recorded."""
    array = value._array
    return (type(array) is np.ndarray and array.ndim == 0 and array.dtype is memory.dtype
            and not (state.enabled and value._node is not None))


def _number_fits(value: Any, memory: np.ndarray) -> bool:
    """Whether a value is a number that the memory holds: any beside floating ones, a whole one in 64 bits."""
    if type(value) is int:
        return memory.dtype.kind == "f" or memory.dtype.char == "l" and -1 << 63 <= value < 1 << 63
    return type(value) is float and memory.dtype.kind == "f"


def _fits(value: Any, memory: np.ndarray, chosen: tuple[int, ...]) -> bool:
    """Whether a value can be written as it is at places that are together of shape ``chosen``."""
    if not isinstance(value, Tensor):
        return _number_fits(value, memory)
    array = value._array
    return type(array) is np.ndarray and array.dtype is memory.dtype and array.shape == chosen


def _value(x: Tensor, value: Any) -> Any:
    """The new values as a number or a tensor."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, (bool, int, float, complex, np.generic)):
        if isinstance(value, complex) and x._array.dtype.kind != "c":
            raise DTypeError(f"__setitem__: a complex number does not fit a tensor of {x.dtype}")
        return value
    try:
        array = np.asarray(value)
        as_dtype(array.dtype)
    except (TypeError, ValueError) as error:
        raise TypeError(f"__setitem__: value must be a number, a tensor, or an array, got "
                        f"{type(value).__name__}") from error
    return from_array(quietly(array.astype, x.dtype.numpy), x)


def _shaped(value: Any, shape: tuple[int, ...], x: Tensor) -> Any:
    """A tensor value in the dtype of ``x``, broadcast to ``shape``; a number as it is."""
    if not isinstance(value, Tensor):
        return value
    value = fitted(x, value)
    if value.shape == shape:
        return value
    spare = value.ndim - len(shape)
    if spare > 0 and all(s == 1 for s in value.shape[:spare]):
        value = take_shape(value, value.shape[spare:])
    try:
        fits = broadcast_shape((value.shape, shape), "__setitem__") == tuple(shape)
    except ShapeError:
        fits = False
    if not fits:
        raise ShapeError(f"__setitem__: a value of shape {list(value.shape)} does not broadcast to the "
                         f"chosen shape {list(shape)}")
    return expand.run(value, size=tuple(shape))


def _same_memory(value: Tensor, y: Tensor) -> bool:
    """Whether both are the same view: ``x[0] += 1`` ends by assigning ``x[0]`` to itself."""
    a, b = value._array, y._array
    return (value._base is not None and value._base is y._base and a.shape == b.shape
            and a.strides == b.strides and a.dtype == b.dtype and value.data_ptr() == y.data_ptr())


@public(method=True, op=index_put_op, autocast=by_place("widest"))
def index_put(input: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    """``input`` with ``input[indices]`` replaced by ``values``, or, with ``accumulate``, with them added.

    indices: a tuple of index tensors (or masks), one per dimension; None takes a whole dimension.
    ``values`` broadcast. Repeats add up with ``accumulate``, otherwise one of the values stays.

    >>> at = (fw.tensor([0, 0]), fw.tensor([1, 1]))
    >>> fw.index_put(fw.zeros(2, 2), at, fw.ones(2), accumulate=True)
    tensor([[0., 2.],
            [0., 0.]])
    """
    tensor_arg(input, "index_put"), tensor_arg(values, "index_put", "values")
    if type(indices) is tuple and type(input._array) is np.ndarray and quiet.run is not None:
        known = stacked_positions(indices, input._array)  # nearly always
        if known is not NotImplemented:
            values = _widened(values, known.shape[1:] + input._array.shape[len(indices):])
        if known is not NotImplemented \
                and _fits(values, input._array, known.shape[1:] + input._array.shape[len(indices):]):
            return _put_at(input, wrap(known), tuple(range(len(indices))), values, accumulate)
    for place, i in enumerate(indices):
        if isinstance(i, (str, bytes, dict)):
            raise TypeError(f"index_put: indices[{place}] must be a Tensor or None, got {kind_of(i)}")
    key = tuple(slice(None) if i is None else i for i in indices)
    choice = _index_only(read_key(input, key), input)
    values = _shaped(values, indexed_shape(input.shape, choice.places.shape[1:], choice.dims), input)  # type: ignore
    explain_range(input, choice)
    return _put_at(input, choice.places, choice.dims, values, accumulate)


def _put_at(x: Tensor, places: Any, dims: tuple[int, ...], values: Any, accumulate: bool) -> Tensor:
    """``index_put`` of values of the chosen shape at places that are there."""
    if not accumulate:
        return index_put_op.run(x, values, places, dims=dims)
    return added_at(x, values, places, dims)


_index_put_into = inplace(index_put, "index_put", index_put_op)


@public("", method=True, op=index_put_op)
def index_put_(input: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    """``index_put`` in place: writes into this tensor and returns it.

    >>> fw.zeros(2, 2).index_put_((fw.tensor([0, 1]), fw.tensor([1, 0])), fw.ones(2))
    tensor([[0., 1.],
            [1., 0.]])
    """
    if not accumulate and isinstance(values, Tensor):
        if _put_positions(input, indices, values, "index_put_") is input:
            return input
        if type(indices) is tuple and len(indices) == 1 and type(indices[0]) is Tensor:
            values = _widened(values, indices[0]._array.shape + input._array.shape[1:])
        if _set_chosen_quickly(input, indices, values):
            return input
    elif accumulate is True and isinstance(values, Tensor) \
            and type(indices) in (tuple, list) and len(indices) == 1 \
            and _scattered_into(input, 0, indices[0], values, "sum", True, "index_put_") is input:
        return input
    return _index_put_into(input, indices, values, accumulate)


def _widened(values: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Values repeated to the shape of what is chosen, where new dimensions in front do that."""
    own = values._array.shape
    if own and own != shape and own == shape[len(shape) - len(own):]:
        return take_size(values, shape)
    return values


def _index_only(choice: Choice, x: Tensor) -> Choice:
    """The same choice by index arrays; keys that need a view first have no place here."""
    if choice.mask is not None:
        parts = places_of_mask(choice.mask)
        return Choice(None, places=together(parts), dims=tuple(range(len(parts))))
    if choice.basic is not None or choice.places is None:
        raise IndexError("index_put: indices must be tensors of integers or bools (None for a whole "
                         "dimension); use x[key] = value for ints and slices")
    return choice


@public(method=True)
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """``input`` with ``source`` at the positions ``index`` of its flattened elements: (*), (n), (n) -> (*).

    accumulate: added to what is there. Raises ShapeError where index and source have different sizes,
    IndexError for a position that is not there.

    >>> fw.put(fw.zeros(2, 2), fw.tensor([1, 3]), fw.tensor([5.0, 7.0]))
    tensor([[0., 5.],
            [0., 7.]])
    """
    tensor_arg(input, "put"), tensor_arg(index, "put", "index"), tensor_arg(source, "put", "source")
    if source._array.dtype is not input._array.dtype and source.dtype is not input.dtype:
        raise DTypeError(f"put: source must be {input.dtype} like the tensor, got {source.dtype}; convert it")
    if index._array.size != source._array.size:
        raise ShapeError(f"put: index has {index.numel()} elements and source {source.numel()}; they must be "
                         f"equally many")
    flat, places, values = flattened(input), flattened(index), flattened(source)
    if accumulate or not places._array.size:
        out = index_put(flat, (places,), values, accumulate)
    else:
        places = led(positions(places, flat._array.size, "put", 0, negative=True))
        out = index_put_op.run(flat, values, places, dims=(0,))
    shape = input._array.shape
    if flat is not input and out._node is None and type(out._array) is np.ndarray and quiet.run is not None:
        return wrap(out._array.reshape(shape))  # what nobody else has is no view
    return out if flat is input else take_shape(out, shape)


_put_flat_into, _put_into = native_into("flat"), inplace(put, "put", None)


@public("", method=True)
def put_(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """``put`` in place: writes into this tensor and returns it.

    >>> fw.zeros(2, 2).put_(fw.tensor([1, 3]), fw.tensor([5.0, 7.0]))
    tensor([[0., 5.],
            [0., 7.]])
    """
    if accumulate is False and _put_flat_into(input, index, source, "put_") is input:
        return input
    return _put_into(input, index, source, accumulate)
