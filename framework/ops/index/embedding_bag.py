"""Sums, means and maxima of bags of rows of a table."""

from typing import Any

import numpy as np

from ...backends.sums import add_at
from ...errors import ShapeError
from ...tensor import Tensor, wrap
from ..convert.cast import from_array
from ..pointwise.choose import where
from ..record.args import tensor_arg
from ..record.constants import alike, raw
from ..record.op import Meta, Op
from ..record.planned import Step, have_kernels, planned
from ..record.public import public
from ..shape.alone import led
from . import cuda
from .embedding import _check_indices, add_rows, embedding, embedding_op
from .index import unindex
from .scatter_reduce import index_reduce


@public("nn.functional")
def embedding_bag(input: Tensor, weight: Tensor, offsets: Tensor | None = None,
                  max_norm: float | None = None, norm_type: float = 2, scale_grad_by_freq: bool = False,
                  mode: str = "mean", sparse: bool = False, per_sample_weights: Tensor | None = None,
                  include_last_offset: bool = False, padding_idx: int | None = None) -> Tensor:
    """Sums, means or maxima of bags of rows of ``weight`` (V, D): input (B, n) or (N) -> (B, D).

    input (N) is cut into bags that start at ``offsets`` (B), the first being 0; include_last_offset: the
    last offset is where the last bag ends. per_sample_weights: factors like input, for mode "sum".
    padding_idx: a row that is left out. An empty bag gives zeros. The other arguments: ``embedding``.
    In mode "max", equal elements share the gradient. Raises ShapeError, ValueError.

    >>> table = fw.tensor([[1.0], [2.0], [4.0]])
    >>> fw.nn.functional.embedding_bag(fw.tensor([0, 1, 2]), table, fw.tensor([0, 1]), mode="sum")
    tensor([[1.],
            [6.]])
    """
    return _embedding_bag(weight, input, offsets, per_sample_weights, max_norm, norm_type, scale_grad_by_freq,
                          mode, sparse, include_last_offset, padding_idx)


def _bag_numbers(offsets: Any, n: int, last: bool) -> tuple[Any, Any]:
    """The bag of each of ``n`` indices, and how many each bag has."""
    sizes = np.diff(offsets if last else np.append(offsets, n))
    return np.repeat(np.arange(len(sizes)), sizes), sizes


def _rows_kernel(xp: Any, weight: Any, input: Any, offsets: Any, *, mean: bool, last: bool) -> Any:
    bags, count = _bags(wrap(input), wrap(offsets), last, "embedding_bag")
    _check_indices(input, weight.shape[0], "embedding", f"weight has {weight.shape[0]} rows")
    total = xp.zeros((count, weight.shape[1]), weight.dtype)
    add_at(xp, total, (bags._array,), weight[input])
    sizes = np.bincount(bags._array, minlength=count)[:, None]
    return total / np.maximum(sizes, 1).astype(weight.dtype) if mean else total


def _rows_vjp(g: Any, weight_shape: tuple, input: Any, offsets: Any, mean: bool, last: bool) -> Any:
    bags, sizes = _bag_numbers(raw(offsets), raw(input).size, last)
    if mean:
        g = g * alike((1 / np.maximum(sizes, 1)).astype(raw(g).dtype)[:, None], g)
    return add_rows(embedding_op(g, alike(bags, g), padding=None, by_frequency=False), input,
                    rows=weight_shape[0])


bag_rows = Op("embedding_bag", "weight input offsets", kernel=_rows_kernel, native="bag_rows",
              infer=lambda weight, input, offsets, *, mean, last: Meta(
                  (offsets.shape[0] - last, weight.shape[1]), weight.dtype),
              vjp={"weight": _rows_vjp})


