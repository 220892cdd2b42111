"""Rows of tables on GPUs (``kernels.cu``). An index out of range is told at the next wait for the device."""

import math
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ...backends import cuda, device_code, device_flags, device_launcher, precision

_SOURCE = device_code.source(Path(__file__).with_name("kernels.cu"))
_PLACES = device_code.source(Path(__file__).with_name("places.cu"), "along.cuh", dtypes="bhil")
_SUMS = device_code.source(Path(__file__).with_name("along.cu"), "along.cuh", dtypes="fdeEil")
_BAGS = device_code.source(Path(__file__).with_name("bags.cu"), dtypes="l")
_LAID = np.dtype([("outer", "i8"), ("n", "i8"), ("inner", "i8"), ("dims", "i8"), ("size", "i8", (4,))])
_ALONG = np.dtype([*[(n, "i8") for n in ("dims", "dim", "n", "length")],
                   *[(n, "i8", (8,)) for n in ("size", "stride")]])
_BY_SIZE = {1: "b", 2: "h", 4: "i", 8: "l"}
_INDEX = device_flags.site("embedding: input is {value}, but the table has {size} rows (0 to {last})")


def checks_itself(indices: Any) -> bool:
    """Whether the kernel tells of indices out of range, so that nobody need wait to look at them."""
    return device_code.enabled and device_code.is_device_array(indices)


def _indices(indices: Any) -> Any:
    indices = indices if indices.dtype == np.int64 else indices.astype(np.int64)
    return cuda.cupy().ascontiguousarray(indices)


def take_rows(weight: Any, indices: Any, *, padding: int | None, by_frequency: bool) -> Any:
    """The device function of embedding."""
    char = device_code.char_of(weight)
    if char not in device_code.FLOATS or not indices.size or not weight.size:
        return NotImplemented
    module, width = cuda.cupy(), math.prod(weight.shape[1:])
    out = device_launcher.empty((*indices.shape, *weight.shape[1:]), weight.dtype)
    _SOURCE.kernel("take_rows", char)(
        (device_code.blocks(out.size),),
        (device_code.THREADS,),
        (
            out,
            module.ascontiguousarray(weight),
            _indices(indices),
            indices.size,
            width,
            weight.shape[0],
            device_flags.memory(),
            _INDEX,
        ),
    )
    return out


def bags(starts: Any, n: int, ends: bool, op: str) -> Any:
    """The bag of each of ``n`` elements by where bags begin (``ends``: and where the last one ends), or
    NotImplemented. What is wrong with offsets is told at the next wait."""
    if starts.size <= ends or not checks_itself(starts):
        return NotImplemented
    said = f"{op}: offsets must start with 0, not fall, and end within the input of {{size}}, got "
    told = [device_flags.site(said + got, ValueError)
            for got in ("{value} first", "{value} last", "a step of {value}")]
    with starts.device:
        found = device_launcher.empty(n, np.int64)
        _BAGS.kernel("bags_of", "l")(
            (device_code.blocks(max(n, starts.size)),), (device_code.THREADS,),
            (found, _indices(starts), starts.size, starts.size - ends, n, int(ends), device_flags.memory(),
             *told))
    return found


