"""What runs along dimensions, on GPUs: folds, softmax (``kernels.cu``), running sums (``scan.cu``,
``scan_floats.cu``), rows in order (``order.cu``). The rest is NotImplemented.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np

from ...backends import cuda, device_code, device_flags, device_launcher
from ..language.cuda import DeviceKernel
from ..language.cuda_fold import DeviceFold, fold_of_elements
from ..shape.broadcast import sum_to
from .along import kept_shape

_SOURCE = device_code.source(Path(__file__).with_name("kernels.cu"))
_SCANS = str(Path(__file__).with_name("scan.cuh"))
_SCAN = device_code.source(Path(__file__).with_name("scan.cu"), _SCANS, dtypes="fdeEbBhil")
_SCAN_FLOATS = device_code.source(Path(__file__).with_name("scan_floats.cu"), _SCANS)
_ORDER = device_code.source(Path(__file__).with_name("order.cu"), dtypes="fdeE?bBil")
_COUNTS = device_code.source(Path(__file__).with_name("counts.cu"))
_RANGE = device_flags.site("histc: the range must be finite, the elements reach {real}", ValueError)
_SCAN_THREADS, _TILE = 128, 2048  # as the sources have them


def _left(x: Any, dims: tuple[int, ...], keepdim: bool) -> tuple[int, ...]:
    """The shape after a reduction."""
    if keepdim:
        return kept_shape(x.shape, dims)
    return tuple([s for d, s in enumerate(x.shape) if d not in dims])


def folded(name: str) -> Any:
    """The device function of a record that folds ``dims``: "sum", "mean", "amax" or "amin"."""

    def fold(x: Any, *, dims: tuple[int, ...], keepdim: bool) -> Any:
        if not dims:
            return NotImplemented
        return fold_of_elements(name, dims, _left(x, dims, keepdim), x)

    return fold


def summed_to(x: Any, *, size: tuple[int, ...]) -> Any:
    """The device function of ``sum_to_size``."""
    lead = x.ndim - len(size)
    dims = (*range(lead), *[i + lead for i, s in enumerate(size) if s == 1 != x.shape[i + lead]])
    return fold_of_elements("sum", dims, size, x) if dims else NotImplemented


_sum_of_exp = DeviceFold("exp(x - where(abs(top) < inf, top, 0.0))", ("x", "top"))
_log_of_sum = DeviceKernel(
    "log(s) + where(abs(top) < inf, top, 0.0)", ("s", "top"), lambda *_: NotImplemented)


def logsumexp(x: Any, *, dims: tuple[int, ...], keepdim: bool) -> Any:
    """That of logsumexp: a fold for the greatest, one for the sum."""
    if not dims:
        return NotImplemented
    shape = kept_shape(x.shape, dims)
    top = fold_of_elements("amax", dims, shape, x)
    total = NotImplemented if top is NotImplemented else _sum_of_exp("sum", dims, shape, x, top)
    out = NotImplemented if total is NotImplemented else _log_of_sum(total, top)
    if out is NotImplemented or keepdim:
        return out
    return out.reshape([s for d, s in enumerate(x.shape) if d not in dims])


_square_of_difference = DeviceFold("(x - mean) * (x - mean)", ("x", "mean"))
_square, _power = DeviceFold("x * x", ("x",)), DeviceFold("pow(abs(x), p)", ("x", "p"))
_scaled = DeviceKernel("x * factor", ("x", "factor"), lambda *_: NotImplemented)
_scaled_root = DeviceKernel("sqrt(x * factor)", ("x", "factor"), lambda *_: NotImplemented)
_root = DeviceKernel("sqrt(x)", ("x",), lambda *_: NotImplemented)
_raised = DeviceKernel("pow(x, p)", ("x", "p"), lambda *_: NotImplemented)


def _wide_fold(fold: DeviceFold, how: str, x: Any, dims: tuple[int, ...], shape: tuple[int, ...],
               *more: Any) -> Any:
    """A fold of x and others in the dtype that is computed in."""
    return fold(how, dims, shape, x, *more, to="d" if x.dtype.char == "d" else "f")


def variance(root: bool) -> Any:
    """The device function of var, or of std: the mean, then the squares of what differs from it."""

    def spread(x: Any, *, dims: tuple[int, ...], correction: float, keepdim: bool) -> Any:
        n = math.prod(x.shape[d] for d in dims)
        if not dims or n <= correction:
            return NotImplemented
        mean = _wide_fold(fold_of_elements, "mean", x, dims, kept_shape(x.shape, dims))
        if mean is NotImplemented:
            return NotImplemented
        total = _wide_fold(_square_of_difference, "sum", x, dims, _left(x, dims, keepdim), mean)
        if total is NotImplemented:
            return NotImplemented
        out = (_scaled_root if root else _scaled)(total, float(1 / (n - correction)))
        return out if out is NotImplemented else out.astype(x.dtype, copy=False)

    return spread


def vector_norm(x: Any, *, ord: float, dims: tuple[int, ...], keepdim: bool) -> Any:
    """The device function of vector_norm."""
    if not dims:
        return NotImplemented
    shape, two = _left(x, dims, keepdim), ord == 2
    fold, more = (_square, ()) if two else (_power, (ord,))
    total = _wide_fold(fold, "sum", x, dims, shape, *more)
    if total is NotImplemented:
        return NotImplemented
    out = _root(total) if two else _raised(total, 1 / ord)
    return out if out is NotImplemented else out.astype(x.dtype, copy=False)


sum_to.device = summed_to  # a record of a lower family


def _along(name: str, logarithm: bool, *arrays: Any, dim: int) -> Any:
    x = arrays[0]
    char = device_code.char_of(*arrays)
    if char not in device_code.FLOATS or not x.size:
        return NotImplemented
    module = cuda.cupy()
    arrays = tuple([module.ascontiguousarray(a) for a in arrays])
    out = device_launcher.empty(x.shape, x.dtype)
    n, inner = x.shape[dim], math.prod(x.shape[dim + 1 :])
    rows = x.size // n
    threads = min(512, max(32, 1 << (n // 4).bit_length())) if inner == 1 else device_code.THREADS
    grid = rows if inner == 1 else device_code.blocks(rows)
    _SOURCE.kernel(name, char)(
        (min(grid, 1 << 30),), (threads,), (out, *arrays, n, inner, rows, int(logarithm))
    )
    return out


def softmax(x: Any, *, dim: int) -> Any:
    """The device function of softmax."""
    return _along("softmax", False, x, dim=dim)


def log_softmax(x: Any, *, dim: int) -> Any:
    """That of its logarithm."""
    return _along("softmax", True, x, dim=dim)


def softmax_grad(g: Any, y: Any, *, dim: int) -> Any:
    """That of softmax's backward."""
    return _along("softmax_grad", False, g, y, dim=dim)


