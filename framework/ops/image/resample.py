"""Resampling along one dimension: each output element is a weighted sum of a few input elements.

A ``Plan`` says which; run backward it is the record's own derivative. Reflecting, repeating and wrapping pads
and every kind of interpolation are this one record.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ... import _native
from ...backends import cuda, device_code
from ...memory_formats import back as before
from ...memory_formats import format_of, order
from ..record.batched import merged
from ..record.op import Meta, Op
from ..record.road import NEVER, row_major
from ..record.rounded import in_float32, is_half


class Plan(NamedTuple):
    """Which input elements make each output element along one dimension.

    kind: a key of ``_KINDS``. size, out: elements before and after. step: input elements per output
    element, for interpolation. offset: elements added in front, for padding.
    """

    kind: str
    size: int
    out: int
    step: float = 1.0
    offset: int = 0


def _nearest(p: Plan) -> list:
    i = np.arange(p.out)
    index = i * p.size // max(p.out, 1) if p.step == p.size / max(p.out, 1) else np.floor(i * p.step)
    return [(np.minimum(index, p.size - 1), None)]


def _nearest_exact(p: Plan) -> list:
    return [(np.minimum(np.floor((np.arange(p.out) + 0.5) * p.step), p.size - 1), None)]


def _linear(p: Plan, corners: bool = False) -> list:
    i = np.arange(p.out)
    at = i * p.step if corners else np.maximum((i + 0.5) * p.step - 0.5, 0)
    low = np.minimum(np.floor(at), p.size - 1)
    share = at - low
    return [(low, 1 - share), (np.minimum(low + 1, p.size - 1), share)]


def _cubic(p: Plan, corners: bool = False) -> list:
    """Keys' cubic convolution with a = -0.75 (R. Keys, 1981)."""
    a, i = -0.75, np.arange(p.out)
    at = i * p.step if corners else (i + 0.5) * p.step - 0.5
    low = np.floor(at)
    t = at - low

    def near(s: Any) -> Any:
        return ((a + 2) * s - (a + 3)) * s * s + 1

    def far(s: Any) -> Any:
        return ((a * s - 5 * a) * s + 8 * a) * s - 4 * a
    weights = far(t + 1), near(t), near(1 - t), far(2 - t)
    return [(np.clip(low + k - 1, 0, p.size - 1), w) for k, w in enumerate(weights)]


def _smooth(p: Plan, reach: int, filter: Callable) -> list:
    """A filter as wide as the output element where the image shrinks, so that no input is passed over."""
    wide = max(p.step, 1.0)
    centre = (np.arange(p.out) + 0.5) * p.step
    low = np.maximum((centre - reach * wide + 0.5).astype(np.int64), 0)
    high = np.minimum((centre + reach * wide + 0.5).astype(np.int64), p.size)
    at = low + np.arange(int((high - low).max(initial=0)))[:, None]
    weights = np.where(at < high, filter(np.abs(at - centre + 0.5) / wide), 0.0)
    return list(zip(np.minimum(at, p.size - 1), weights / weights.sum(axis=0)))


def _tent(t: Any) -> Any:
    return np.maximum(1 - t, 0)


def _keys(t: Any) -> Any:
    """Keys' cubic with a = -0.5, as image libraries shrink with."""
    far = np.where(t < 2, ((-0.5 * t + 2.5) * t - 4) * t + 2, 0)
    return np.where(t < 1, (1.5 * t - 2.5) * t * t + 1, far)


def _area(p: Plan) -> list:
    i = np.arange(p.out)
    low, high = i * p.size // p.out, -(-(i + 1) * p.size // p.out)
    most = int((high - low).max(initial=0))
    return [(np.minimum(low + k, high - 1), np.where(low + k < high, 1 / (high - low), 0.0))
            for k in range(most)]


def _padding(fold: Callable) -> Callable:
    return lambda p: [(fold(np.arange(-p.offset, p.out - p.offset), p.size), None)]


def _reflect(i: Any, size: int) -> Any:
    return (size - 1) - np.abs((size - 1) - np.abs(i))


_KINDS: dict[str, Callable[[Plan], list]] = {
    "nearest": _nearest, "nearest-exact": _nearest_exact, "area": _area, "linear": _linear,
    "linear-corners": lambda p: _linear(p, True), "cubic": _cubic,
    "cubic-corners": lambda p: _cubic(p, True), "linear-smooth": lambda p: _smooth(p, 1, _tent),
    "cubic-smooth": lambda p: _smooth(p, 2, _keys), "reflect": _padding(_reflect),
    "replicate": _padding(lambda i, size: np.clip(i, 0, size - 1)),
    "circular": _padding(lambda i, size: i % size),
}


@lru_cache(maxsize=512)
def taps(plan: Plan, back: bool) -> list:
    """[(index of one input element, its weight or None for 1), ...] for every output element."""
    taps = [(np.asarray(i, np.int64), w) for i, w in _KINDS[plan.kind](plan)]
    return _turned(taps, plan.size, plan.out) if back else taps


