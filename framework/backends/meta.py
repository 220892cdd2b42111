"""The device "meta": arrays that have a shape, a dtype and strides, and no memory.

Kernels do not meet them: ``Op.kernel_for`` answers with the shape rule of the record (`infer`) where one of
the arrays is of this kind. Whoever asks for values is told that there are none.
"""

import math
from typing import Any, NoReturn

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from .. import dtypes
from ..device import Device
from ..errors import DeviceError

META = Device("meta")
WHY = "a tensor on the meta device has a shape and a dtype, but no values"
used = False  # whether there has been one: then calls look for them


class NoValues(DeviceError, AttributeError):
    """Something was asked of an array without values."""


class MetaArray(NDArrayOperatorsMixin):
    """What a tensor on the meta device has for an array.

    Shape, strides and flags are those of ``ghost``, a NumPy array that claims more memory than it has: it is
    asked, and cut into views, but its elements are never touched.
    """

    __slots__ = ("ghost", "base", "__weakref__")

    def __init__(self, ghost: np.ndarray, base: "MetaArray | None" = None) -> None:
        self.ghost = ghost
        self.base = base if base is None or base.base is None else base.base  # whose memory it would share

    shape = property(lambda self: self.ghost.shape)
    dtype = property(lambda self: self.ghost.dtype)
    strides = property(lambda self: self.ghost.strides)
    ndim = property(lambda self: self.ghost.ndim)
    size = property(lambda self: self.ghost.size)
    itemsize = property(lambda self: self.ghost.itemsize)
    nbytes = property(lambda self: self.ghost.nbytes)
    flags = property(lambda self: self.ghost.flags)

    def transpose(self, *dims: Any) -> "MetaArray":
        return MetaArray(self.ghost.transpose(*dims), self)

    def reshape(self, *shape: Any) -> "MetaArray":
        sizes = list(shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape)
        if -1 in sizes:
            known = math.prod(n for n in sizes if n != -1)
            sizes[sizes.index(-1)] = self.size // max(known, 1)
        return of(sizes, self.dtype)

    def astype(self, dtype: Any, copy: bool = True) -> "MetaArray":
        return of(self.shape, np.dtype(dtype))

    def copy(self) -> "MetaArray":
        return of(self.shape, self.dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **settings: Any) -> Any:
        """Formulas of derivatives: the shape that the operands broadcast to, the dtype that NumPy gives."""
        if method != "__call__" or ufunc.nout != 1:
            self._refuse()
        out = settings.pop("out", (None,))[0]
        if out is not None:
            return out
        empties = [np.empty(0, x.dtype) if isinstance(x, (MetaArray, np.ndarray)) else x for x in inputs]
        shapes = [np.shape(getattr(x, "ghost", x)) for x in inputs]
        return of(np.broadcast_shapes(*shapes), ufunc(*empties, **settings).dtype)

    def __array_function__(self, function: Any, types: Any, args: tuple, settings: dict) -> Any:
        if function in (np.zeros_like, np.ones_like, np.empty_like, np.full_like):
            return of(args[0].shape, np.dtype(settings.get("dtype") or args[0].dtype))
        return False if function is np.may_share_memory else self._refuse()

    def __getitem__(self, key: Any) -> "MetaArray":
        keys = key if isinstance(key, tuple) else (key,)
        if not all(k is None or k is Ellipsis or isinstance(k, slice) for k in keys):
            self._refuse()
        return MetaArray(self.ghost[key], self)

    def sum(self, axis: Any = None, keepdims: bool = False, dtype: Any = None) -> "MetaArray":
        axes = range(self.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
        taken = {a % self.ndim for a in axes}
        shape = [1 if d in taken else n for d, n in enumerate(self.shape) if keepdims or d not in taken]
        return of(shape, self.dtype)

    def conj(self) -> "MetaArray":
        return self

    def fill(self, value: Any) -> None:
        """Nothing is there to be filled."""

    def __setitem__(self, key: Any, value: Any) -> None:
        """Nothing is there to be written to."""

    def _refuse(self, *_: Any, **settings: Any) -> NoReturn:
        raise DeviceError(f"{WHY}; make it on another device, or use to_empty(device=...) and fill it")

    def __getattr__(self, name: str) -> NoReturn:
        raise NoValues(f"{WHY}: {name} cannot be asked of it")

    item = tolist = __array__ = __float__ = __int__ = __bool__ = __iter__ = __dlpack__ = _refuse
    __len__ = __dlpack_device__ = _refuse


def of(shape: Any, dtype: np.dtype) -> MetaArray:
    """An array of this shape in row-major order, without memory."""
    global used
    if not used:
        used = True
        dtypes.plain = False
    shape = tuple(shape)
    if math.prod(shape) * dtype.itemsize >= 1 << 62:
        raise ValueError(f"meta: shape {shape} has more bytes than an address has")
    strides = [dtype.itemsize] * len(shape)
    for d in range(len(shape) - 2, -1, -1):
        strides[d] = strides[d + 1] * max(shape[d + 1], 1)
    return MetaArray(np.lib.stride_tricks.as_strided(np.zeros(1, dtype), shape, strides))


def alike(g: MetaArray, *values: Any) -> MetaArray:
    """What a rule of elements gives for a gradient ``g`` and the values it keeps."""
    return of(np.broadcast_shapes(*[getattr(x, "shape", ()) for x in (g, *values)]), g.dtype)


def empty(shape: tuple[int, ...], dtype: np.dtype, device: Device) -> MetaArray:
    return of(shape, dtype)


def from_any(array: Any, device: Device) -> MetaArray:
    """The shape and dtype of any array."""
    return array if type(array) is MetaArray else of(array.shape, array.dtype)


def asarray(obj: Any, dtype: np.dtype | None, device: Device) -> MetaArray:
    array = obj if hasattr(obj, "dtype") else np.asarray(obj)
    return from_any(array, device) if dtype is None else of(array.shape, dtype)


def device_of(array: Any) -> Device:
    return META


def to_numpy(array: Any) -> NoReturn:
    raise DeviceError(f"{WHY}, so there is nothing to copy; use to_empty(device=...) of a module, or "
                      f"empty_like(x, device=...)")


def synchronize(device: Device) -> None:
    """Nothing is under way."""