def log_softmax_grad(g: Any, y: Any, *, dim: int) -> Any:
    """That of the logarithm's."""
    return _along("softmax_grad", True, g, y, dim=dim)


# -- running sums, order -----------------------------------------------------------------------------


def running(name: str, places: bool = False, floats: bool = False) -> Any:
    """The device function of a record that runs along ``dim``; places: it gives those of extremes, too;
    floats: whole numbers have no kernel."""
    source = _SCAN_FLOATS if floats else _SCAN

    def scan(x: Any, *, dim: int, reverse: bool = False) -> Any:
        char = device_code.char_of(x)
        if char not in source.dtypes or not char or not x.ndim or not x.size:
            return NotImplemented
        module = cuda.cupy()
        x, n, inner = module.ascontiguousarray(x), x.shape[dim], math.prod(x.shape[dim + 1 :])
        out, rows = device_launcher.empty(x.shape, x.dtype), x.size // n
        found = device_launcher.empty(x.shape, np.int64) if places else None
        threads = _SCAN_THREADS if inner == 1 else device_code.THREADS
        source.kernel(name, char)(
            (min(rows, 1 << 30) if inner == 1 else device_code.blocks(rows),),
            (threads,),
            (out, found, x, n, inner, rows, int(reverse)),
        )
        return (out, found) if places else out

    return scan


