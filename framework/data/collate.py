"""From samples to a batch: stack what can be stacked, keep the structure around it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..backends.native import native_or
from ..dtypes import BY_NUMPY, of_numpy
from ..errors import DeviceError, DTypeError, LayoutError, ShapeError
from ..ops.shape.join import stack
from ..tensor import Tensor, wrap

allocate: Callable = np.empty  # a worker process puts its shared memory here
_joined = native_or("stack", lambda *arrays, dim: NotImplemented)


def default_collate(batch: Sequence) -> Any:
    """A batch from a list of samples of one structure.

    Tensors and arrays are stacked along a new first dimension; ints give an int64 tensor, floats a
    float64 one, text and bytes a list; dicts, tuples (as lists), named tuples and lists are kept, with
    their parts collated.

    Raises ShapeError, naming the part and both samples, where sizes differ; TypeError for other things.

    >>> fw.data.default_collate([{"x": 1, "name": "a"}, {"x": 2, "name": "b"}])
    {'x': tensor([1, 2]), 'name': ['a', 'b']}
    """
    if not len(batch):
        raise ValueError("default_collate: the batch is empty; there is nothing to stack")
    return _collate(list(batch), "sample")


def _collate(batch: list, path: str) -> Any:
    kinds = set(map(type, batch))
    if len(kinds) > 1:
        _same_kind(batch, path)
    first = batch[0]
    if isinstance(first, Tensor):
        return _stack(batch, path)
    if isinstance(first, (np.ndarray, np.generic)):
        out = _joined(*batch, dim=0) if allocate is np.empty and of_numpy(first.dtype) else NotImplemented
        if out is NotImplemented:
            return _stack([wrap(_native(np.asarray(x), path)) for x in batch], path)
        return wrap(out)
    if isinstance(first, (bool, int)):
        return wrap(np.array(batch, np.bool_ if kinds == {bool} else np.int64))
    if isinstance(first, float):
        return wrap(np.array(batch, np.float64))
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, Mapping):
        return _mapping(batch, path)
    if isinstance(first, Sequence):
        return _sequence(batch, path)
    raise TypeError(f"default_collate: {path} is {_kind(first)}, which does not stack; a sample may hold "
                    f"tensors, arrays, numbers, text, dicts, tuples and lists; pass collate_fn= for others")


def _kind(x: Any) -> str:
    return "None" if x is None else f"a {type(x).__name__}"


def _same_kind(batch: list, path: str) -> None:
    """Of several types, each must be of the kind of the first's; ints and floats mix."""
    kinds: tuple = (Tensor, (np.ndarray, np.generic), (bool, int, float), str, bytes, Mapping, Sequence)
    first = batch[0]
    kind = next((k for k in kinds if isinstance(first, k)), type(first))
    if isinstance(first, (np.generic, float)):
        kind = (np.ndarray, np.generic, bool, int, float)
    for i, x in enumerate(batch):
        if not isinstance(x, kind):
            raise TypeError(f"default_collate: {path} differs in type: sample 0 of the batch has "
                            f"{_kind(first)}, sample {i} {_kind(x)}")
    if isinstance(first, int) and any(isinstance(x, float) for x in batch):
        batch[:] = [float(x) for x in batch]


def _native(array: np.ndarray, path: str) -> np.ndarray:
    if of_numpy(array.dtype) is not None:
        return array
    native = array.astype(array.dtype.newbyteorder("=")) if array.dtype.kind in "biufc" else array
    if native.dtype not in BY_NUMPY:
        raise TypeError(f"default_collate: {path} is an array of dtype {array.dtype}, which is not "
                        f"supported; convert it in the dataset, e.g. array.astype('int64')")
    return native


def _arrays(batch: list[Tensor]) -> list[np.ndarray] | None:
    """Their arrays, if none is in a graph."""
    try:
        arrays = [x._array for x in batch if x._node is None]
    except LayoutError:  # of a sparse tensor, which has no array
        return None
    return arrays if len(arrays) == len(batch) else None


def _alike(arrays: list[np.ndarray]) -> bool:
    """Whether they are NumPy's, of one shape and dtype."""
    shape, dtype = arrays[0].shape, arrays[0].dtype
    return all(type(a) is np.ndarray and a.shape == shape and a.dtype is dtype for a in arrays)


