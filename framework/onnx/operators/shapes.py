"""Operators of shapes and positions: reshaping, slicing, gathering, scattering, constants."""

import math
from typing import Any

import numpy as np

import framework as fw
from framework import Tensor

from .table import dtype_of, ints, number, op

F = fw.nn.functional


@op("Reshape")
def reshape(x: Tensor, to: Any = None, *, shape: Any = None, allowzero: int = 0,
            consumed_inputs: Any = None) -> Tensor:
    sizes = ints(to, shape)
    if not allowzero:
        sizes = [x.shape[i] if n == 0 else n for i, n in enumerate(sizes)]
    return x.reshape(sizes)


@op("Flatten")
def flatten(x: Tensor, *, axis: int = 1) -> Tensor:
    axis += x.ndim if axis < 0 else 0
    rows = math.prod(x.shape[:axis])
    return x.reshape(rows, math.prod(x.shape[axis:]))


@op("Squeeze")
def squeeze(x: Tensor, at: Any = None, *, axes: Any = None) -> Tensor:
    dims = ints(at, axes)
    if dims is None:
        return x.reshape([n for n in x.shape if n != 1])
    dims = {d % x.ndim for d in dims}
    if any(x.shape[d] != 1 for d in dims):
        raise ValueError(f"Squeeze of sizes that are not 1: axes {sorted(dims)} of shape {list(x.shape)}")
    return x.reshape([n for i, n in enumerate(x.shape) if i not in dims])


@op("Unsqueeze")
def unsqueeze(x: Tensor, at: Any = None, *, axes: Any = None) -> Tensor:
    dims = ints(at, axes)
    ndim = x.ndim + len(dims)
    for d in sorted(d % ndim for d in dims):
        x = x.unsqueeze(d)
    return x


@op("Transpose")
def transpose(x: Tensor, *, perm: Any = None) -> Tensor:
    return x.permute(perm if perm is not None else tuple(reversed(range(x.ndim))))


@op("Concat")
def concat(*xs: Tensor, axis: int = 1) -> Tensor:
    return fw.cat(xs, axis)