@planned
def _embedding_bag(weight: Tensor, input: Tensor, offsets: Tensor | None, factors: Tensor | None,
                   max_norm: float | None, norm_type: float, by_frequency: bool, mode: str, sparse: bool,
                   last: bool, padding: int | None) -> list[Step]:
    """The steps; the tensors come first."""
    op = "embedding_bag"
    if mode not in ("sum", "mean", "max"):
        raise ValueError(f"{op}: mode must be 'sum', 'mean' or 'max', got {mode!r}")
    tensor_arg(input, op)
    if factors is not None and (mode != "sum" or factors.shape != input.shape):
        raise ValueError(f"{op}: per_sample_weights needs mode='sum' and the shape of input")
    if (mode != "max" and max_norm is padding is factors is None and not (by_frequency or sparse)
            and isinstance(offsets, Tensor) and isinstance(weight, Tensor)
            and have_kernels(weight, input, offsets)
            and input._array.dtype == offsets._array.dtype == np.int64
            and (weight.ndim, input.ndim, offsets.ndim) == (2, 1, 1)):
        return [(bag_rows.run, 3, {"mean": mode == "mean", "last": bool(last)})]
    return [(_of_records, 4, {"max_norm": max_norm, "norm_type": norm_type, "by_frequency": by_frequency,
                              "mode": mode, "sparse": sparse, "last": last, "padding": padding})]


def _of_records(weight: Tensor, input: Any, offsets: Tensor | None, per_sample_weights: Tensor | None,
                max_norm: float | None, norm_type: float, by_frequency: bool, mode: str, sparse: bool,
                last: bool, padding: int | None) -> Tensor:
    op, padding_idx, scale_grad_by_freq, include_last_offset = "embedding_bag", padding, by_frequency, last
    if input.ndim == 2 and input.shape[1] and padding_idx is None and offsets is None:  # bags of one size
        each: Any = embedding(input, weight, None, max_norm, norm_type, scale_grad_by_freq, sparse)
        if per_sample_weights is not None:
            each = each * per_sample_weights.unsqueeze(2)  # type: ignore[attr-defined]
        return each.amax(1) if mode == "max" else each.mean(1) if mode == "mean" else each.sum(1)
    bags, count = _bags(input, offsets, include_last_offset, op)
    flat: Any = input.reshape(-1)  # type: ignore[attr-defined]
    rows: Any = embedding(flat, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.reshape(-1, 1)  # type: ignore[attr-defined]
    whole = count
    if padding_idx is not None:  # into a bag of its own, which is left out
        bags, whole = where(flat == padding_idx % weight.shape[0], count, bags), count + 1
    if mode == "max":
        zeros: Any = weight.new_zeros((whole, weight.shape[1]))  # type: ignore[attr-defined]
        return index_reduce(zeros, 0, bags, rows, "amax", include_self=False)[:count]
    at = led(bags)
    total: Any = unindex.run(rows, at, dims=(0,), shape=(whole, weight.shape[1]))
    if mode == "sum":
        return total[:count]
    ones = bags.new_ones(bags.shape, dtype=weight.dtype)
    sizes: Any = unindex.run(ones, at, dims=(0,), shape=(whole,))
    return (total / sizes.clamp(min=1.0).unsqueeze(1))[:count]


def _bags(x: Any, offsets: Any, last: bool, op: str) -> tuple[Any, int]:
    """The bag of every element of the flattened input, and how many bags there are."""
    if x.ndim == 2:
        if offsets is not None:
            raise ValueError(f"{op}: offsets are for 1-dim input; (B, n) has bags of n already")
        numbers = np.repeat(np.arange(x.shape[0]), x.shape[1])
        return from_array(numbers, x), x.shape[0]
    if x.ndim != 1 or offsets is None or tensor_arg(offsets, op, "offsets").ndim != 1:
        raise ShapeError(f"{op}: input must be (B, n), or (N) with offsets (B), got shape {list(x.shape)}")
    found = cuda.bags(offsets._array, x.shape[0], bool(last), op)
    if found is not NotImplemented:
        return wrap(found), offsets.shape[0] - bool(last)
    starts = offsets.cpu().numpy()
    if not starts.size or starts[0] != 0 or (starts[1:] < starts[:-1]).any() or starts[-1] > x.shape[0]:
        raise ValueError(f"{op}: offsets must start with 0, not fall, and end within the input of "
                         f"{x.shape[0]}, got {starts.tolist()}")
    count = len(starts) - bool(last)
    ends = np.full(count, starts[-1] if last else x.shape[0])
    ends[:-1] = starts[1:count]
    kept = np.arange(count).repeat(ends - starts[:count])
    if len(kept) < x.shape[0]:
        raise ValueError(f"{op}: the last offset is {starts[-1]}, but input has {x.shape[0]} elements")
    return from_array(kept, x), count
