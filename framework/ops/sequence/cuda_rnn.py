"""LSTMs on GPUs: all steps of a layer in one launch (``lstm.cu``), and products of matrices around it."""

from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from ...backends import cuda, device_code
from ..language.cuda import DeviceKernel
from ..language.cuda_fold import fold_of_elements

_SOURCE = device_code.source(Path(__file__).with_name("lstm.cu"), cooperative=True, dtypes="fd")
_STEPS = np.dtype([(name, "i8") for name in ("batch", "size", "steps", "reverse", "units")])
_SHARED = 48 * 1024
_plus_one = DeviceKernel("x + b", ("x", "b"), lambda x, b: x + b)
_plus_two = DeviceKernel("x + b + c", ("x", "b", "c"), lambda x, b, c: x + b + c)
_starts: dict[tuple, Any] = {}


def _plan(shape: tuple[int, ...], sizes: tuple[int, ...], reverse: bool, itemsize: int) -> Any:
    """(plan, blocks, bytes of shared memory, where steps start); None where not all blocks run at once."""
    (batch, size), multiprocessors = shape, cuda.multiprocessors()
    units = max(1, -(-size // multiprocessors))
    shared = units * 4 * size * itemsize
    while shared > _SHARED and units > 1:
        units -= 1
        shared = units * 4 * size * itemsize
    blocks = -(-size // units)
    if shared > _SHARED or blocks > 2 * multiprocessors:
        return None
    plan = np.array([(batch, size, len(sizes), reverse, units)], _STEPS)
    module = cuda.cupy()  # another stream would have to wait for the copy
    key = (module, int(module.cuda.runtime.getDevice()), module.cuda.get_current_stream().ptr, sizes)
    if key not in _starts:
        if len(_starts) > 256:
            _starts.clear()
        _starts[key] = cuda.cupy().asarray(np.array([0, *accumulate(sizes)], np.int64))
    return plan, blocks, shared, _starts[key]


def _launch(name: str, char: str, found: Any, *arguments: Any) -> None:
    plan, blocks, shared, starts = found
    arrived = cuda.cupy().zeros(1, np.int32)
    _SOURCE.kernel(name, char)(
        (blocks,), (device_code.THREADS,), (*arguments, starts, plan, arrived), shared_mem=shared
    )


def lstm(
    x: Any,
    h0: Any,
    c0: Any,
    w_ih: Any,
    w_hh: Any,
    b_ih: Any,
    b_hh: Any,
    *,
    sizes: tuple[int, ...],
    reverse: bool,
) -> Any:
    """The device function of lstm."""
    char = device_code.char_of(*[a for a in (x, h0, c0, w_ih, w_hh, b_ih, b_hh) if a is not None])
    if char not in ("f", "d") or not x.size or not h0.size:
        return NotImplemented
    found = _plan(h0.shape, sizes, reverse, x.itemsize)
    if found is None:
        return NotImplemented
    module, size = cuda.cupy(), h0.shape[1]
    rows, empty = module.ascontiguousarray, module.empty
    gates = module.matmul(x, w_ih.T)
    biases = [b for b in (b_ih, b_hh) if b is not None]
    if biases:
        (_plus_one if len(biases) == 1 else _plus_two)(gates, *biases, out=gates)
    y, cells = empty((len(x), size), x.dtype), empty((len(x), size), x.dtype)
    h, c = empty(h0.shape, x.dtype), empty(h0.shape, x.dtype)
    _launch(
        "lstm",
        char,
        found,
        y,
        h,
        c,
        gates,
        cells,
        empty((2, *h0.shape), x.dtype),
        rows(w_hh),
        rows(h0),
        rows(c0),
    )
    return y, h, c, gates, cells


def lstm_grad(
    gy: Any,
    gh: Any,
    gc: Any,
    x: Any,
    h0: Any,
    c0: Any,
    w_ih: Any,
    w_hh: Any,
    b_ih: Any,
    b_hh: Any,
    y: Any,
    gates: Any,
    cells: Any,
    *,
    sizes: tuple[int, ...],
    reverse: bool,
    wanted: tuple,
) -> Any:
    """The device function of its backward."""
    given = [a for a in (gy, gh, gc, x, h0, c0, w_ih, w_hh, y, gates, cells) if a is not None]
    char = device_code.char_of(*given)
    if char not in ("f", "d") or not x.size or not h0.size:
        return NotImplemented
    found = _plan(h0.shape, sizes, reverse, x.itemsize)
    if found is None:
        return NotImplemented
    module, size = cuda.cupy(), h0.shape[1]
    empty, none = module.empty, module.empty(0, x.dtype)
    d, before = empty((len(x), 4 * size), x.dtype), empty((len(x), size), x.dtype)
    dh, dc = empty(h0.shape, x.dtype), empty(h0.shape, x.dtype)
    operands = [
        None if a is None else module.ascontiguousarray(a)
        for a in (gy, gh, gc, w_hh, h0, c0, y, gates, cells)
    ]
    _launch("lstm_grad", char, found, d, before, dh, dc, *operands)
    return (
        module.matmul(d, w_ih) if wanted[0] else none,
        dh,
        dc,
        module.matmul(d.T, x) if wanted[3] else none,
        module.matmul(d.T, before) if wanted[4] else none,
        *[fold_of_elements("sum", (0,), (4 * size,), d) if want else none for want in wanted[5:7]],
    )
