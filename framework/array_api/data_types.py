"""Dtypes of the standard: conversion, promotion, limits, kinds."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import dtypes
from ..device import as_device
from ..dtypes import DType
from ..errors import DTypeError
from ..ops.convert.cast import to
from ..tensor import Tensor
from .array import SCALARS, Array, array_arg, give

SIGNED = (dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64)
UNSIGNED = (dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64)
REAL = (dtypes.float32, dtypes.float64)
COMPLEX = (dtypes.complex64, dtypes.complex128)
KINDS: dict[str, tuple[DType, ...]] = {
    "bool": (dtypes.bool_,), "signed integer": SIGNED, "unsigned integer": UNSIGNED,
    "integral": SIGNED + UNSIGNED, "real floating": REAL, "complex floating": COMPLEX,
    "numeric": SIGNED + UNSIGNED + REAL + COMPLEX,
}
NAMES = {d: "bool" if d is dtypes.bool_ else d.name for d in (dtypes.bool_, *KINDS["numeric"])}


@dataclass(frozen=True)
class FloatInfo:
    """The limits of a floating dtype (of a complex one, those of its parts)."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


@dataclass(frozen=True)
class IntegerInfo:
    """The limits of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: DType


def _dtype_of(x: Any) -> DType:
    return x.dtype if isinstance(x, Tensor) else dtypes.as_dtype(x)


def finfo(type: Any, /) -> FloatInfo:
    """The limits of a floating dtype, given itself or by an array.

    >>> fw.array_api.finfo(fw.float32).bits
    32
    """
    dtype = _dtype_of(type)
    if dtype.category < dtypes.FLOAT:
        raise DTypeError(f"finfo: wanted a floating dtype, got {dtype}; use iinfo for integers")
    if dtype.is_complex:
        dtype = dtypes.float32 if dtype is dtypes.complex64 else dtypes.float64
    info = dtypes.finfo(dtype)
    return FloatInfo(info.bits, info.eps, info.max, info.min, info.smallest_normal, dtype)


def iinfo(type: Any, /) -> IntegerInfo:
    """The limits of an integer dtype, given itself or by an array.

    >>> fw.array_api.iinfo(fw.uint16).max
    65535
    """
    dtype = _dtype_of(type)
    info = dtypes.iinfo(dtype)
    return IntegerInfo(info.bits, info.max, info.min, dtype)


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a dtype is of a kind: a name such as "real floating", a dtype, or a tuple of those.

    >>> fw.array_api.isdtype(fw.uint16, ("bool", "integral"))
    True
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, str):
        if kind not in KINDS:
            raise ValueError(f"isdtype: kind {kind!r} is not known; use one of {', '.join(KINDS)}")
        return dtype in KINDS[kind] or (dtype is dtypes.float16 and kind in ("real floating", "numeric"))
    return dtypes.as_dtype(dtype) is dtypes.as_dtype(kind)


def result_type(*arrays_and_dtypes: Any) -> DType:
    """The dtype of a result of these arrays, dtypes and Python numbers; numbers are weak.

    >>> fw.array_api.result_type(fw.int8, fw.uint8, 3)
    framework.int16
    """
    strong = [_dtype_of(x) for x in arrays_and_dtypes if not isinstance(x, SCALARS)]
    weak = [dtypes.scalar_dtype(x) for x in arrays_and_dtypes if isinstance(x, SCALARS)]
    if not strong:
        raise ValueError("result_type: wanted one array or dtype at least, got "
                         f"{', '.join(map(repr, arrays_and_dtypes)) or 'nothing'}")
    return dtypes.combine((strong, [], weak))


def can_cast(from_: Any, to: Any, /) -> bool:
    """Whether promotion leads from one dtype (or that of an array) to the other.

    >>> fw.array_api.can_cast(fw.int8, fw.int16), fw.array_api.can_cast(fw.int8, fw.uint16)
    (True, False)
    """
    source, target = _dtype_of(from_), _dtype_of(to)
    if (source.category == dtypes.BOOL) != (target.category == dtypes.BOOL):
        return False
    if (source.category == dtypes.INTEGER) != (target.category == dtypes.INTEGER):
        return False
    return bool(np.can_cast(source.numpy, target.numpy))


def astype(x: Tensor, dtype: DType, /, *, copy: bool = True, device: Any = None) -> Array:
    """The array in another dtype; with ``copy=False`` itself where nothing changes.

    Raises DTypeError for complex to real, which would drop the imaginary part.

    >>> fw.array_api.astype(fw.tensor([1.5, -1.5]), fw.int64)
    tensor([ 1, -1])
    """
    array_arg(x, "astype")
    wanted = dtypes.as_dtype(dtype)
    if x.dtype.is_complex and wanted.category < dtypes.COMPLEX:
        raise DTypeError(f"astype: {x.dtype} to {wanted} would drop the imaginary part; use real(x)")
    where = x.device if device is None else as_device(device)
    return give(to(x, device=where, dtype=wanted, copy=copy), x)