def _stack(batch: list[Tensor], path: str) -> Tensor:
    arrays = _arrays(batch)
    if arrays is not None:
        if allocate is np.empty and (out := _joined(*arrays, dim=0)) is not NotImplemented:
            return wrap(out)
        if _alike(arrays):
            return wrap(_stacked(arrays))
    first = batch[0]
    for i, x in enumerate(batch):
        if x.shape != first.shape:
            raise ShapeError(f"default_collate: {path} differs in shape: sample 0 of the batch has "
                             f"{list(first.shape)}, sample {i} has {list(x.shape)}; bring them to one size "
                             f"in the dataset, or pad them in a collate_fn of your own")
        if x.dtype is not first.dtype:
            raise DTypeError(f"default_collate: {path} differs in dtype: sample 0 of the batch has "
                             f"{first.dtype}, sample {i} has {x.dtype}; convert them in the dataset")
        if x.device != first.device:
            raise DeviceError(f"default_collate: {path} is on {first.device} in sample 0 of the batch and "
                              f"on {x.device} in sample {i}; move them to one device")
    if any(x.requires_grad or x.is_cuda for x in batch):
        return stack(batch)
    return wrap(_stacked([x._array for x in batch]))


def _stacked(arrays: list[np.ndarray]) -> np.ndarray:
    """The arrays, which are alike, in one of the memory that ``allocate`` gives."""
    if allocate is np.empty and (out := _joined(*arrays, dim=0)) is not NotImplemented:
        return out
    shape = arrays[0].shape
    out = allocate((len(arrays), *shape), arrays[0].dtype)
    if not shape or not out.size:
        return np.stack(arrays, out=out)
    np.concatenate(arrays, out=out.reshape(-1, *shape[1:]))  # ``np.stack`` makes a view of each first
    return out


def _mapping(batch: list, path: str) -> Any:
    first = batch[0]
    for i, x in enumerate(batch):
        if x.keys() != first.keys():
            odd = sorted(map(repr, set(x.keys()) ^ set(first.keys())))
            raise TypeError(f"default_collate: {path} differs in keys: {', '.join(odd)} stands only in "
                            f"one of sample 0 and sample {i} of the batch")
    parts = {key: _collate([x[key] for x in batch], f"{path}[{key!r}]") for key in first}
    return _like(first, parts, parts)


def _sequence(batch: list, path: str) -> Any:
    first = batch[0]
    for i, x in enumerate(batch):
        if len(x) != len(first):
            raise ShapeError(f"default_collate: {path} differs in length: sample 0 of the batch has "
                             f"{len(first)} parts, sample {i} has {len(x)}")
    if hasattr(first, "_fields"):
        parts = [_collate(list(p), f"{path}.{name}") for name, p in zip(first._fields, zip(*batch))]
        return type(first)(*parts)
    parts = [_collate(list(p), f"{path}[{i}]") for i, p in enumerate(zip(*batch))]
    return parts if isinstance(first, tuple) else _like(first, parts, parts)


def _like(first: Any, parts: Any, otherwise: Any) -> Any:
    """The parts in the type of the first sample, if that can be made from them."""
    try:
        return type(first)(parts)
    except TypeError:
        return otherwise


def default_convert(data: Any) -> Any:
    """One sample without a batch: arrays become tensors, the structure around them is kept.

    >>> fw.data.default_convert({"x": np.zeros(2), "name": "a"})
    {'x': tensor([0., 0.], dtype=framework.float64), 'name': 'a'}
    """
    if isinstance(data, (np.ndarray, np.generic)):
        array = np.asarray(data)
        numbers = array.dtype.kind in "biufc" or of_numpy(array.dtype) is not None
        return wrap(_native(array, "sample")) if numbers else data
    if isinstance(data, Mapping):
        return _rebuild(data, {k: default_convert(v) for k, v in data.items()}, dict)
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(default_convert(v) for v in data))
    if isinstance(data, tuple):
        return [default_convert(v) for v in data]
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _rebuild(data, [default_convert(v) for v in data], list)
    return data


def _rebuild(data: Any, parts: Any, plain: Callable) -> Any:
    return _like(data, parts, plain(parts))