def add_rows(x: Any, indices: Any, *, rows: int, padding: int = -1) -> Any:
    """The device function of add_rows: by atomic additions, or where determinism is asked for in order."""
    char = device_code.char_of(x)
    if char not in device_code.FLOATS or not x.size or not rows:
        return NotImplemented
    module, behind = cuda.cupy(), x.shape[indices.ndim :]
    width, n = math.prod(behind), indices.size
    x, indices = module.ascontiguousarray(x), _indices(indices)
    if precision.are_deterministic_algorithms_enabled():
        out = device_launcher.empty((rows, *behind), x.dtype)
        _SOURCE.kernel("add_rows_in_order", char)(
            (min(rows, device_code.MOST_BLOCKS), -(-width // 128)),
            (128,),
            (out, x, indices, n, width, rows, padding),
        )
        return out
    sums = module.zeros((rows, *behind), np.float64 if char == "d" else np.float32)
    _SOURCE.kernel("add_rows", char)(
        (device_code.blocks(x.size),), (device_code.THREADS,), (sums, x, indices, n, width, rows, padding)
    )
    return sums if sums.dtype == x.dtype else sums.astype(x.dtype)


@lru_cache(64)
def _outside(dims: tuple[int, ...]) -> int:
    """The number of the first of the messages of positions outside, one for each dimension, in a row."""
    sites = [device_flags.site(f"index: index {{value}} is out of range for dimension {d} of size {{size}}, "
                               f"in a key of dimensions {list(dims)}" if len(dims) > 1 else
                               f"index: index {{value}} is out of range for dimension {d} of size {{size}}")
             for d in dims]
    assert sites == list(range(sites[0], sites[0] + len(sites)))
    return sites[0]


def _places(x: Any, index: Any, dims: tuple[int, ...]) -> tuple[str, Any] | None:
    """(letter, how places lie) where the dimensions lie together, and the kernels take them."""
    adjacent = dims[-1] - dims[0] == len(dims) - 1 and dims[-1] < x.ndim
    char = _BY_SIZE.get(x.itemsize, "")
    if not (device_code.enabled and char and adjacent and len(dims) <= 4 and x.size and index.size):
        return None
    plan: Any = np.zeros(1, _LAID)
    plan["outer"], plan["n"] = math.prod(x.shape[: dims[0]]), math.prod(index.shape[1:])
    plan["inner"], plan["dims"] = math.prod(x.shape[dims[-1] + 1 :]), len(dims)
    plan["size"][0, : len(dims)] = [x.shape[d] for d in dims]
    return char, plan


def check_places(x: Any, index: Any, dims: tuple[int, ...]) -> None:
    """Have positions checked where CuPy takes the choice, which wraps those outside around."""
    for k, d in enumerate(dims):
        if d < x.ndim:
            device_flags.check(index[k], -x.shape[d], x.shape[d],
                               f"index: index {{value}} is out of range for dimension {d} of size {{size}}")


def take_at(x: Any, index: Any, *, dims: tuple[int, ...]) -> Any:
    """The device function of index: the elements at positions, which the kernel checks."""
    found = _places(x, index, dims)
    if found is None:
        check_places(x, index, dims)
        return NotImplemented
    (char, plan), module = found, cuda.cupy()
    out = device_launcher.empty((*x.shape[: dims[0]], *index.shape[1:], *x.shape[dims[-1] + 1 :]), x.dtype)
    _PLACES.kernel("take_at", char)(
        (device_code.blocks(out.size),),
        (device_code.THREADS,),
        (out, module.ascontiguousarray(x), _indices(index), plan, device_flags.memory(), _outside(dims)),
    )
    return out


def put_at(x: Any, value: Any, index: Any, *, dims: tuple[int, ...]) -> Any:
    """The device function of index_put: a copy with values at positions."""
    found = _places(x, index, dims)
    if found is None or not device_code.is_device_array(value) or value.dtype != x.dtype:
        check_places(x, index, dims)
        return NotImplemented
    (char, plan), module = found, cuda.cupy()
    shape, one = (*x.shape[: dims[0]], *index.shape[1:], *x.shape[dims[-1] + 1 :]), value.size == 1
    try:
        value = value if one else module.ascontiguousarray(module.broadcast_to(value, shape))
    except ValueError:  # told by the shape rule
        return NotImplemented
    out = module.array(x, copy=True, order="C")
    _PLACES.kernel("put_at", char)(
        (device_code.blocks(math.prod(shape)),),
        (device_code.THREADS,),
        (out, value, int(one), _indices(index), plan, device_flags.memory(), _outside(dims)),
    )
    return out


# -- an index along one dimension ----------------------------------------------------------------------


def _along(char: str, index: Any, dim: int, shape: tuple[int, ...]) -> Any:
    """How an index points into an array of ``shape``; None where the kernels take none of that."""
    if not (device_code.enabled and char and index.size and len(shape) == index.ndim <= 8):
        return None
    plan: Any = np.zeros(1, _ALONG)
    plan["dims"], plan["dim"], plan["n"], plan["length"] = index.ndim, dim, index.size, shape[dim]
    plan["size"][0, : index.ndim] = index.shape
    plan["stride"][0, : index.ndim] = [math.prod(shape[d + 1 :]) for d in range(index.ndim)]
    return plan


def _launched(source: Any, name: str, char: str, n: int, *arguments: Any) -> None:
    source.kernel(name, char)((device_code.blocks(n),), (device_code.THREADS,), arguments)


def gather(x: Any, index: Any, *, dim: int) -> Any:
    """The device function of gather."""
    char, module = _BY_SIZE.get(x.itemsize, ""), cuda.cupy()
    plan = _along(char, index, dim, x.shape)
    if plan is None or not x.size:
        return NotImplemented
    out = device_launcher.empty(index.shape, x.dtype)
    _launched(_PLACES, "gather_along", char, index.size,
              out, module.ascontiguousarray(x), _indices(index), plan)
    return out


def scatter(x: Any, src: Any, index: Any, *, dim: int) -> Any:
    """That of scatter."""
    char, module = _BY_SIZE.get(x.itemsize, ""), cuda.cupy()
    plan, whole = _along(char, index, dim, x.shape), device_code.is_device_array(src)
    if plan is None or not x.size or whole and (src.dtype != x.dtype or src.shape != index.shape):
        return NotImplemented
    one = np.zeros(1, x.dtype) if whole else np.full(1, src, x.dtype)
    out = module.array(x, copy=True, order="C")
    values = module.ascontiguousarray(src) if whole else None
    _launched(_PLACES, "scatter_along", char, index.size,
              out, values, one.view(np.dtype(char)), _indices(index), plan)
    return out


def ungather(x: Any, index: Any, *, dim: int, shape: tuple[int, ...]) -> Any:
    """That of ungather, by atomic additions, so not where determinism is asked for."""
    char, module = device_code.char_of(x), cuda.cupy()
    plan = _along(char, index, dim, shape)
    if plan is None or char not in _SUMS.dtypes or x.shape != index.shape or not math.prod(shape) \
            or precision.are_deterministic_algorithms_enabled():
        return NotImplemented
    sums = module.zeros(shape, np.float32 if char in "eE" else x.dtype)
    _launched(_SUMS, "add_along", char, index.size, sums, module.ascontiguousarray(x), _indices(index), plan)
    return sums.astype(x.dtype, copy=False)


def scatter_extreme(x: Any, src: Any, index: Any, *, dim: int, largest: bool) -> Any:
    """That of scatter_extreme."""
    char, module = device_code.char_of(x, src), cuda.cupy()
    plan = _along(char, index, dim, x.shape)
    if plan is None or char not in _SUMS.dtypes or src.shape != index.shape or not x.size:
        return NotImplemented
    best = module.array(x, dtype=np.float32 if char in "eE" else x.dtype, copy=True, order="C")
    _launched(_SUMS, "extreme_along", char, index.size,
              best, module.ascontiguousarray(src), _indices(index), int(largest), plan)
    return best.astype(x.dtype, copy=False)


def counts(places: Any, length: int) -> Any:
    """How often each number from 0 to ``length`` - 1 is among ``places``; NotImplemented without kernels."""
    if not device_code.enabled or not device_code.is_device_array(places):
        return NotImplemented
    found = cuda.cupy().zeros(length, np.int64)
    if places.size and length:
        _launched(_SUMS, "count_places", "l", places.size, found, _indices(places), places.size, length)
    return found


def shrink_rows(table: Any, indices: Any, most: float, p: float) -> bool:
    """Whether kernels scale the rows of a table that are looked up to a p-norm of at most ``most``."""
    char = device_code.char_of(table) if checks_itself(indices) else ""
    if char not in device_code.FLOATS or not table.flags.c_contiguous:
        return False
    rows, width = table.shape
    if indices.size and width:
        marks = cuda.cupy().zeros(rows, np.uint8)
        _launched(_SOURCE, "mark_rows", "f", indices.size, marks, _indices(indices), indices.size, rows)
        _SOURCE.kernel("shrink_rows", char)(
            (device_code.blocks(rows, 1),), (min(256, max(32, 1 << (width - 1).bit_length())),),
            (table, marks, rows, width, most, p))
    return True


def add_lookups(g: Any, indices: Any, rows: int, padding: int | None, by_frequency: bool) -> Any:
    """The gradient of a table of which rows were looked up, but for those of ``padding``; by_frequency: each
    row's is divided by how often that was. NotImplemented for what is left to records."""
    wanted = padding is not None or by_frequency
    if not (wanted and checks_itself(indices) and device_code.is_device_array(g)):
        return NotImplemented
    out = add_rows(g, indices, rows=rows, padding=-1 if padding is None else padding)
    if out is NotImplemented or not by_frequency:
        return out
    often = cuda.cupy().maximum(counts(indices, rows), 1).astype(out.dtype)
    return out / often.reshape(rows, *(1,) * (out.ndim - 1))