def _turned(taps: list, size: int, out: int) -> list:
    """The taps of the transposed map: every input element gathers from where it was used.

    Elements used less often than others take part with weight 0 (at an element they do use, or any).
    """
    source = np.concatenate([np.arange(out)] * len(taps))
    target = np.concatenate([i for i, _ in taps])
    weight = np.concatenate([np.ones(out) if w is None else w for _, w in taps])
    source, target, weight = source[weight != 0], target[weight != 0], weight[weight != 0]
    order = np.argsort(target, kind="stable")
    source, target, weight = source[order], target[order], weight[order]
    counts = np.bincount(target, minlength=size)
    first = np.concatenate([[0], np.cumsum(counts)])[:-1]
    turned = []
    for k in range(int(counts.max(initial=0))):
        at = np.minimum(first + np.minimum(k, np.maximum(counts - 1, 0)), len(source) - 1)
        turned.append((source[at], np.where(k < counts, weight[at], 0.0)))
    return turned


@lru_cache(maxsize=512)
def lists(plan: Plan, back: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The taps element by element, as the native kernel reads them: where the list of each begins, then the
    positions and the weights of all."""
    found = taps(plan, back)
    count = plan.size if back else plan.out
    if not found:
        return np.zeros(count + 1, np.int64), np.zeros(0, np.int64), np.zeros(0)
    index = np.stack([i for i, _ in found], 1)
    weight = np.stack([np.ones(len(i)) if w is None else w for i, w in found], 1)
    there = weight != 0
    return np.concatenate([[0], np.cumsum(there.sum(1))]), index[there], weight[there]


_native_resample: Any = getattr(_native.module, "resample", None)


def _resample_cpu(x: Any, *, dim: int, plan: Plan, back: bool) -> Any:
    if _native_resample is not None:
        out = _native_resample(x, dim, *lists(plan, back))
        if out is not NotImplemented:
            return out
        if is_half(x):
            return in_float32(_resample_cpu, x, dim=dim, plan=plan, back=back)
    return _resample_kernel(np, x, dim=dim, plan=plan, back=back)


def _resample_kernel(xp: Any, x: Any, *, dim: int, plan: Plan, back: bool) -> Any:
    out = None
    for index, weight in taps(plan, back):
        part = xp.take(x, xp.asarray(index), axis=dim)
        if weight is not None:
            part *= xp.asarray(weight.astype(x.dtype)).reshape(-1, *(1,) * (x.ndim - 1 - dim))
        if out is None:
            out = part
        else:
            out += part
    if out is None:
        out = xp.zeros(x.shape[:dim] + (plan.size if back else plan.out,) + x.shape[dim + 1:], x.dtype)
    return row_major(out)


def _resample_infer(x: Meta, *, dim: int, plan: Plan, back: bool) -> Meta:
    return Meta(x.shape[:dim] + (plan.size if back else plan.out,) + x.shape[dim + 1:], x.dtype)


_SOURCE = device_code.source(Path(__file__).with_name("resample.cu"))


class _Tables:
    """The lists of a plan in the memory of a device, and when the stream that made them has copied them."""

    def __init__(self, module: Any, plan: Plan, back: bool) -> None:
        cuda.refuse_in_capture("a copy of the positions to interpolate at", "run it once before the capture")
        self.arrays = tuple([module.asarray(a) for a in lists(plan, back)])
        stream = module.cuda.get_current_stream()
        self.stream, self.copied = stream.ptr, stream.record()

    def here(self, module: Any) -> tuple:
        """The lists, for kernels of the current stream."""
        stream = module.cuda.get_current_stream()
        if self.copied is not None and stream.ptr != self.stream:
            if cuda.capture_here() is not None:  # what is recorded cannot wait for what is not
                self.copied.synchronize()
            if self.copied.done:
                self.copied = None
            else:
                stream.wait_event(self.copied)
        return self.arrays


@lru_cache(maxsize=512)
def _on_device(module: Any, device: int, plan: Plan, back: bool) -> _Tables:
    return _Tables(module, plan, back)


def _resample_device(x: Any, *, dim: int, plan: Plan, back: bool) -> Any:
    """The device function: a thread for each result. What has its channels last keeps them there."""
    if format_of(x).ndim == x.ndim:
        axes = order(x.ndim)
        turned = _resample_device(x.transpose(axes), dim=axes.index(dim), plan=plan, back=back)
        return turned if turned is NotImplemented else turned.transpose(before(x.ndim))
    char, outs = device_code.char_of(x), plan.size if back else plan.out
    if char not in device_code.FLOATS or not x.size or not outs:
        return NotImplemented
    module = cuda.cupy()
    tables = _on_device(module, int(x.device.id), plan, back).here(module)
    out = module.empty((*x.shape[:dim], outs, *x.shape[dim + 1:]), x.dtype)
    _SOURCE.kernel("resample", char)(
        (device_code.blocks(out.size),), (device_code.THREADS,),
        (out, module.ascontiguousarray(x), *tables, x.shape[dim], outs, math.prod(x.shape[dim + 1:]),
         out.size))
    return out


resample = Op("resample", "x", onnx="resampled(x, dim, plan, back)", runtime="resampled(x, dim, plan, back)",
              device=_resample_device,
              batch=merged(), kernel=_resample_kernel, cpu=_resample_cpu, infer=_resample_infer, jvp="linear",
              loose_from=NEVER,
              vjp={"x": lambda g, dim, plan, back: resample(g, dim=dim, plan=plan, back=not back)})
