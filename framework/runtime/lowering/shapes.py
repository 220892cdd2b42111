"""Views, joined and moved elements as steps: what records name in their ``runtime``.

Every function takes the model under way, then operands (``Ref``, or a number, or None) and settings as they
stand in the record's expression.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...onnx.sizes import Extent
from ...onnx.trace import Ref
from .. import format as file
from .model import Model, Unsupported


def reshaped(to: Model, x: Any) -> None:
    to.give("reshape", [to.value(x)], to.sizes(to.result().shape))


def expanded(to: Model, x: Any) -> None:
    to.give("expand", [to.value(x)], to.result().shape)


def full(to: Model, value: Any) -> None:
    if not isinstance(value, (bool, int, float)):
        raise Unsupported("a tensor full of what depends on the inputs")
    to.give("expand", [to.constant(np.array(value, to.result().dtype.numpy))], to.result().shape)


def counting(to: Model, start: Any, end: Any, step: Any) -> None:
    if to.result().dtype.name != "int64" or start != 0 or step != 1:
        raise Unsupported("arange up to a dynamic size that does not count 0, 1, 2 in int64")
    to.give("arange", [], [end])


def permuted(to: Model, x: Any, dims: Any) -> None:
    to.give("permute", [to.value(x)], [d % len(dims) for d in dims])


def sliced(to: Model, x: Any, key: Any) -> None:
    """By ints, slices, None and Ellipsis; new dimensions come last, by another step."""
    shape, numbers, out = to.shape(x), [], iter(to.result().shape)
    for n, k in zip(shape, _whole_key(key, len(shape), out)):
        if isinstance(k, tuple):
            numbers += _part(k[0], n, k[1])
        else:
            numbers += [n + k if isinstance(k, int) and k < 0 else k, 1, -1]
    if not any(k is None for k in (key if isinstance(key, tuple) else (key,))):
        return to.give("slice", [to.value(x)], numbers)
    part = to.add("slice", [to.value(x)], numbers, dtype=to.dtype(x))
    to.give("reshape", [part], to.sizes(to.result().shape))


def _whole_key(key: Any, ndim: int, out: Iterator) -> list:
    """An int, or a slice and how many elements it leaves (the next of ``out``), for each dimension."""
    key = key if isinstance(key, tuple) else (key,)
    found: list = []
    given = sum(k is not None and k is not Ellipsis for k in key)
    if given > ndim:
        raise Unsupported(f"the key {key}")
    key = (*key, Ellipsis) if Ellipsis not in [k if k is Ellipsis else 0 for k in key] else key
    for k in key:
        if k is None:
            next(out)  # a new dimension
        elif k is Ellipsis:
            found += [(slice(None), next(out)) for _ in range(ndim - given)]
        elif isinstance(k, slice):
            found.append((k, next(out)))
        elif isinstance(k, (int, Extent)) and not isinstance(k, bool):
            found.append(k)
        else:
            raise Unsupported(f"the key {key}")
    return found


def _part(k: slice, n: Any, count: Any) -> list:
    """The first element, the step and the count of a slice."""
    by = 1 if k.step is None else k.step
    if not isinstance(by, int):
        raise Unsupported(f"the slice {k}")
    first = k.start if k.start is not None else 0 if by > 0 else n - 1
    if isinstance(first, int) and first < 0:
        first = n + first
    return [first, by, count]


def windows(to: Model, x: Any, dim: int, size: int, step: int) -> None:
    to.give("windows", [to.value(x)], [dim, size, step, 1])


def put_slice(to: Model, x: Any, key: Any, shape: Any) -> None:
    """Zeros of a shape, but for a part."""
    numbers: list = []
    sizes = iter(to.shape(x))
    for k, n in zip(_whole_key(key, len(shape), sizes), to.result().shape):
        if not isinstance(k, tuple) or k[0].step not in (None, 1):
            raise Unsupported("zeros around anything but slices without steps")
        numbers += [_part(k[0], n, k[1])[0], n]
    to.give("pad", [to.value(x)], numbers, [0.0])


def flipped(to: Model, x: Any, dims: Any) -> None:
    numbers: list = []
    for d, n in enumerate(to.shape(x)):
        numbers += [n - 1, -1, n] if d in dims else [0, 1, n]
    to.give("contiguous", [to.add("slice", [to.value(x)], numbers, dtype=to.dtype(x))])


def rolled(to: Model, x: Any, shifts: Any, dims: Any) -> None:
    """Two parts of each dimension, the other way round."""
    shape, value, dtype = list(to.shape(x)), to.value(x), to.dtype(x)
    if not dims:
        if any(isinstance(n, Extent) for n in shape):
            raise Unsupported("rolling all elements of a dynamic size")
        value = to.add("reshape", [value], [math.prod(shape)], dtype=dtype)
        shape, shifts, dims = [math.prod(shape)], (shifts,), (0,)
    for shift, dim in zip(shifts, dims):
        n = shape[dim]
        if not isinstance(n, int) and shift and not all(0 < abs(shift) < a for a in n.at):
            raise Unsupported("rolling a dynamic size by more than it has")
        cut = shift % n if isinstance(n, int) else shift if shift >= 0 else n + shift
        if isinstance(cut, int) and cut == 0:
            continue
        parts = [[part if d == dim else [0, 1, s] for d, s in enumerate(shape)]
                 for part in ([n - cut, 1, cut], [0, 1, n - cut])]
        halves = [to.add("slice", [value], [i for row in rows for i in row], dtype=dtype) for rows in parts]
        value = to.add("join", halves, [dim, 0], dtype=dtype)
    to.give("reshape", [to.add("contiguous", [value], dtype=dtype)], to.sizes(to.shape(x)))


def tiled(to: Model, x: Any, reps: Any) -> None:
    shape = (1,) * (len(reps) - len(to.shape(x))) + tuple(to.shape(x))
    reps = (1,) * (len(shape) - len(reps)) + tuple(reps)
    apart = to.add("reshape", [to.value(x)], [n for size in shape for n in (1, size)], dtype=to.dtype(x))
    wide = to.add("expand", [apart], [n for pair in zip(reps, shape) for n in pair], dtype=to.dtype(x))
    to.give("reshape", [to.add("contiguous", [wide], dtype=to.dtype(x))], to.sizes(to.result().shape))


def filled(to: Model, x: Any, value: Any) -> None:
    """One number, or a tensor that broadcasts, everywhere."""
    result = to.result()
    if isinstance(value, Ref):
        if to.dtype(value) != result.dtype.name:
            raise Unsupported(f"filling {result.dtype.name} with {to.dtype(value)}")
        number = to.value(value)
    elif isinstance(value, (bool, int, float)):
        number = to.constant(np.array(value, result.dtype.numpy))
    else:
        raise Unsupported(f"filling with {value!r}")
    wide = to.add("expand", [number], result.shape, dtype=result.dtype.name)
    to.give("contiguous", [wide])


def triangle(to: Model, x: Any, k: int, upper: int) -> None:
    to.give("triangle", [to.value(x)], [k, upper])


def gathered(to: Model, x: Any, index: Any, dim: int) -> None:
    if not to.shape(x):
        raise Unsupported("of a tensor without dimensions")
    to.give("gather", [to.value(x), _positions(to, index)], [dim % len(to.shape(x))])


def scattered(to: Model, x: Any, src: Any, index: Any, dim: int) -> None:
    """Elements, or one number, put at positions along a dimension."""
    dtype = to.dtype(x)
    if not to.shape(x):
        raise Unsupported("of a tensor without dimensions")
    if isinstance(src, Ref):
        if to.dtype(src) != dtype:
            raise Unsupported(f"{to.dtype(src)} in {dtype}")
        value = to.value(src)
        if to.shape(src) != to.shape(index):
            part = [n for size in to.shape(index) for n in (0, 1, size)]
            value = to.add("slice", [value], part, dtype=dtype)
    else:
        number = to.constant(np.array(src, to.result().dtype.numpy))
        value = to.add("expand", [number], to.shape(index), dtype=dtype)
    to.give("scatter", [to.value(x), value, _positions(to, index)], [dim % len(to.shape(x))])


def indexed(to: Model, x: Any, index: Any, dims: Any) -> None:
    to.give("take", [to.value(x), _positions(to, index)], dims)


def picked(to: Model, x: Any, target: Any, ignore: Any) -> None:
    """Of each column (n, classes, ...) the class that the target (n, ...) names."""
    if ignore is not None:
        raise Unsupported("targets of which some are ignored")
    n, *rest = to.shape(target)
    index = to.add("reshape", [_positions(to, target)], to.sizes((n, 1, *rest)), dtype="int64")
    found = to.add("gather", [to.value(x), index], [1], dtype=to.dtype(x))
    to.give("reshape", [found], to.sizes(to.result().shape))


def one_hot(to: Model, x: Any, count: int) -> None:
    to.give("one_hot", [_positions(to, x)], [count])


def _positions(to: Model, index: Any) -> int:
    if to.dtype(index) != "int64":
        raise Unsupported(f"positions of {to.dtype(index)}")
    return to.value(index)


def contiguous(to: Model, x: Any) -> None:
    to.give("contiguous", [to.value(x)])


def joined(to: Model, xs: tuple, dim: int) -> None:
    to.give("join", to.values(*xs), [dim % len(to.shape(xs[0])), 0])


def stacked(to: Model, xs: tuple, dim: int) -> None:
    to.give("join", to.values(*xs), [dim % (len(to.shape(xs[0])) + 1), 1])


def converted(to: Model, x: Any) -> None:
    name = to.result().dtype.name
    if name not in file.TYPES or "bfloat16" in (name, to.dtype(x)):
        raise Unsupported(f"conversions of {to.dtype(x)} to {name}")
    to.give("cast", [to.value(x)], [file.TYPES[name]])
