"""``x[key]`` and ``x[key] = value`` for every key that NumPy and PyTorch take.

A key is read in two steps, as in PyTorch: its basic parts (ints, slices, None, Ellipsis) give a view,
then integer tensors and masks choose from it. NumPy differs in one point: it counts an int beside
index arrays as one of them when it places the result's dimensions.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from ...autograd.mode import state
from ...backends import about_to_read, array_module, device_code, on_device
from ...backends.native import native_or
from ...dtypes import BY_NUMPY, as_dtype, can_cast, int64
from ...errors import DeviceError, DTypeError, ShapeError, kind_of
from ...quiet import quiet, quietly, readable
from ...seam import settled
from ...tensor import Tensor, bump, wrap
from ..convert.cast import from_array, to
from ..pointwise.choose import where_op
from ..record.args import tensor_arg
from ..record.autocast import by_place
from ..record.into import call_into, count_if_begun, guard
from ..record.public import public
from ..shape.broadcast import broadcast_shape, expand, take_size
from ..shape.join import stack_op
from ..shape.slices import slice_op, sliced, take_slice
from ..shape.view import take_shape
from ..write.inplace import fill_op, fitted, inplace, overwrite, store, write
from .index import (
    _key,
    check_range,
    count_true,
    flattened,
    index_op,
    index_put_op,
    indexed_shape,
    mask_op,
    mask_put,
    one_index,
    positions,
    unindex,
)

_BOUND = (int, type(None))
_NO_SETTINGS: dict = {}


class Choice(NamedTuple):
    """A key, read: a basic key (None if it changes nothing), then a mask, or index arrays at ``dims``."""

    basic: tuple | None
    mask: Tensor | None = None
    places: Tensor | None = None
    dims: tuple[int, ...] = ()
    there: bool = False  # whether all places are known to be


def _plain(k: Any) -> bool:
    """Whether one item of a key is basic and can go to NumPy as it is."""
    kind = type(k)
    if kind is slice:
        return (type(k.start) in _BOUND and type(k.stop) in _BOUND
                and (k.step is None or type(k.step) is int and k.step > 0))
    return kind is int or k is None or k is Ellipsis


def _is_number(k: Any) -> bool:
    """Whether an item is a tensor of one whole number, without dimensions: it means what the number does."""
    return isinstance(k, Tensor) and k._array.ndim == 0 and k._array.dtype.kind in "iu"


def _basic(key: Any) -> tuple | None:
    """The key as a tuple if all of it is basic, tensors of a number being numbers: the quick road."""
    items = key if type(key) is tuple else (key,)
    for k in items:
        if not _plain(k):
            break
    else:
        return items if items.count(Ellipsis) < 2 else None
    if not all(_plain(k) or _is_number(k) for k in items):
        return None
    return _basic(tuple([int(k.item()) if isinstance(k, Tensor) else k for k in items]))


def _positions_of(key: list) -> Any:
    """A list of Python's ints as a tensor of positions; others as they are."""
    return wrap(np.array(key, np.int64)) if key and all(type(k) is int for k in key) else key


def _whether_deferred(input: Tensor, key: Any) -> str | None:
    return "positions that are tensors" if _holds_tensors(key) else None


def _holds_tensors(key: Any) -> bool:
    return isinstance(key, Tensor) or isinstance(key, (tuple, list)) and any(map(_holds_tensors, key))


@public("", method="__getitem__", name="__getitem__", op=index_op, deferred=_whether_deferred)
def getitem(input: Tensor, key: Any) -> Tensor:
    """``input[key]``: a view for ints, slices, None and Ellipsis, a copy for index tensors and masks.

    Index arrays (tensors, lists, NumPy arrays) broadcast together; their shape stands where they stood
    if they are adjacent, else in front. Raises IndexError naming the index, dimension and size.

    >>> x = fw.arange(6).view(2, 3)
    >>> x[0, 1:], x[:, [2, 0]], x[x > 3]
    (tensor([1, 2]), tensor([[2, 0],
            [5, 3]]), tensor([4, 5]))
    """
    out = sliced(input, key, slice_op)
    if out is not NotImplemented:
        return out
    if type(key) is int or type(key) is slice and _plain(key):
        return take_slice(input, (key,))
    if type(key) is list:
        key = _positions_of(key)
    if _is_mask(key, input):
        return mask_op.run(input, key, count=count_true(key))
    if isinstance(key, Tensor) and key._array.ndim and key._array.dtype.char in "bhi":  # shorter positions
        key = to(key, int64)
    placed = type(key) is tuple and _place_of(key, input) >= 0
    if not placed and (basic := _basic(key)) is not None:
        return take_slice(input, basic)
    if _is_positions(key, input):
        choice = Choice(None, places=one_index(key), dims=(0,))
    else:
        choice = _read(input, key)
    y = input if choice.basic is None else slice_op.run(input, key=choice.basic)
    if choice.mask is not None:
        return mask_op.run(y, choice.mask, count=count_true(choice.mask))
    if choice.places is None:
        return y
    try:
        return index_op.run(y, choice.places, dims=choice.dims)
    except IndexError:
        _explain(y, choice)
        raise


