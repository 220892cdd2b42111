"""Sums into places that may repeat: ``out[key] += values`` with every value counted."""

from pathlib import Path
from typing import Any

import numpy as np

from . import device_code
from .precision import are_deterministic_algorithms_enabled, check_deterministic

_SOURCE = device_code.source(Path(__file__).with_name("sums.cu"), dtypes="fdeE?bBhHiIlL")
_ADDED_BY_CUPY = "ilefdILqQ"  # the types for which it has an atomic addition


def add_at(xp: Any, out: Any, key: Any, values: Any) -> None:
    """Add ``values`` to ``out`` at ``key`` (arrays and full slices), repeats summed.

    CuPy adds numbers of 32 and 64 bits and float16 only: complex numbers go by their parts, others through a
    wider type, from which they are narrowed once.
    """
    if xp is np:
        np.add.at(out, key, values)
        return
    if are_deterministic_algorithms_enabled():
        if device_code.char_of(out, values):
            return _add_in_order(xp, out, key, values)
        if out.dtype.kind != "c":
            check_deterministic("a sum into places that repeat", True)
    if out.dtype.char in _ADDED_BY_CUPY:
        xp.add.at(out, key, values)
    elif out.dtype.kind == "c":
        whole, parts = _parts(xp, out), _parts(xp, xp.broadcast_to(values, out[key].shape))
        add_at(xp, whole, key, parts)
        if not xp.shares_memory(whole, out):
            out[...] = whole.view(out.dtype)[..., 0]
    else:
        wide = out.astype(np.int32 if out.dtype.kind in "bui" else np.float32)
        xp.add.at(wide, key, values.astype(wide.dtype))
        out[...] = wide.astype(out.dtype)


def _add_in_order(xp: Any, out: Any, key: Any, values: Any) -> None:
    """The same with the terms of each sum in their order: places are sorted, each sum is one thread's."""
    places = xp.arange(out.size).reshape(out.shape)[key]
    if not places.size:
        return
    values = xp.ascontiguousarray(xp.broadcast_to(values, places.shape))
    order = xp.argsort(places.reshape(-1), kind="stable")
    whole = xp.ascontiguousarray(out)
    _SOURCE.kernel("add_in_order", device_code.char_of(out))(
        (device_code.blocks(order.size),), (device_code.THREADS,),
        (whole, values, places.reshape(-1)[order], order, order.size))
    if not xp.shares_memory(whole, out):
        out[...] = whole


def _parts(xp: Any, array: Any) -> Any:
    """Complex numbers as pairs along a last dimension; a view where they lie together."""
    array = xp.ascontiguousarray(array)
    return array.reshape(*array.shape, 1).view(f"f{array.dtype.itemsize // 2}")