def running_grad(name: str, g: Any, x: Any, out: Any, dim: int) -> Any:
    """The gradient of a running product or log-sum ``out`` of ``x``, by one kernel, or NotImplemented."""
    char = device_code.char_of(g, x, out)
    if char not in device_code.FLOATS or not x.size:
        return NotImplemented
    module, n, inner = cuda.cupy(), x.shape[dim], math.prod(x.shape[dim + 1 :])
    found, rows = device_launcher.empty(x.shape, x.dtype), x.size // n
    _SCAN_FLOATS.kernel(f"{name}_grad", char)(
        (min(rows, 1 << 30) if inner == 1 else device_code.blocks(rows),),
        (_SCAN_THREADS if inner == 1 else device_code.THREADS,),
        (found, *map(module.ascontiguousarray, (g, x, out)), n, inner, rows))
    return found


def _in_order(x: Any, dim: int, first: int, take: int, descending: bool, nan_wins: bool = False) -> Any:
    """(values, places) of ``take`` elements from ``first`` on; nan_wins: the first nan, if there is one."""
    char = device_code.char_of(x)
    if not char or not x.ndim or not x.size or not take or x.shape[dim] >= 1 << 31:
        return NotImplemented
    module = cuda.cupy()
    x, n, inner = module.ascontiguousarray(x), x.shape[dim], math.prod(x.shape[dim + 1 :])
    shape, rows = (*x.shape[:dim], take, *x.shape[dim + 1 :]), x.size // n
    values, places = device_launcher.empty(shape, x.dtype), device_launcher.empty(shape, np.int64)
    wins, threads = int(nan_wins and char in device_code.FLOATS), (device_code.THREADS,)
    if n <= _TILE:
        _ORDER.kernel("order_rows", char)(
            (min(rows, 1 << 30),), (min(device_code.THREADS, max(32, 1 << (n - 1).bit_length() >> 1)),),
            (values, places, x, n, inner, rows, first, take, int(descending), wins))
        return values, places
    keys, where, m = _long_rows(char, x, n, inner, rows, _TILE if wins else first + take, int(descending))
    _ORDER.kernel("take_ordered", char)(
        (device_code.blocks(rows * take),), threads,
        (values, places, x, keys, where, m, n, inner, rows, first, take, wins))
    return values, places