def _is_mask(key: Any, x: Tensor) -> bool:
    """Whether the key is one mask of the first dimensions, in memory as the tensor is."""
    if not isinstance(key, Tensor):
        return False
    mask, array = key._array, x._array
    return (type(mask) is type(array) is np.ndarray and mask.dtype.char == "?" and mask.ndim > 0
            and mask.shape == array.shape[:mask.ndim])


def _is_positions(key: Any, x: Tensor) -> bool:
    """Whether the key is one tensor of positions that needs no reading."""
    return (isinstance(key, Tensor) and type(key._array) is type(x._array) and key._array.ndim > 0
            and key._array.dtype == np.int64 and x._array.ndim > 0)


def _explain(y: Tensor, choice: Choice) -> None:
    if choice.there:
        return
    for k, d in enumerate(choice.dims):
        check_range(choice.places._array[k], y.shape[d], "index", d, "index")  # type: ignore[union-attr]


# -- reading a key -------------------------------------------------------------------------------


# the positions of a key that is tensors of positions of one shape, all of them there, as one array
_stacked = native_or("stacked_positions", lambda key, x: NotImplemented)


def _all_positions(key: tuple, x: Tensor) -> Choice | None:
    """The choice of a key that is tensors of positions, of one shape; None for other keys."""
    if not 1 <= len(key) <= x.ndim or type(x._array) is not np.ndarray or quiet.run is None:
        return None
    known = _stacked(key, x._array)
    if known is not NotImplemented:
        return Choice(None, places=wrap(known), dims=tuple(range(len(key))), there=True)
    shape = None
    for k in key:
        if not isinstance(k, Tensor) or type(k._array) is not np.ndarray or k._array.dtype != np.int64:
            return None
        if shape != k._array.shape and shape is not None or not k._array.ndim:
            return None
        shape = k._array.shape
    places = np.empty((len(key), *shape), np.int64)  # type: ignore[misc]
    for i, k in enumerate(key):
        places[i] = k._array
    return Choice(None, places=wrap(places), dims=tuple(range(len(key))))


def _place_of(key: tuple, x: Tensor) -> int:
    """Where in a key of whole slices stands its only other item, a tensor of positions; -1 for other keys."""
    found = -1
    for d, k in enumerate(key):
        if type(k) is slice:
            if k.start is not None or k.stop is not None or k.step is not None:
                return -1
        elif found < 0 and _is_positions(k, x):
            found = d
        else:
            return -1
    return found if len(key) <= x._array.ndim else -1


def _read(x: Tensor, key: Any) -> Choice:
    if type(key) is tuple:
        if (choice := _all_positions(key, x)) is not None:
            return choice
        if (d := _place_of(key, x)) >= 0:
            return Choice(None, places=one_index(key[d]), dims=(d,))
    if type(key) is list and any(k is None or k is Ellipsis or type(k) is slice for k in key):
        key = tuple(key)  # as NumPy once had it, and PyTorch still has
    items = [_item(k, x) for k in (key if isinstance(key, tuple) else (key,))]
    used = sum(_width(k) for k in items)
    if sum(k is Ellipsis for k in items) > 1:
        raise IndexError("index: a key may hold one Ellipsis (...) only")
    if used > x.ndim:
        raise IndexError(f"index: {used} indices for a tensor of {x.ndim} dimensions (shape "
                         f"{list(x.shape)}); leave some out")
    basic: list[Any] = []
    chosen: list[tuple[int, Tensor]] = []
    source = target = 0  # the dimension of x, and of the view, that the next item stands at
    for k in items:
        if isinstance(k, bool):  # a new dimension, of size 1 for True and 0 for False
            basic.append(None)
            chosen.append((target, from_array(np.arange(int(k)), x)))
        elif isinstance(k, Tensor):
            if k._array.dtype.kind == "b":
                _check_mask(k, x, source)
                if source == target == 0 and all(_is_full(i) for i in items if i is not k):
                    return Choice(None, mask=k)
                parts = _places_of(k)
            else:
                parts = [k]
            chosen += [(target + i, part) for i, part in enumerate(parts)]
            basic += [slice(None)] * len(parts)
        else:
            basic.append(k)
        target += x.ndim - used if k is Ellipsis else _target_width(k)
        source += x.ndim - used if k is Ellipsis else _width(k)
    plain = None if all(_is_full(k) for k in basic) else tuple(basic)
    if not chosen:
        return Choice(plain)
    return Choice(plain, places=_together([t for _, t in chosen]), dims=tuple(d for d, _ in chosen))


