"""Views, joined and moved elements as steps: what records name in their ``runtime``.

Every function takes the model under way, then operands (``Ref``, or a number, or None) and settings as they
stand in the record's expression.
"""

from typing import Any

from ...onnx.sizes import Extent
from .. import format as file
from .model import Model, Unsupported


def reshaped(to: Model, x: Any) -> None:
    to.give("reshape", [to.value(x)], to.result().shape)


def expanded(to: Model, x: Any) -> None:
    to.give("expand", [to.value(x)], to.result().shape)


def permuted(to: Model, x: Any, dims: Any) -> None:
    to.give("permute", [to.value(x)], [d % len(dims) for d in dims])


def sliced(to: Model, x: Any, key: Any) -> None:
    shape, numbers, out = to.shape(x), [], iter(to.result().shape)
    key = key if isinstance(key, tuple) else (key,)
    if len(key) > len(shape) or not all(isinstance(k, (slice, int, Extent)) for k in key):
        raise Unsupported(f"the key {key}")
    for n, k in zip(shape, (*key, *[slice(None)] * (len(shape) - len(key)))):
        if isinstance(k, slice):
            by = 1 if k.step is None else k.step
            if not isinstance(by, int):
                raise Unsupported(f"the key {key}")
            first = k.start if k.start is not None else 0 if by > 0 else n - 1
            if isinstance(first, int) and first < 0:
                first = n + first
            numbers += [first, by, next(out)]
        else:
            numbers += [n + k if isinstance(k, int) and k < 0 else k, 1, -1]
    to.give("slice", [to.value(x)], numbers)


def contiguous(to: Model, x: Any) -> None:
    to.give("contiguous", [to.value(x)])


def joined(to: Model, xs: tuple, dim: int) -> None:
    to.give("join", to.values(*xs), [dim % len(to.shape(xs[0])), 0])


def stacked(to: Model, xs: tuple, dim: int) -> None:
    to.give("join", to.values(*xs), [dim % (len(to.shape(xs[0])) + 1), 1])


def converted(to: Model, x: Any) -> None:
    name = to.result().dtype.name
    if name not in ("float32", "float64"):
        raise Unsupported(f"conversions to {name}")
    to.give("cast", [to.value(x)], [file.TYPES[name]])