@op("Split")
def split(x: Tensor, sizes: Any = None, *, axis: int = 0, split: Any = None, num_outputs: int | None = None,
          outputs: int = 1) -> Any:
    given = ints(sizes, split)
    if given is None:
        n = x.shape[axis]
        each = -(-n // (num_outputs or outputs))
        given = [min(each, max(n - i * each, 0)) for i in range(num_outputs or outputs)]
    parts = fw.split(x, given, axis)
    return parts if outputs > 1 else parts[0]


@op("Slice")
def slice_(x: Tensor, starts_: Any = None, ends_: Any = None, axes_: Any = None, steps_: Any = None, *,
           starts: Any = None, ends: Any = None, axes: Any = None) -> Tensor:
    low, high = ints(starts_, starts), ints(ends_, ends)
    dims = ints(axes_, axes)
    dims = list(range(len(low))) if dims is None else dims
    steps = ints(steps_, [1] * len(low))
    key: list[Any] = [slice(None)] * x.ndim
    backward = []
    for d, a, b, s in zip(dims, low, high, steps):
        d %= x.ndim
        n = x.shape[d]
        a, b = (a + n if a < 0 else a), (b + n if b < 0 else b)
        if s > 0:
            key[d] = slice(min(max(a, 0), n), min(max(b, 0), n), s)
        else:  # read forwards, then turned
            a, b = min(max(a, -1), n - 1), min(max(b, -1), n - 1)
            count = max(0, -((a - b) // s))
            last = a + (count - 1) * s
            key[d] = slice(last, a + 1, -s) if count else slice(0, 0)
            backward.append(d)
    y = x[tuple(key)]
    return y.flip(backward) if backward else y


@op("Expand")
def expand(x: Tensor, shape: Tensor) -> Tensor:
    return x.expand(fw.broadcast_shapes(tuple(x.shape), tuple(ints(shape))))


@op("Tile", since=6)
def tile(x: Tensor, repeats: Tensor) -> Tensor:
    return x.repeat(ints(repeats)) if x.ndim else x


@op("Tile")
def tile_as_was(x: Tensor, tiles: Tensor, axis: Tensor) -> Tensor:
    reps = [1] * x.ndim
    reps[number(axis)] = number(tiles)
    return x.repeat(reps)


@op("Shape")
def shape(x: Tensor, *, start: int = 0, end: int | None = None) -> Tensor:
    return fw.tensor(list(x.shape)[start:end], dtype=fw.int64)


@op("Size")
def size(x: Tensor) -> Tensor:
    return fw.tensor(x.numel(), dtype=fw.int64)


@op("Constant")
def constant(*, value: Any = None, value_float: float | None = None, value_floats: Any = None,
             value_int: int | None = None, value_ints: Any = None, value_string: Any = None) -> Any:
    if value is not None:
        return value
    if value_float is not None or value_floats is not None:
        return fw.tensor(value_float if value_float is not None else value_floats, dtype=fw.float32)
    if value_string is not None:
        return value_string
    return fw.tensor(value_int if value_int is not None else value_ints, dtype=fw.int64)


@op("ConstantOfShape")
def constant_of_shape(shape: Tensor, *, value: Any = None) -> Tensor:
    sizes = ints(shape)
    if value is None:
        return fw.zeros(sizes)
    return value.reshape([]).expand(sizes).clone() if value.numel() else fw.zeros(sizes)


@op("EyeLike")
def eye_like(x: Tensor, *, dtype: int | None = None, k: int = 0) -> Tensor:
    kind = x.dtype if dtype is None else dtype_of(dtype)
    return fw.from_numpy(np.eye(x.shape[0], x.shape[1], k)).to(kind)


@op("Range")
def range_(start: Tensor, limit: Tensor, delta: Tensor) -> Tensor:
    a, b, d = number(start), number(limit), number(delta)
    n = max(math.ceil((b - a) / d), 0)
    if isinstance(a, int):
        return fw.arange(n, dtype=start.dtype) * d + a if n else fw.zeros(0, dtype=start.dtype)
    return (start + fw.arange(n).to(start.dtype) * delta).to(start.dtype)


@op("Trilu")
def trilu(x: Tensor, k: Any = None, *, upper: int = 1) -> Tensor:
    return (fw.triu if upper else fw.tril)(x, number(k, 0))


@op("DepthToSpace")
def depth_to_space(x: Tensor, *, blocksize: int, mode: str = "DCR") -> Tensor:
    n, c, h, w = x.shape
    b = blocksize
    if mode == "DCR":
        y = x.reshape(n, b, b, c // (b * b), h, w).permute(0, 3, 4, 1, 5, 2)
    else:
        y = x.reshape(n, c // (b * b), b, b, h, w).permute(0, 1, 4, 2, 5, 3)
    return y.reshape(n, c // (b * b), h * b, w * b)


@op("SpaceToDepth")
def space_to_depth(x: Tensor, *, blocksize: int, mode: str = "DCR") -> Tensor:
    n, c, h, w = x.shape
    b = blocksize
    y = x.reshape(n, c, h // b, b, w // b, b)
    order = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
    return y.permute(order).reshape(n, c * b * b, h // b, w // b)


@op("ReverseSequence")
def reverse_sequence(x: Tensor, lengths: Tensor, *, batch_axis: int = 1, time_axis: int = 0) -> Tensor:
    n = x.shape[time_axis]
    at = np.arange(n)[:, None].repeat(x.shape[batch_axis], 1)
    for i, m in enumerate(ints(lengths)):
        at[:m, i] = np.arange(m)[::-1]
    index = fw.from_numpy(at if time_axis == 0 else at.T.copy())
    return fw.gather(x, time_axis, index.reshape(*index.shape, *[1] * (x.ndim - 2)).expand(x.shape))


# -- by positions --------------------------------------------------------------------------------------


def _positive(index: Tensor, n: int) -> Tensor:
    index = index.to(fw.int64)
    return fw.where(index < 0, index + n, index)


@op("Gather")
def gather(x: Tensor, index: Tensor, *, axis: int = 0) -> Tensor:
    axis %= x.ndim
    flat = fw.index_select(x, axis, _positive(index, x.shape[axis]).reshape(-1))
    return flat.reshape(*x.shape[:axis], *index.shape, *x.shape[axis + 1:])


@op("GatherElements")
def gather_elements(x: Tensor, index: Tensor, *, axis: int = 0) -> Tensor:
    return fw.gather(x, axis, _positive(index, x.shape[axis]))


@op("GatherND")
def gather_nd(x: Tensor, index: Tensor, *, batch_dims: int = 0) -> Tensor:
    b = batch_dims
    places = [_positive(index[..., i], x.shape[b + i]) for i in range(index.shape[-1])]
    lead = [fw.arange(n).reshape([-1 if i == d else 1 for i in range(index.ndim - 1)])
            for d, n in enumerate(x.shape[:b])]
    return x[(*lead, *places)]


_REDUCTIONS = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


@op("ScatterElements", "Scatter")
def scatter_elements(x: Tensor, index: Tensor, updates: Tensor, *, axis: int = 0,
                     reduction: str = "none") -> Tensor:
    index = _positive(index, x.shape[axis])
    if reduction == "none":
        return fw.scatter(x, axis, index, updates)
    if reduction == "add":
        return fw.scatter_add(x, axis, index, updates)
    return fw.scatter_reduce(x, axis, index, updates, _REDUCTIONS[reduction])


@op("ScatterND")
def scatter_nd(x: Tensor, index: Tensor, updates: Tensor, *, reduction: str = "none") -> Tensor:
    k = index.shape[-1]
    inner = math.prod(x.shape[k:])
    flat: Any = 0
    for i in range(k):
        flat = flat * x.shape[i] + _positive(index[..., i], x.shape[i])
    places = (flat.reshape(-1, 1) * inner + fw.arange(inner)).reshape(-1)
    y = scatter_elements(x.reshape(-1), places, updates.reshape(-1), axis=0, reduction=reduction)
    return y.reshape(x.shape)


@op("TensorScatter")
def tensor_scatter(past: Tensor, update: Tensor, write: Any = None, *, axis: int = -2,
                   mode: str = "linear") -> Tensor:
    axis %= past.ndim
    n, m = past.shape[axis], update.shape[axis]
    starts = ints(write, [0] * past.shape[0])
    y = past.clone()
    for b, start in enumerate(starts):
        at = [(start + i) % n if mode == "circular" else start + i for i in range(m)]
        rows = fw.index_copy(past[b], axis - 1, fw.tensor(at), update[b])
        y[b] = rows
    return y


@op("OneHot")
def one_hot(index: Tensor, depth: Tensor, values: Tensor, *, axis: int = -1) -> Tensor:
    n = int(number(depth))
    index = index.to(fw.int64)
    index = fw.where(index < 0, index + n, index)
    axis += index.ndim + 1 if axis < 0 else 0
    places = fw.arange(n).reshape(-1, *[1] * (index.ndim - axis))
    return fw.where(index.unsqueeze(axis) == places, values[1], values[0])


@op("NonZero")
def nonzero(x: Tensor) -> Tensor:
    return fw.nonzero(x).t().contiguous() if x.ndim else fw.nonzero(x.reshape(1))[:0].t()


@op("Compress")
def compress(x: Tensor, condition: Tensor, *, axis: int | None = None) -> Tensor:
    if axis is None:
        x, axis = x.reshape(-1), 0
    places = fw.nonzero(condition).reshape(-1)
    return fw.index_select(x, axis, places)


@op("Unique")
def unique(x: Tensor, *, axis: int | None = None, sorted: int = 1, outputs: int = 1) -> Any:
    values, first, inverse, counts = np.unique(x.detach().numpy(), return_index=True, return_inverse=True,
                                               return_counts=True, axis=axis)
    inverse = inverse.reshape(-1)
    if not sorted:
        order = np.argsort(first)
        values = np.take(values, order, 0 if axis is None else axis)
        turned = np.empty_like(order)
        turned[order] = np.arange(len(order))
        first, counts, inverse = first[order], counts[order], turned[inverse]
    found = [fw.from_numpy(np.ascontiguousarray(values))]
    found += [fw.from_numpy(a.astype(np.int64)) for a in (first, inverse, counts)]
    return found[0] if outputs == 1 else tuple(found[:outputs])


@op("Pad")
def pad(x: Tensor, pads_: Any = None, value_: Any = None, axes_: Any = None, *, pads: Any = None,
        paddings: Any = None,
        value: float = 0.0, mode: str = "constant") -> Tensor:
    amounts = ints(pads_, pads if pads is not None else paddings)
    dims = [d % x.ndim for d in ints(axes_, range(x.ndim))]
    fill = number(value_, value)
    for i, d in enumerate(dims):
        low, high = amounts[i], amounts[i + len(dims)]
        if low < 0 or high < 0:
            x = x.narrow(d, max(-low, 0), x.shape[d] - max(-low, 0) - max(-high, 0))
            low, high = max(low, 0), max(high, 0)
        if not low and not high:
            continue
        n = x.shape[d]
        if mode == "constant":
            ends = [fw.full([*x.shape[:d], k, *x.shape[d + 1:]], fill, dtype=x.dtype) for k in (low, high)]
            x = fw.cat([ends[0], x, ends[1]], d)
            continue
        at = np.arange(-low, n + high)
        if mode == "edge":
            at = at.clip(0, n - 1)
        elif mode == "wrap":
            at %= n
        else:
            period = max(2 * (n - 1), 1)
            at %= period
            at = np.where(at >= n, period - at, at)
        x = fw.index_select(x, d, fw.from_numpy(at.astype(np.int64)))
    return x


@op("CenterCropPad")
def center_crop_pad(x: Tensor, shape: Tensor, *, axes: Any = None) -> Tensor:
    dims = [d % x.ndim for d in ints(axes, range(x.ndim))]
    for d, n in zip(dims, ints(shape)):
        m = x.shape[d]
        if n < m:
            x = x.narrow(d, (m - n) // 2, n)
        elif n > m:
            low = (n - m) // 2
            x = pad(x, [low, n - m - low], axes_=[d])
    return x