def _width(k: Any) -> int:
    """How many dimensions of the tensor an item takes."""
    if isinstance(k, Tensor):
        return k.ndim if k._array.dtype.kind == "b" else 1
    return 0 if k is None or k is Ellipsis or isinstance(k, bool) else 1


def _target_width(k: Any) -> int:
    """How many dimensions of the view an item stands for."""
    if isinstance(k, Tensor):
        return _width(k)
    return 1 if k is None or isinstance(k, (bool, slice)) else 0


def _is_full(k: Any) -> bool:
    return k is Ellipsis or (isinstance(k, slice) and k == slice(None))


def _item(k: Any, x: Tensor) -> Any:
    """One item of a key as int, bool, slice, None, Ellipsis, or a tensor of int64 or bool on x's device."""
    if isinstance(k, slice):
        return _slice(k)
    if k is None or k is Ellipsis or isinstance(k, (bool, int)):
        return k
    if isinstance(k, np.generic):
        k = np.asarray(k)
    if isinstance(k, (list, tuple, range)):
        k = np.array(_without_tensors(k))
        if not k.size and k.dtype.kind == "f":
            k = k.astype(np.int64)
    elif isinstance(k, np.ndarray):
        k = k.copy()  # the caller may change it before backward
    if isinstance(k, np.ndarray):
        if k.dtype not in BY_NUMPY and k.dtype.kind in "iu":
            k = k.astype(np.int64)
        if k.dtype not in BY_NUMPY:
            raise IndexError(f"index: an array of {k.dtype} cannot be an index")
        k = wrap(k)
    if not isinstance(k, Tensor):
        if hasattr(k, "__index__"):
            return k.__index__()
        raise IndexError(f"index: {type(k).__name__} cannot be an index; use ints, slices, None, ..., "
                         f"or tensors, arrays or lists of ints or bools")
    return _tensor_item(k, x)


def _tensor_item(k: Tensor, x: Tensor) -> Any:
    kind = k._array.dtype.kind
    if kind not in "biu":
        raise IndexError(f"index: a tensor of {k.dtype} cannot be an index; use integers (.long()) or "
                         f"bools (a comparison)")
    if k._array.dtype == np.uint8 and k.ndim:
        raise IndexError("index: a uint8 tensor could mean a mask or positions; use .bool() or .long()")
    if k.ndim == 0:
        return bool(k.item()) if kind == "b" else int(k.item())
    if x.is_cuda or k.is_cuda:
        if k.is_cuda and k.device != x.device:
            raise DeviceError(f"index: the index is on {k.device}, the tensor on {x.device}; move the index: "
                              f".to(x.device)")
        k = to(k, device=x.device)
    return k if kind == "b" or k._array.dtype.itemsize == 8 else to(k, np.int64)


def _slice(k: slice) -> slice:
    bounds = []
    for name in ("start", "stop", "step"):
        value = getattr(k, name)
        if value is not None and not hasattr(value, "__index__"):
            raise TypeError(f"index: {name} of a slice must be an int or None, got {type(value).__name__}")
        bounds.append(None if value is None else value.__index__())
    if bounds[2] is not None and bounds[2] <= 0:
        raise ValueError(f"index: the step of a slice must be positive, got {bounds[2]}; to reverse, use "
                         f"x.flip(dim)")
    return slice(*bounds)


def _without_tensors(items: Iterable) -> list:
    return [k.tolist() if isinstance(k, Tensor) else _without_tensors(k) if isinstance(k, (list, tuple))
            else k for k in items]


def _check_mask(mask: Tensor, x: Tensor, source: int) -> None:
    here = x.shape[source:source + mask.ndim]
    if mask.shape != here:
        raise IndexError(f"index: a mask of shape {list(mask.shape)} does not fit dimensions {source} to "
                         f"{source + mask.ndim - 1} of a tensor of shape {list(x.shape)}, which have "
                         f"shape {list(here)}")


def _places_of(mask: Tensor) -> list[Tensor]:
    """Where a mask is True, dimension by dimension."""
    about_to_read(mask._array, "the number of elements that a mask chooses")
    with on_device(mask._array):
        return [wrap(a) for a in mask._array.nonzero()]


