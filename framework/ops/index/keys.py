"""Keys of ``x[key]`` as they are read: basic parts, positions and masks.

A key is read in two steps, as in PyTorch: its basic parts (ints, slices, None, Ellipsis) give a view,
then integer tensors and masks choose from it. NumPy differs in one point: it counts an int beside
index arrays as one of them when it places the result's dimensions.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from ... import _native
from ...backends import about_to_read, array_module, on_device
from ...backends.native import native_or
from ...dtypes import BY_NUMPY
from ...errors import DeviceError, ShapeError
from ...quiet import quiet
from ...tensor import Tensor, wrap
from ..convert.cast import from_array, to
from ..shape.alone import led
from ..shape.broadcast import broadcast_shape, expand
from ..shape.join import stack_op
from .index import check_range

_BOUND = (int, type(None))


class Choice(NamedTuple):
    """A key, read: a basic key (None if it changes nothing), then a mask, or index arrays at ``dims``."""

    basic: tuple | None
    mask: Tensor | None = None
    places: Tensor | None = None
    dims: tuple[int, ...] = ()
    there: bool = False  # whether all places are known to be


def is_basic(k: Any) -> bool:
    """Whether one item of a key is basic and can go to NumPy as it is."""
    kind = type(k)
    if kind is slice:
        return (type(k.start) in _BOUND and type(k.stop) in _BOUND
                and (k.step is None or type(k.step) is int and k.step > 0))
    return kind is int or k is None or k is Ellipsis


def _is_number(k: Any) -> bool:
    """Whether an item is a tensor of one whole number, without dimensions: it means what the number does."""
    return isinstance(k, Tensor) and k._array.ndim == 0 and k._array.dtype.kind in "iu"


def basic_key(key: Any) -> tuple | None:
    """The key as a tuple if all of it is basic, tensors of a number being numbers: the quick road."""
    items = key if type(key) is tuple else (key,)
    for k in items:
        if not is_basic(k):
            break
    else:
        return items if items.count(Ellipsis) < 2 else None
    if not all(is_basic(k) or _is_number(k) for k in items):
        return None
    return basic_key(tuple([int(k.item()) if isinstance(k, Tensor) else k for k in items]))


def list_as_positions(key: list) -> Any:
    """A list of Python's ints as a tensor of positions; others as they are."""
    return wrap(np.array(key, np.int64)) if key and all(type(k) is int for k in key) else key


def is_mask(key: Any, x: Tensor) -> bool:
    """Whether the key is one mask of the first dimensions, in memory as the tensor is."""
    if not isinstance(key, Tensor):
        return False
    mask, array = key._array, x._array
    return (type(mask) is type(array) is np.ndarray and mask.dtype.char == "?" and mask.ndim > 0
            and mask.shape == array.shape[:mask.ndim])


def is_positions(key: Any, x: Tensor) -> bool:
    """Whether the key is one tensor of positions that needs no reading."""
    return (isinstance(key, Tensor) and type(key._array) is type(x._array) and key._array.ndim > 0
            and key._array.dtype == np.int64 and x._array.ndim > 0)


def explain_range(y: Tensor, choice: Choice) -> None:
    if choice.there:
        return
    for k, d in enumerate(choice.dims):
        check_range(choice.places._array[k], y.shape[d], "index", d, "index")  # type: ignore[union-attr]


# the positions of a key that is tensors of positions of one shape, all of them there, as one array
stacked_positions = native_or("stacked_positions", lambda key, x: NotImplemented)


# x[key] by tensors of positions: (x, key, the record)
at_positions: Callable = getattr(_native.module, "at_positions", lambda x, key, op: NotImplemented)


def _all_positions(key: tuple, x: Tensor) -> Choice | None:
    """The choice of a key that is tensors of positions, of one shape; None for other keys."""
    if not 1 <= len(key) <= x.ndim or type(x._array) is not np.ndarray or quiet.run is None:
        return None
    known = stacked_positions(key, x._array)
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


def place_of(key: tuple, x: Tensor) -> int:
    """Where in a key of whole slices stands its only other item, a tensor of positions; -1 for other keys."""
    found = -1
    for d, k in enumerate(key):
        if type(k) is slice:
            if k.start is not None or k.stop is not None or k.step is not None:
                return -1
        elif found < 0 and is_positions(k, x):
            found = d
        else:
            return -1
    return found if len(key) <= x._array.ndim else -1


def read_key(x: Tensor, key: Any) -> Choice:
    if type(key) is tuple:
        if (choice := _all_positions(key, x)) is not None:
            return choice
        if (d := place_of(key, x)) >= 0:
            return Choice(None, places=led(key[d]), dims=(d,))
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
                parts = places_of_mask(k)
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
    return Choice(plain, places=together([t for _, t in chosen]), dims=tuple(d for d, _ in chosen))


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


def places_of_mask(mask: Tensor) -> list[Tensor]:
    """Where a mask is True, dimension by dimension."""
    about_to_read(mask._array, "the number of elements that a mask chooses")
    with on_device(mask._array):
        return [wrap(a) for a in mask._array.nonzero()]


def together(tensors: list[Tensor]) -> Tensor:
    """Index tensors broadcast to one shape and stacked; a single one shares its version counter."""
    if len(tensors) == 1:
        return led(tensors[0])
    try:
        shape = broadcast_shape([t.shape for t in tensors], "index")
    except ShapeError as error:
        raise IndexError(str(error)) from None
    if quiet.run is None:  # interceptors see where the positions come from
        return stack_op.run(*[expand.run(t, size=shape) for t in tensors], dim=0)
    xp = array_module(tensors[0]._array)
    with on_device(tensors[0]._array):
        return wrap(xp.stack([xp.broadcast_to(t._array, shape) for t in tensors]))
