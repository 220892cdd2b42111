"""Convolution and pooling as steps (see ``shapes.py`` for what the functions take)."""

from typing import Any

from ...onnx.sizes import Extent, Varies
from .model import Model, Unsupported


def conv(to: Model, x: Any, w: Any, b: Any, stride: Any, padding: Any, dilation: Any, groups: int,
         norm: tuple = (None, None, None, None), eps: float = 0.0, relu: bool = False) -> None:
    """A convolution, then the norm (mean, var, weight, bias) if there is one, then relu."""
    if any(not isinstance(part, (tuple, list)) for part in (stride, padding, dilation)):
        raise Unsupported(f"padding {padding}")
    to.give("conv", to.values(x, w, b, *norm),
            [len(stride), *stride, *padding, *dilation, groups, int(relu)], [float(eps)])


def max_pool(to: Model, x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, out: Any) -> None:
    counts = _windows(to, x, kernel, stride, padding, dilation, out)
    to.give("max_pool", [to.value(x)], [len(kernel), *kernel, *stride, *padding, *dilation, *counts])


def mean_pool(to: Model, x: Any, kernel: Any, stride: Any, padding: Any, out: Any, include: bool,
              divisor: int | None) -> None:
    dilation = [1] * len(kernel)
    counts = _windows(to, x, kernel, stride, padding, dilation, out)
    to.give("mean_pool", [to.value(x)],
            [len(kernel), *kernel, *stride, *padding, *dilation, *counts, int(include), divisor or 0])


def _windows(to: Model, x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, out: Any) -> list:
    """How many windows there are, or the rule that gives it (INSIDE, BEGINNING in ``images.cpp``)."""
    counts: list = []
    for size, k, s, p, d, n in zip(to.shape(x)[-len(kernel):], kernel, stride, padding, dilation, out):
        if isinstance(n, Extent) and all(isinstance(given, int) for given in (k, s, p, d)):
            room = [a + 2 * p - d * (k - 1) - 1 for a in getattr(size, "at", [size] * len(n.at))]
            n = -1 if n.at == tuple(r // s + 1 for r in room) else -2  # the model is run and compared later
        counts.append(n)
    return counts


def transposed(to: Model, y: Any, w: Any, x_shape: Any, stride: Any, padding: Any, dilation: Any,
               groups: int) -> None:
    to.give("transposed", to.values(y, w),
            [len(stride), *stride, *padding, *dilation, groups, *to.result().shape[2:]])


def padded(to: Model, x: Any, pads: Any, value: Any) -> None:
    numbers: list = []
    for sides, n, size in zip(pads, to.shape(x), to.result().shape):
        numbers += [_before(sides[0], n, size), size]
    to.give("pad", [to.value(x)], numbers, [float(value)])


def _before(first: Any, n: Any, size: Any) -> Any:
    """How many elements come before, or the part of those that are added (see ``elements.cpp``)."""
    if isinstance(first, Extent):
        more = [b - a for a, b in zip(*[getattr(s, "at", [s] * len(first.at)) for s in (n, size)])]
        for code, part in ((-1, more), (-2, [m // 2 for m in more]), (-3, [m - m // 2 for m in more])):
            if first.at == tuple(part):
                return code
    return first


def columns(to: Model, x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any) -> None:
    """The elements of every window, one channel after another: (n, channels * kernel, windows)."""
    value, dtype = to.value(x), to.dtype(x)
    sizes = [n for p, size in zip(padding, to.shape(x)[2:]) for n in (p, size + 2 * p)]
    value = to.add("pad", [value], [0, to.shape(x)[0], 0, to.shape(x)[1], *sizes], [0.0], dtype=dtype)
    for dim, (k, s, d) in enumerate(zip(kernel, stride, dilation), 2):
        value = to.add("windows", [value], [dim, k, s, d], dtype=dtype)
    value = to.add("permute", [value], [0, 1, 4, 5, 2, 3], dtype=dtype)
    to.give("reshape", [value], to.sizes(to.result().shape))


def resampled(to: Model, x: Any, dim: int, plan: Any, back: bool) -> None:
    """Resizing, or padding with elements, along a dimension."""
    if back:
        raise Unsupported("the gradient of resampling")
    to.give("resample", [to.value(x)], *_resampling(to, dim, plan, None))


def interpolated(to: Model, x: Any, scale_factor: Any, plans: Any) -> None:
    """Resizing along one dimension after another, by factors where these were given."""
    scales = scale_factor if isinstance(scale_factor, (tuple, list)) else [scale_factor] * len(plans)
    wanted = [(dim, plan, scale) for dim, (plan, scale) in enumerate(zip(plans, scales), 2)
              if plan.size != plan.out or plan.step != 1.0]
    value = to.value(x)
    for dim, plan, scale in wanted[:-1]:
        value = to.add("resample", [value], *_resampling(to, dim, plan, scale), dtype=to.dtype(x))
    if wanted:
        to.give("resample", [value], *_resampling(to, *wanted[-1]))
    else:
        to.same(value)


def _resampling(to: Model, dim: int, plan: Any, scale: Any) -> tuple[list, list, list]:
    """The numbers, reals and words of a step; scale: the factor of sizes that follow in no simpler way."""
    how, step, out = 0, plan.step, plan.out
    if isinstance(step, Varies):
        sizes = [getattr(n, "at", [n] * len(step.values)) for n in (plan.size, plan.out)]
        if all(v == a / max(b, 1) for v, a, b in zip(step.values, *sizes)):
            how, step = 1, 0.0
        elif all(v == (a - 1) / max(b - 1, 1) for v, a, b in zip(step.values, *sizes)):
            how, step = 2, 0.0
        else:
            raise Unsupported("a scale that differs with the sizes in a way that is not followed")
    if isinstance(out, Extent) and isinstance(scale, (int, float)):
        out = -1
    else:
        scale = 0.0
    return [dim, out, plan.offset, how], [float(step), float(scale)], [plan.kind]


def sampled(to: Model, x: Any, grid: Any, mode: str, padding: str, align: bool) -> None:
    to.give("grid_sample", to.values(x, grid), [int(align)], (), [mode, padding])


def adaptive_max(to: Model, x: Any, out: Any) -> None:
    to.give("adaptive_max", [to.value(x)], out)


def channels_last(to: Model, x: Any) -> None:
    """A copy with the channels side by side."""
    n = len(to.shape(x))
    dtype = to.dtype(x)
    turned = to.add("permute", [to.value(x)], [0, *range(2, n), 1], dtype=dtype)
    to.give("permute", [to.add("contiguous", [turned], dtype=dtype)], [0, n - 1, *range(1, n - 1)])


def int8_conv(to: Model, x: Any, w: Any, scale: Any, b: Any, stride: Any, padding: Any, dilation: Any,
              groups: int, input_scale: float | None, input_zero: int) -> None:
    _of_float32(to, x)
    n = len(stride) + 2
    kernels = to.add("permute", [to.value(w)], [0, *range(2, n), 1], dtype="int8")
    to.give("int8_conv", [to.value(x), kernels, *to.values(scale, b)],
            [n - 2, *stride, *padding, *dilation, groups, input_zero], [input_scale or 0.0])


def int8_linear(to: Model, x: Any, w: Any, scale: Any, b: Any, input_scale: float | None,
                input_zero: int) -> None:
    _of_float32(to, x)
    to.give("int8_linear", to.values(x, w, scale, b), [input_zero], [input_scale or 0.0])


def _of_float32(to: Model, x: Any) -> None:
    if to.dtype(x) != "float32":
        raise Unsupported(f"activations of {to.dtype(x)}")