def _together(tensors: list[Tensor]) -> Tensor:
    """Index tensors broadcast to one shape and stacked; a single one shares its version counter."""
    if len(tensors) == 1:
        return one_index(tensors[0])
    try:
        shape = broadcast_shape([t.shape for t in tensors], "index")
    except ShapeError as error:
        raise IndexError(str(error)) from None
    if quiet.run is None:  # interceptors see where the positions come from
        return stack_op.run(*[expand.run(t, size=shape) for t in tensors], dim=0)
    xp = array_module(tensors[0]._array)
    with on_device(tensors[0]._array):
        return wrap(xp.stack([xp.broadcast_to(t._array, shape) for t in tensors]))


# -- writing -------------------------------------------------------------------------------------


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
    if type(key) is list:
        key = _positions_of(key)
    basic = _basic(key)
    if _set_quickly(input, basic, value) if basic is not None else _set_chosen_quickly(input, key, value):
        return
    settled((input,))
    guard(input, "__setitem__")
    choice = Choice(basic) if basic is not None else _read(input, key)
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
    _explain(y, choice)
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
                or state.enabled and value._node is not None
                or array.ndim and array.size == 1):  # for a single place NumPy wants it without dimensions
            return False
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
        places, dims = _stacked(key, memory), tuple(range(len(key)))
        if places is NotImplemented and (d := _place_of(key, x)) >= 0:
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
    if not _is_positions(key, x):
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


@public("", method="__contains__", name="__contains__")
def contains(input: Tensor, element: Any) -> bool:
    """Whether some element equals ``element``, a number or a tensor that broadcasts.

    >>> 2 in fw.tensor([1, 2])
    True
    """
    if not isinstance(element, (Tensor, bool, int, float, complex, np.generic)):
        raise TypeError(f"in: wanted a number or a Tensor, got {type(element).__name__}")
    return bool((input == element).any())  # type: ignore[attr-defined]


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
        known = _stacked(indices, input._array)  # nearly always
        if known is not NotImplemented:
            values = _widened(values, known.shape[1:] + input._array.shape[len(indices):])
        if known is not NotImplemented \
                and _fits(values, input._array, known.shape[1:] + input._array.shape[len(indices):]):
            return _put_at(input, wrap(known), tuple(range(len(indices))), values, accumulate)
    for place, i in enumerate(indices):
        if isinstance(i, (str, bytes, dict)):
            raise TypeError(f"index_put: indices[{place}] must be a Tensor or None, got {kind_of(i)}")
    key = tuple(slice(None) if i is None else i for i in indices)
    choice = _index_only(_read(input, key), input)
    values = _shaped(values, indexed_shape(input.shape, choice.places.shape[1:], choice.dims), input)  # type: ignore
    _explain(input, choice)
    return _put_at(input, choice.places, choice.dims, values, accumulate)


def _put_at(x: Tensor, places: Any, dims: tuple[int, ...], values: Any, accumulate: bool) -> Tensor:
    """``index_put`` of values of the chosen shape at places that are there."""
    if not accumulate:
        return index_put_op.run(x, values, places, dims=dims)
    return x + unindex.run(values, places, dims=dims, shape=x._array.shape)  # type: ignore[operator]


_index_put_into = inplace(index_put, "index_put", index_put_op)


@public("", method=True, op=index_put_op)
def index_put_(input: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    """``index_put`` in place: writes into this tensor and returns it.

    >>> fw.zeros(2, 2).index_put_((fw.tensor([0, 1]), fw.tensor([1, 0])), fw.ones(2))
    tensor([[0., 1.],
            [1., 0.]])
    """
    if not accumulate and isinstance(values, Tensor):
        if type(indices) is tuple and len(indices) == 1 and type(indices[0]) is Tensor:
            values = _widened(values, indices[0]._array.shape + input._array.shape[1:])
        if _set_chosen_quickly(input, indices, values):
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
        parts = _places_of(choice.mask)
        return Choice(None, places=_together(parts), dims=tuple(range(len(parts))))
    if choice.basic is not None or choice.places is None:
        raise IndexError("index_put: indices must be tensors of integers or bools (None for a whole "
                         "dimension); use x[key] = value for ints and slices")
    return choice


@public(method=True, inplace=True)
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
        places = one_index(positions(places, flat._array.size, "put", 0, negative=True))
        out = index_put_op.run(flat, values, places, dims=(0,))
    return out if flat is input else take_shape(out, input._array.shape)
