"""Counts: bincount, histc, histogram."""

import builtins
import math
from typing import Any

import numpy as np

from ... import dtypes
from ...backends import about_to_read, device_code, device_flags, on_device
from ...backends.native import native_or
from ...backends.sums import add_at
from ...errors import DTypeError, ShapeError
from ...tensor import Tensor, wrap
from ..convert.cast import cast, from_array
from ..index.cuda import counts, ungather
from ..index.index import extremes
from ..record import return_types
from ..record.args import floating, number_arg, real_arg, tensor_arg
from ..record.op import Meta, Op
from ..record.public import public
from . import cuda


def _bincount_on_device(x: Any, weights: Any, *, size: int) -> Any:
    if weights is None:
        return counts(x, size)
    return ungather(weights, x, dim=0, shape=(size,)) if weights.size and size else NotImplemented


def _bincount_kernel(xp: Any, x: Any, weights: Any, *, size: int) -> Any:
    if weights is None:
        return xp.bincount(x, minlength=size).astype("int64")
    dtype = "float32" if weights.dtype == "float32" else "float64"
    if xp is np:
        return np.bincount(x, weights=weights, minlength=size).astype(dtype)
    sums = xp.zeros(size, dtype)
    add_at(xp, sums, x, weights.astype(dtype))  # in order where that is asked for
    return sums


def _bincount_infer(x: Meta, weights: Meta | None, *, size: int) -> Meta:
    if weights is None:
        return Meta((size,), dtypes.int64)
    return Meta((size,), dtypes.float32 if weights.dtype is dtypes.float32 else dtypes.float64)


bincount_op = Op("bincount", "x weights", kernel=_bincount_kernel, native="bincount",
                 infer=_bincount_infer, vjp="undefined", device=_bincount_on_device)


