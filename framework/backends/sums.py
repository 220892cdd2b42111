"""Sums into places that may repeat: ``out[key] += values`` with every value counted."""

from typing import Any

import numpy as np

from .precision import check_deterministic

_ADDED_BY_CUPY = "ilefdILqQ"  # the types for which it has an atomic addition


def add_at(xp: Any, out: Any, key: Any, values: Any) -> None:
    """Add ``values`` to ``out`` at ``key`` (arrays and full slices), repeats summed.

    CuPy adds numbers of 32 and 64 bits and float16 only: complex numbers go by their parts, others through a
    wider type, from which they are narrowed once.
    """
    if xp is np:
        np.add.at(out, key, values)
        return
    check_deterministic("a sum into places that repeat", True)
    if out.dtype.char in _ADDED_BY_CUPY:
        xp.add.at(out, key, values)
    elif out.dtype.kind == "c":
        whole, parts = _parts(xp, out), _parts(xp, xp.broadcast_to(values, out[key].shape))
        xp.add.at(whole, key, parts)
        if not xp.shares_memory(whole, out):
            out[...] = whole.view(out.dtype)[..., 0]
    else:
        wide = out.astype(np.int32 if out.dtype.kind in "bui" else np.float32)
        xp.add.at(wide, key, values.astype(wide.dtype))
        out[...] = wide.astype(out.dtype)


def _parts(xp: Any, array: Any) -> Any:
    """Complex numbers as pairs along a last dimension; a view where they lie together."""
    array = xp.ascontiguousarray(array)
    return array.reshape(*array.shape, 1).view(f"f{array.dtype.itemsize // 2}")