def _long_rows(char: str, x: Any, n: int, inner: int, rows: int, most: int, descending: int) -> tuple:
    """(keys, places, how many a row has): rows in order, or at least the first ``most`` of them."""
    empty, threads = device_launcher.empty, (device_code.THREADS,)
    few = most <= _TILE // 2  # of each tile only these, and again, until one tile has them all
    keys = where = None
    m = n
    while keys is None or few and m > most:
        tiles = -(-m // _TILE)
        keep = min(most, _TILE) if few else _TILE
        made = empty((rows, tiles * keep), np.uint64), empty((rows, tiles * keep), np.uint32)
        _ORDER.kernel("order_tiles", char)(
            (min(rows * tiles, 1 << 30),), threads,
            (*made, keys, where, x, m, inner, rows, tiles, keep, descending))
        (keys, where), m = made, tiles * keep
    run = m if few else _TILE
    while run < m:
        made = empty((rows, m), np.uint64), empty((rows, m), np.uint32)
        _ORDER.kernel("merge_runs", char)(
            (device_code.blocks(rows * m // 8),), threads, (*made, keys, where, m, rows, run))
        (keys, where), run = made, 2 * run
    return keys, where, m


def sort(x: Any, *, dim: int, descending: bool) -> Any:
    """The device function of sort."""
    return _in_order(x, dim, 0, x.shape[dim] if x.ndim else 0, descending)


def topk(x: Any, *, k: int, dim: int, largest: bool) -> Any:
    """That of topk."""
    return _in_order(x, dim, 0, k, largest)


def kthvalue(x: Any, *, dim: int, keepdim: bool, k: int, nan_wins: bool) -> Any:
    """That of kthvalue, and of the median along a dimension."""
    found = _in_order(x, dim, k, 1, False, nan_wins)
    if found is NotImplemented or keepdim:
        return found
    shape = x.shape[:dim] + x.shape[dim + 1 :]
    return tuple([a.reshape(shape) for a in found])


def median(x: Any) -> Any:
    """That of the median of all elements."""
    if not x.ndim:
        return NotImplemented
    found = kthvalue(x.reshape(-1), dim=0, keepdim=False, k=(x.size - 1) // 2, nan_wins=True)
    return found if found is NotImplemented else found[0]


def mode(x: Any, *, dim: int, keepdim: bool) -> Any:
    """That of mode."""
    char = device_code.char_of(x)
    if not char or not x.ndim or not x.size or x.shape[dim] >= 1 << 31:
        return NotImplemented
    module = cuda.cupy()
    x, n, inner = module.ascontiguousarray(x), x.shape[dim], math.prod(x.shape[dim + 1 :])
    shape, rows = kept_shape(x.shape, (dim,)) if keepdim else x.shape[:dim] + x.shape[dim + 1 :], x.size // n
    values, places = device_launcher.empty(shape, x.dtype), device_launcher.empty(shape, np.int64)
    keys, where, m = _long_rows(char, x, n, inner, rows, n + _TILE, 0)
    _ORDER.kernel("mode_rows", char)(
        (min(rows, 1 << 30),), (device_code.THREADS,),
        (values, places, x, keys, where, m, n, inner, rows, int(char in device_code.FLOATS)))
    return values, places


def searchsorted(sequence: Any, keys: Any, *, right: bool) -> Any:
    """That of searchsorted: a thread for each key."""
    char = device_code.char_of(sequence, keys)
    if not char or not keys.size:
        return NotImplemented
    module = cuda.cupy()
    out = device_launcher.empty(keys.shape, np.int64)
    _ORDER.kernel("search_sorted", char)(
        (device_code.blocks(keys.size),), (device_code.THREADS,),
        (out, module.ascontiguousarray(sequence), module.ascontiguousarray(keys), sequence.shape[-1],
         keys.shape[-1] if keys.ndim else 1, int(sequence.ndim == 1), keys.size, int(right)))
    return out


def histc(x: Any, *, bins: int, low: float, high: float) -> Any:
    """That of histc; of equal ends the range is that of the elements, for which nobody waits."""
    char, module = device_code.char_of(x), cuda.cupy()
    if char not in device_code.FLOATS or not x.size:
        return NotImplemented
    x = module.ascontiguousarray(x)
    ends = [fold_of_elements(n, tuple(range(x.ndim)), (), x) if low == high and x.ndim else x
            for n in ("amin", "amax")]
    counts = module.zeros(bins, np.uint64)
    _COUNTS.kernel("count_bins", char)(
        (device_code.blocks(x.size),), (device_code.THREADS,),
        (counts, x, *ends, x.size, bins, low, high, device_flags.memory(), _RANGE))
    return counts.astype(x.dtype)


def bin_edges(x: Any, bins: int, op: str) -> Any:
    """The edges of equal bins over each column of (n, d), for whose ends nobody waits: (d, bins + 1), or
    NotImplemented."""
    char = device_code.char_of(x) if device_code.is_device_array(x) else ""
    if char not in device_code.FLOATS or not x.size or bins < 1:
        return NotImplemented
    infinite = device_flags.site(f"{op}: the range must be finite, the elements reach {{real}}", ValueError)
    with x.device:
        out = device_launcher.empty((x.shape[1], bins + 1), x.dtype)
        ends = [fold_of_elements(n, (0,), x.shape[1:], x) for n in ("amin", "amax")]
        _COUNTS.kernel("edges_of", char)(
            (device_code.blocks(out.size),), (device_code.THREADS,),
            (out, *ends, x.shape[1], bins, device_flags.memory(), infinite))
    return out


def bins_of(columns: list, edges: tuple, op: str) -> Any:
    """The place of each row in a grid by the rising edges of each column, each with a place behind its last
    for what is outside, or NotImplemented."""
    char = device_code.char_of(*columns, *edges)
    if char not in device_code.FLOATS or not columns[0].size:
        return NotImplemented
    falls = device_flags.site(f"{op}: the edges of bins must rise, that behind number {{value}} falls; sort "
                              "them, e.g. bins.sort().values", ValueError)
    module, n = cuda.cupy(), columns[0].size
    places = device_launcher.empty(n, np.int64)
    for i, (x, e) in enumerate(zip(columns, edges)):
        _COUNTS.kernel("bins_of", char)(
            (device_code.blocks(max(n, e.size)),), (device_code.THREADS,),
            (places, x, x.strides[0] // x.itemsize, module.ascontiguousarray(e), n, e.size - 1, int(i > 0),
             device_flags.memory(), falls))
    return places
