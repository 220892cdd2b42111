"""CTC on GPUs (``ctc.cu``): one kernel for the labels, one forward, one back, and no wait for the device.

A label or a length that is out of range is told at the next wait for the device.
"""

from pathlib import Path
from typing import Any

import numpy as np

from ...backends import cuda, device_code, device_flags

_SOURCE = device_code.source(Path(__file__).with_name("ctc.cu"), dtypes="fd")
_CTC = np.dtype([(n, "i8") for n in ("steps", "n", "classes", "width", "blank")])
_LABEL = device_flags.site("ctc_loss: targets must lie in [0, {last}], found {value}", ValueError)


def _plan(x: Any, width: int, blank: int) -> Any:
    return np.array([(*x.shape, width, blank)], _CTC)


def _block(width: int) -> tuple[int]:
    return (min(256, max(32, 1 << (width - 1).bit_length())),)


def _whole(a: Any) -> Any:
    return cuda.cupy().ascontiguousarray(a.astype(np.int64, copy=False))


def labels_of(x: Any, targets: Any, sizes: Any, longest: int, blank: int) -> Any:
    """The targets with blanks between, before and after them: (n, 2 * longest + 1); sizes: their lengths."""
    width, n = 2 * longest + 1, x.shape[1]
    labels = cuda.cupy().empty((n, width), np.int64)
    row = targets.shape[1] if targets.ndim == 2 else 0
    if n:
        _SOURCE.kernel("ctc_labels", "f")(
            (n,), _block(width), (labels, _whole(targets), _whole(sizes), row, targets.size,
                                  _plan(x, width, blank), device_flags.memory(), _LABEL))
    return labels


def _given(x: Any, labels: Any, times: Any, sizes: Any, blank: int, *more: Any) -> Any:
    """(letter, arguments, plan); None for what is left to formulas. 16 bits are computed in float32."""
    char = device_code.char_of(x)
    if char not in device_code.FLOATS or not x.size or not labels.size:
        return None
    wide = np.dtype("d" if char == "d" else "f")
    rows = cuda.cupy().ascontiguousarray
    arrays = [rows(a.astype(wide, copy=False)) for a in (*more, x)]
    return wide.char, [*arrays, *map(rows, (labels, times, sizes))], _plan(x, labels.shape[1], blank)


def ctc(x: Any, labels: Any, times: Any, sizes: Any, *, blank: int) -> Any:
    """The device function of ctc."""
    found = _given(x, labels, times, sizes, blank)
    if found is None:
        return NotImplemented
    char, given, plan = found
    module, (n, width) = cuda.cupy(), labels.shape
    made = [module.empty(s, np.dtype(char)) for s in ((n,), (n, x.shape[0], width))]
    _SOURCE.kernel("ctc", char)((n,), _block(width), (*made, *given, plan))
    return tuple([a.astype(x.dtype, copy=False) for a in made])


def ctc_grad(g: Any, x: Any, alpha: Any, losses: Any, labels: Any, times: Any, sizes: Any, *,
             blank: int) -> Any:
    """That of its backward."""
    found = _given(x, labels, times, sizes, blank, g, alpha, losses)
    if found is None:
        return NotImplemented
    char, (g, alpha, losses, wide, *places), plan = found
    module, (n, width) = cuda.cupy(), labels.shape
    out, dtype = module.zeros(x.shape, np.dtype(char)), np.dtype(char)
    room = module.empty((n, 2, width), dtype), module.empty((n, width), dtype), module.empty((n, width), "i8")
    _SOURCE.kernel("ctc_grad", char)(
        (n,), _block(width), (out, *room, g, wide, alpha, losses, *places, plan))
    return out.astype(x.dtype, copy=False)