@public(method=True, op=bincount_op)
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each number 0, 1, ... occurs in a vector of integers, or the sum of its weights.

    The result has ``max(max(input) + 1, minlength)`` elements: int64, or floating with weights. Raises
    ValueError for negative numbers; backward to weights raises.

    >>> fw.bincount(fw.tensor([0, 2, 2]), minlength=4)
    tensor([1, 0, 2, 0])
    """
    if tensor_arg(input, "bincount")._array.dtype.kind not in "iu":
        raise DTypeError(f"bincount: argument 'input' must be integer, got {input.dtype}")
    if input.ndim != 1:
        raise ShapeError(f"bincount: wanted a vector, got shape {list(input.shape)}; use input.flatten()")
    if weights is not None and tensor_arg(weights, "bincount", "weights").shape != input.shape:
        raise ShapeError(f"bincount: weights of shape {list(weights.shape)} for input of shape "
                         f"{list(input.shape)}; they must be equal")
    wrong = "bincount: elements of input and minlength must not be negative, got "
    if minlength < 0:
        raise ValueError(f"{wrong}minlength={minlength}")
    own = input._array
    if weights is None and type(own) is np.ndarray and own.dtype.char in "lihbB" and own.size:
        least, most = extremes(own) if own.dtype.char == "l" else (int(own.min()), int(own.max()))
        if least >= 0:
            return bincount_op.run(input, None, size=max(most + 1, int(minlength)))
    told = device_flags.check(input._array, 0, 1 << 62, wrong + "the element {value}", error=ValueError)
    about_to_read(input._array, "bincount")
    with on_device(input._array):
        if not told and input.numel() and int(input._array.min()) < 0:
            raise ValueError(f"{wrong}the element {int(input._array.min())}")
        most = int(input._array.max()) + 1 if input.numel() else 0
    if weights is not None and weights.dtype is not dtypes.float32:
        weights = cast.run(weights, dtype=dtypes.float64)
    return bincount_op.run(cast.run(input, dtype=dtypes.int64), weights,
                           size=most if most > minlength else int(minlength))


def _histc_kernel(xp: Any, x: Any, *, bins: int, low: float, high: float) -> Any:
    x = x.reshape(-1)
    about_to_read(x, "histc")
    x = x[(x >= low) & (x <= high)]
    places = xp.minimum(((x - low) * (bins / (high - low))).astype("int64"), bins - 1)
    return xp.bincount(places, minlength=bins).astype(x.dtype)


histc_op = Op("histc", "x", kernel=_histc_kernel, native="histc", device=cuda.histc,
              infer=lambda x, *, bins, low, high: Meta((bins,), x.dtype), vjp="undefined")


@public(method=True, op=histc_op, out=True)
def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """How many elements fall into each of ``bins`` equal parts of [min, max], in the dtype of ``input``.

    If min and max are equal, the smallest and the largest element are taken. Elements outside do not
    count. Raises DTypeError for integers, ValueError for a wrong range; backward through it raises.

    >>> fw.histc(fw.tensor([1.0, 2.0, 1.0]), bins=4, min=0, max=3)
    tensor([0., 2., 1., 0.])
    """
    if tensor_arg(input, "histc")._array.dtype.kind not in dtypes.FLOATING:
        raise DTypeError(f"histc: argument 'input' must be floating, got {input.dtype}")
    if bins <= 0:
        raise ValueError(f"histc: bins must be positive, got {bins}")
    low, high = float(min), float(max)
    if low == high and input.numel() and device_code.enabled and device_code.is_device_array(input._array):
        return histc_op.run(input, bins=int(bins), low=low, high=high)
    if low == high and input.numel():
        low, high = _ends(input._array) or (float(input._array.min()), float(input._array.max()))
    if low == high:
        low, high = low - 1, high + 1
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"histc: the range [{low}, {high}] must be finite, with min below max")
    return histc_op.run(input, bins=int(bins), low=low, high=high)


def _by_places(places: Any, x: Any, weight: Any, sizes: tuple[int, ...]) -> Any:
    """How many rows, or how much weight, are where in a grid, by their places; the last ones are outside."""
    if places is NotImplemented:
        return places
    found = _bincount_on_device(places, None if weight is None else weight.reshape(-1), size=math.prod(sizes))
    inside = (slice(-1),) * len(sizes)
    return found if found is NotImplemented else found.reshape(sizes)[inside].astype(x.dtype, copy=False)


def _histogram_on_device(x: Any, weight: Any, edges: Any) -> Any:
    return _by_places(cuda.bins_of([x.reshape(-1)], (edges,), "histogram"), x, weight, edges.shape)


histogram_op = Op(
    "histogram", "x weight edges", vjp="undefined", native="histogram", device=_histogram_on_device,
    infer=lambda x, weight, edges: Meta((edges.shape[0] - 1,), x.dtype),
    kernel=lambda xp, x, weight, edges: xp.histogram(
        x.reshape(-1), bins=edges, weights=None if weight is None else weight.reshape(-1))[0].astype(x.dtype))


def _checked_later(x: Any, edges: Any) -> bool:
    """Whether the kernel that looks for bins tells of edges that fall, at the next wait."""
    return x.numel() and device_code.is_device_array(edges._array) \
        and device_code.char_of(x._array, edges._array) in device_code.FLOATS


def _edges(x: Any, bins: Any, range: Any, op: str) -> Tensor:
    """The edges of the bins of a vector: given, or of so many equal ones over the range."""
    if isinstance(bins, Tensor):
        if bins.ndim != 1 or bins.shape[0] < 2:
            raise ShapeError(f"{op}: bins must be a number or edges (k + 1), got shape {list(bins.shape)}")
        if _checked_later(x, bins):
            return bins
        if bool((bins.diff() < 0).any()):  # type: ignore[attr-defined]
            raise ValueError(f"{op}: the edges of bins must rise; sort them, e.g. bins.sort().values")
        return bins
    if isinstance(bins, bool) or not isinstance(bins, int):
        raise TypeError(f"{op}: argument 'bins' must be an int or a Tensor, got {type(bins).__name__}; "
                        f"convert edges with framework.tensor(...)")
    made = cuda.bin_edges(x._array.reshape(-1, 1), bins, op) if range is None else NotImplemented
    if made is not NotImplemented:
        return wrap(made[0])
    low, high = range if range is not None else _ends(x._array) or (
        (x.min().item(), x.max().item()) if x.numel() else (0.0, 0.0))
    if bins < 1 or not low <= high:
        raise ValueError(f"{op}: bins must be positive and range rising, got bins={bins}, "
                         f"range={(low, high)}")
    if low == high:
        low, high = low - 0.5, high + 0.5
    edges = np.arange(bins + 1) * ((high - low) / bins) + low  # np.linspace, which takes longer to begin
    edges[-1] = high
    return from_array(edges.astype(x.dtype.numpy), x)


# the least and the largest number of an array; None where it has nan, or no numbers of the host
_ends = native_or("ends", lambda x: None)


@public(method=True, op=histogram_op, out=True)
def histogram(input: Tensor, bins: Any, *, range: Any = None, weight: Tensor | None = None,
              density: bool = False) -> Any:
    """(hist, bin_edges): how many elements (or the sum of their weights) fall into each bin.

    bins: their number, over ``range`` (default: from the least to the greatest element), or their edges,
    a rising tensor (k + 1). The last bin is closed. density: the integral becomes 1. Backward
    through it raises.

    >>> fw.histogram(fw.tensor([0.0, 1.0, 1.5, 4.0]), 2).hist
    tensor([3., 1.])
    """
    floating(real_arg(input, "histogram"), "histogram")
    x: Any = input
    if weight is not None and tensor_arg(weight, "histogram", "weight").shape != x.shape:
        raise ShapeError(f"histogram: weight must have input's shape {list(x.shape)}, got "
                         f"{list(weight.shape)}")
    edges: Any = _edges(x, bins, range, "histogram")
    hist: Any = histogram_op.run(x, weight, edges)
    return return_types.histogram(hist / hist.sum() / edges.diff() if density else hist, edges)


def _histogramdd_kernel(xp: Any, x: Any, weight: Any, *edges: Any) -> Any:
    weights = None if weight is None else weight.reshape(-1)
    return xp.histogramdd(x, bins=list(edges), weights=weights)[0].astype(x.dtype)


def _histogramdd_on_device(x: Any, weight: Any, *edges: Any) -> Any:
    columns = [x[:, i] for i in range(len(edges))]
    return _by_places(cuda.bins_of(columns, edges, "histogramdd"), x, weight, tuple(e.size for e in edges))


histogramdd_op = Op("histogramdd", "x weight *edges", vjp="undefined", native="histogramdd",
                    kernel=_histogramdd_kernel,
                    device=_histogramdd_on_device,
                    infer=lambda x, weight, *edges: Meta(tuple(e.shape[0] - 1 for e in edges), x.dtype))


@public(op=histogramdd_op)
def histogramdd(input: Tensor, bins: Any, range: Any = None, weight: Tensor | None = None,
                density: bool = False) -> Any:
    """(hist, bin_edges): how many rows of ``input`` (*, d) fall into each cell of a grid of d dimensions.

    bins: the number for every dimension, a list of d numbers, or d tensors of rising edges. range: 2 * d
    numbers, the ends for each dimension (default: the least and the greatest). weight (*): what a row counts.
    density: the integral becomes 1. The last bin of each dimension is closed. Backward through it raises.

    >>> fw.histogramdd(fw.tensor([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]]), bins=[2, 2]).hist
    tensor([[0., 1.],
            [1., 1.]])
    """
    floating(real_arg(input, "histogramdd"), "histogramdd")
    if input.ndim < 2:
        raise ShapeError(f"histogramdd: wanted rows (*, d), got shape {list(input.shape)}")
    d = input.shape[-1]
    if isinstance(bins, Tensor) and not bins.ndim:
        bins = number_arg(bins, "histogramdd", "bins")
    each = [bins] * d if isinstance(bins, int) else list(bins)
    if len(each) != d or range is not None and len(range) != 2 * d:
        raise ShapeError(f"histogramdd: rows of {d} numbers need {d} bins and {2 * d} ends in range, got "
                         f"{len(each)} and {range}")
    if weight is not None and tensor_arg(weight, "histogramdd", "weight").shape != input.shape[:-1]:
        raise ShapeError(f"histogramdd: weight must have shape {list(input.shape[:-1])}, got "
                         f"{list(weight.shape)}")
    x: Any = input.reshape(-1, d)  # type: ignore[attr-defined]
    made = cuda.bin_edges(x._array, bins, "histogramdd") if type(bins) is int and range is None \
        else NotImplemented
    edges: list[Any] = [wrap(e) for e in made] if made is not NotImplemented else [
        _edges(x[:, i], each[i], None if range is None else range[2 * i:2 * i + 2], "histogramdd")
        for i in builtins.range(d)]
    hist: Any = histogramdd_op.run(x, weight, *edges)
    if density:
        hist = hist / hist.sum()
        for i, e in enumerate(edges):
            hist = hist / e.diff().reshape(-1, *[1] * (d - i - 1))
    return return_types.histogramdd(hist, tuple(edges))
