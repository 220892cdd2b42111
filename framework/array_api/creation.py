"""Arrays from data, filled, and in ranges."""

from typing import Any

import numpy as np

from .. import creation, dtypes, from_data
from ..backends import move
from ..device import as_device
from ..dtypes import DType
from ..ops.convert.cast import to
from ..tensor import Tensor, wrap
from .array import Array, array_arg, give


def asarray(obj: Any, /, *, dtype: DType | None = None, device: Any = None,
            copy: bool | None = None) -> Array:
    """An Array of numbers, nested sequences, arrays; a tensor stays in its graph.

    copy: True for memory of its own, False to raise ValueError where sharing is not possible.

    >>> fw.array_api.asarray([[1, 2], [3, 4]], dtype=fw.uint16)
    tensor([[1, 2],
            [3, 4]], dtype=framework.uint16)
    """
    if not isinstance(obj, Tensor):
        _check_range(obj, dtype)
        return give(from_data.asarray(obj, dtype=dtype, device=device, copy=copy))
    out = to(obj, dtype=dtype, device=device)
    if copy is False and out is not obj:
        raise ValueError(f"asarray: copy=False, but {obj.dtype} on {obj.device} to dtype={dtype} and "
                         f"device={device} needs a copy")
    return give(to(out, copy=True) if copy and out is obj else out, obj)


def _check_range(obj: Any, dtype: DType | None) -> None:
    if isinstance(obj, int) and dtype is not None and dtype.category == dtypes.INTEGER:
        np.array(obj, dtype.numpy)  # raises OverflowError


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Array:
    """An Array over the memory of an object with ``__dlpack__``.

    >>> fw.array_api.from_dlpack(np.arange(3))
    tensor([0, 1, 2])
    """
    return give(from_data.from_dlpack(x, device=device, copy=copy), x)


def _made(array: np.ndarray, dtype: DType, device: Any) -> Array:
    return give(wrap(move(array.astype(dtype.numpy, copy=False), as_device(device))))


def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: DType | None = None,
           device: Any = None) -> Array:
    """Numbers from ``start`` (0 if ``stop`` is not given) up to but without ``stop``, in steps; maybe none.

    >>> fw.array_api.arange(5, 0, -2), fw.array_api.arange(0, 5, -1).shape
    (tensor([5, 3, 1]), (0,))
    """
    if stop is None:
        start, stop = 0, start
    if step == 0:
        raise ValueError("arange: step must not be 0")
    whole = all(isinstance(v, int) for v in (start, stop, step))
    kind = dtypes.as_dtype(dtype) if dtype is not None else (
        dtypes.int64 if whole else dtypes.get_default_dtype())
    if whole and kind.category == dtypes.INTEGER:
        return _made(np.arange(start, stop, step, dtype=kind.numpy), kind, device)
    return _made(np.arange(start, stop, step), kind, device)


def linspace(start: Any, stop: Any, /, num: int, *, dtype: DType | None = None, device: Any = None,
             endpoint: bool = True) -> Array:
    """``num`` evenly spaced numbers from ``start`` to ``stop``, with or without the end.

    >>> fw.array_api.linspace(0, 1, 4, endpoint=False)
    tensor([0.0000, 0.2500, 0.5000, 0.7500])
    """
    if num < 0:
        raise ValueError(f"linspace: num must not be negative, got {num}")
    plain = complex if isinstance(start, complex) or isinstance(stop, complex) else float
    kind = dtypes.as_dtype(plain if dtype is None else dtype)
    return _made(np.linspace(start, stop, num, endpoint=endpoint), kind, device)


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: DType | None = None,
        device: Any = None) -> Array:
    """Ones on the diagonal ``k``, zeros elsewhere.

    >>> fw.array_api.eye(2, 3, k=1)
    tensor([[0., 1., 0.],
            [0., 0., 1.]])
    """
    kind = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
    return _made(np.eye(n_rows, n_cols, k, dtype=kind.numpy), kind, device)


def empty(shape: Any, *, dtype: DType | None = None, device: Any = None) -> Array:
    """Uninitialised memory."""
    return give(creation.empty(_shape(shape), dtype=dtype, device=device))


def zeros(shape: Any, *, dtype: DType | None = None, device: Any = None) -> Array:
    """Zeros."""
    return give(creation.zeros(_shape(shape), dtype=dtype, device=device))


def ones(shape: Any, *, dtype: DType | None = None, device: Any = None) -> Array:
    """Ones."""
    return give(creation.ones(_shape(shape), dtype=dtype, device=device))


def full(shape: Any, fill_value: Any, *, dtype: DType | None = None, device: Any = None) -> Array:
    """One number everywhere, whose type decides the dtype.

    >>> fw.array_api.full(2, 1j).dtype
    framework.complex64
    """
    return give(creation.full(_shape(shape), fill_value, dtype=dtype, device=device))


def _shape(shape: Any) -> tuple[int, ...]:
    return tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)


def empty_like(x: Tensor, /, *, dtype: DType | None = None, device: Any = None) -> Array:
    """Uninitialised memory in the shape, dtype and device of ``x``."""
    return give(creation.empty_like(array_arg(x, "empty_like"), dtype=dtype, device=device))


def zeros_like(x: Tensor, /, *, dtype: DType | None = None, device: Any = None) -> Array:
    """Zeros in the shape, dtype and device of ``x``."""
    return give(creation.zeros_like(array_arg(x, "zeros_like"), dtype=dtype, device=device))


def ones_like(x: Tensor, /, *, dtype: DType | None = None, device: Any = None) -> Array:
    """Ones in the shape, dtype and device of ``x``."""
    return give(creation.ones_like(array_arg(x, "ones_like"), dtype=dtype, device=device))


def full_like(x: Tensor, /, fill_value: Any, *, dtype: DType | None = None, device: Any = None) -> Array:
    """One number in the shape, dtype and device of ``x``."""
    return give(creation.full_like(array_arg(x, "full_like"), fill_value, dtype=dtype, device=device))
