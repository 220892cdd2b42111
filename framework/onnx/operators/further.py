"""Operators of quantised numbers, signals, text counts, sequences and control flow."""

import math
from typing import Any

import numpy as np

import framework as fw
from framework import Tensor

from .images import conv
from .table import dtype_of, ints, number, op

# -- quantised ----------------------------------------------------------------------------------------


def _along(scale: Tensor, x: Tensor, axis: int, block: int) -> Tensor:
    """A scale for all, for each element of an axis, or for each block along it, spread over ``x``."""
    if scale.ndim == 0 or scale.numel() == 1 and scale.ndim <= 1:
        return scale.reshape([])
    if block:
        return scale.repeat_interleave(block, axis).narrow(axis, 0, x.shape[axis])
    return scale.reshape([-1 if i == axis % x.ndim else 1 for i in range(x.ndim)])


@op("QuantizeLinear")
def quantize(x: Tensor, scale: Tensor, zero: Any = None, *, axis: int = 1, block_size: int = 0,
             output_dtype: int = 0,
             precision: int = 0, saturate: int = 1) -> Tensor:
    dtype = zero.dtype if zero is not None else dtype_of(output_dtype) if output_dtype else fw.uint8
    y = fw.round(x.to(scale.dtype) / _along(scale, x, axis, block_size))
    if zero is not None:
        y = y + _along(zero, x, axis, block_size).to(y.dtype)
    info = np.iinfo(dtype.numpy)
    return fw.clamp(y, info.min, info.max).to(dtype)


@op("DequantizeLinear")
def dequantize(x: Tensor, scale: Tensor, zero: Any = None, *, axis: int = 1, block_size: int = 0,
               output_dtype: int = 0) -> Tensor:
    y = x.to(fw.int32)
    if zero is not None:
        y = y - _along(zero, x, axis, block_size).to(fw.int32)
    return (y.to(scale.dtype) * _along(scale, x, axis, block_size)).to(
        dtype_of(output_dtype) if output_dtype else scale.dtype)


def _shifted(x: Tensor, zero: Any, dims: int = 0) -> Tensor:
    y = x.to(fw.int32)
    if zero is None:
        return y
    z = zero.to(fw.int32)
    return y - (z.reshape(-1, *[1] * dims) if z.ndim and z.numel() > 1 and dims else z)


@op("MatMulInteger")
def matmul_integer(a: Tensor, b: Tensor, a_zero: Any = None, b_zero: Any = None) -> Tensor:
    if a_zero is not None and a_zero.ndim and a_zero.numel() > 1:  # one for each row
        a_zero = a_zero.unsqueeze(-1)
    return fw.matmul(_shifted(a, a_zero), _shifted(b, b_zero))


def _requantised(y: Tensor, scale: Tensor, zero: Tensor) -> Tensor:
    info = np.iinfo(zero.dtype.numpy)
    return fw.clamp(fw.round(y * scale) + zero.to(y.dtype), info.min, info.max).to(zero.dtype)


@op("QLinearMatMul")
def qlinear_matmul(a: Tensor, a_scale: Tensor, a_zero: Tensor, b: Tensor, b_scale: Tensor, b_zero: Tensor,
                   y_scale: Tensor, y_zero: Tensor) -> Tensor:
    y = matmul_integer(a, b, a_zero, b_zero).to(fw.float32)
    scale = (a_scale.to(fw.float32) * b_scale.to(fw.float32)) / y_scale.to(fw.float32)
    return _requantised(y, scale, y_zero)


@op("ConvInteger")
def conv_integer(x: Tensor, w: Tensor, x_zero: Any = None, w_zero: Any = None, **settings: Any) -> Tensor:
    x, w = _shifted(x, x_zero).to(fw.float64), _shifted(w, w_zero, w.ndim - 1).to(fw.float64)
    return fw.round(conv(x, w, **settings)).to(fw.int32)


@op("QLinearConv")
def qlinear_conv(x: Tensor, x_scale: Tensor, x_zero: Tensor, w: Tensor, w_scale: Tensor, w_zero: Tensor,
                 y_scale: Tensor, y_zero: Tensor, b: Any = None, **settings: Any) -> Tensor:
    y = conv_integer(x, w, x_zero, w_zero, **settings).to(fw.float32)
    shape = (-1, *[1] * (x.ndim - 2))
    y = y if b is None else y + b.to(fw.float32).reshape(shape)
    scale = x_scale * w_scale / y_scale
    return _requantised(y, scale.reshape(shape) if scale.numel() > 1 else scale, y_zero)


@op("DynamicQuantizeLinear")
def dynamic_quantize(x: Tensor, *, outputs: int = 3) -> Any:
    low, high = fw.clamp(x.min(), max=0), fw.clamp(x.max(), min=0)
    scale = (high - low) / 255
    zero = fw.clamp(fw.round(-low / scale), 0, 255).to(fw.uint8)
    return (quantize(x, scale, zero), scale, zero)[:outputs]


# -- signals --------------------------------------------------------------------------------------------


def dft(x: Tensor, length: Any = None, at: Any = None, *, axis: int | None = None, inverse: int = 0,
        onesided: int = 0) -> Tensor:
    if x.dtype is fw.float32:  # zeros are wanted as exact sums give them, to 1e-7
        return dft(x.double(), length, at, axis=axis, inverse=inverse, onesided=onesided).float()
    d = int(number(at, axis if axis is not None else -2 if at is None and axis is None else 1))
    d = d % x.ndim if d >= 0 else (d + x.ndim)
    n = number(length)
    if inverse and onesided:
        z = fw.view_as_complex(x.contiguous())
        return fw.fft.irfft(z, n, d).unsqueeze(-1)
    z = fw.view_as_complex(x.contiguous()) if x.shape[-1] == 2 else x.squeeze(-1)
    y = (fw.fft.ifft if inverse else fw.fft.fft)(z, n, d)
    if onesided:
        y = y.narrow(d, 0, y.shape[d] // 2 + 1)
    return fw.view_as_real(y.contiguous())


@op("DFT", since=17)
def dft_17(x: Tensor, length: Any = None, *, axis: int = 1, inverse: int = 0, onesided: int = 0) -> Tensor:
    return dft(x, length, axis=axis, inverse=inverse, onesided=onesided)


@op("DFT", since=20)
def dft_20(x: Tensor, length: Any = None, at: Any = None, *, inverse: int = 0, onesided: int = 0) -> Tensor:
    return dft(x, length, axis=number(at, -2), inverse=inverse, onesided=onesided)


@op("STFT")
def stft(x: Tensor, step: Tensor, window: Any = None, length: Any = None, *, onesided: int = 1) -> Tensor:
    n = int(number(length)) if length is not None else window.shape[0]
    hop = int(number(step))
    count = (x.shape[1] - n) // hop + 1
    frames = fw.stack([x[:, i * hop:i * hop + n] for i in range(count)], 1)
    if frames.ndim == 3:
        frames = frames.unsqueeze(-1)
    if window is not None:
        frames = frames * window.reshape(1, 1, -1, 1)
    return dft(frames, axis=2, onesided=onesided)


def _window(name: str, *terms: float) -> None:
    @op(name)
    def window(size: Tensor, *, output_datatype: int = 1, periodic: int = 1) -> Tensor:
        n = int(number(size))
        angle = 2 * math.pi * np.arange(n) / (n if periodic else n - 1)
        y = sum(term * np.cos(k * angle) for k, term in enumerate(terms))
        return fw.from_numpy(np.asarray(y)).to(dtype_of(output_datatype))


_window("HannWindow", 0.5, -0.5)
_window("HammingWindow", 25 / 46, -21 / 46)
_window("BlackmanWindow", 0.42, -0.5, 0.08)


@op("MelWeightMatrix")
def mel_weights(bins: Tensor, length: Tensor, rate: Tensor, low: Tensor, high: Tensor, *,
                output_datatype: int = 1) -> Tensor:
    count, n = int(number(bins)), int(number(length))
    spectrum = n // 2 + 1
    mel = 2595 * np.log10(1 + np.array([number(low), number(high)], float) / 700)
    points = mel[0] + np.arange(count + 2) * (mel[1] - mel[0]) / (count + 2)
    places = np.floor((n + 1) * (700 * (10 ** (points / 2595) - 1)) / number(rate)).astype(int)
    out = np.zeros((spectrum, count))
    for i in range(count):
        a, b, c = places[i:i + 3]
        if b == a:
            out[b, i] = 1
        else:
            for j in range(a, b + 1):
                out[j, i] = (j - a) / (b - a)
        if c > b:
            for j in range(b, c):
                out[j, i] = (c - j) / (c - b)
    return fw.from_numpy(out).to(dtype_of(output_datatype))


# -- counts of n-grams, trees, tables -----------------------------------------------------------------------


@op("TfIdfVectorizer")
def tf_idf(x: Tensor, *, max_gram_length: int, max_skip_count: int, min_gram_length: int, mode: str,
           ngram_counts: list, ngram_indexes: list, pool_int64s: Any = None, pool_strings: Any = None,
           weights: Any = None) -> Tensor:
    grams, k = {}, 0
    bounds = [*ngram_counts, len(pool_int64s)]
    for n in range(1, len(ngram_counts) + 1):
        for i in range(bounds[n - 1], bounds[n], n):
            grams[tuple(pool_int64s[i:i + n])] = k
            k += 1
    rows = x.reshape(1, -1).tolist() if x.ndim == 1 else x.tolist()
    out = np.zeros((len(rows), max(ngram_indexes) + 1), np.float32)
    for r, row in enumerate(rows):
        for n in range(min_gram_length, max_gram_length + 1):
            for skip in range(1 if n == 1 else max_skip_count + 1):
                for start in range(len(row) - (n - 1) * (skip + 1)):
                    gram = tuple(int(v) for v in row[start:start + (n - 1) * (skip + 1) + 1:skip + 1])
                    if gram in grams and len(gram) == n:
                        out[r, ngram_indexes[grams[gram]]] += 1
    if mode != "TF":
        factor = np.ones(out.shape[1], np.float32)
        if weights is not None:
            factor[np.array(ngram_indexes)] = weights
        out = (out if mode == "TFIDF" else (out > 0)) * factor
    return fw.from_numpy(out.astype(np.float32)[0] if x.ndim == 1 else out.astype(np.float32))


@op("ArrayFeatureExtractor", domain="ai.onnx.ml")
def array_feature_extractor(x: Tensor, index: Tensor) -> Tensor:
    y = fw.index_select(x, -1, index.reshape(-1).to(fw.int64))
    return y.reshape(1, -1) if x.ndim == 1 else y


@op("Binarizer", domain="ai.onnx.ml")
def binarizer(x: Tensor, *, threshold: float = 0.0) -> Tensor:
    return (x > threshold).to(x.dtype)


# -- optimizers --------------------------------------------------------------------------------------------

_TRAINING = "ai.onnx.preview.training"


@op("Momentum", domain=_TRAINING)
def momentum_(r: Tensor, t: Tensor, *xs: Tensor, alpha: float, beta: float, mode: str,
              norm_coefficient: float,
              outputs: int = 2) -> tuple:
    n = len(xs) // 3
    new, speeds = [], []
    for x, g, v in zip(xs[:n], xs[n:2 * n], xs[2 * n:]):
        g = norm_coefficient * x + g
        v = alpha * v + (beta if number(t) > 0 else 1.0) * g
        step = g + alpha * v if mode == "nesterov" else v
        new.append(x - r * step)
        speeds.append(v)
    return (*new, *speeds)


@op("Adagrad", domain=_TRAINING)
def adagrad(r: Tensor, t: Tensor, *xs: Tensor, decay_factor: float = 0.0, epsilon: float = 1e-6,
            norm_coefficient: float = 0.0, outputs: int = 2) -> tuple:
    n = len(xs) // 3
    rate = r / (1 + t.to(r.dtype) * decay_factor)
    new, sums = [], []
    for x, g, h in zip(xs[:n], xs[n:2 * n], xs[2 * n:]):
        g = norm_coefficient * x + g
        h = h + g * g
        new.append(x - rate * g / (fw.sqrt(h) + epsilon))
        sums.append(h)
    return (*new, *sums)


@op("Adam", domain=_TRAINING)
def adam(r: Tensor, t: Tensor, *xs: Tensor, alpha: float = 0.9, beta: float = 0.999, epsilon: float = 1e-6,
         norm_coefficient: float = 0.0, norm_coefficient_post: float = 0.0, outputs: int = 3) -> tuple:
    n, step = len(xs) // 4, number(t)
    rate = r * math.sqrt(1 - beta ** step) / (1 - alpha ** step) if step else r
    new, firsts, seconds = [], [], []
    for x, g, v, h in zip(xs[:n], xs[n:2 * n], xs[2 * n:3 * n], xs[3 * n:]):
        g = norm_coefficient * x + g
        v, h = alpha * v + (1 - alpha) * g, beta * h + (1 - beta) * g * g
        y = x - rate * v / (fw.sqrt(h) + epsilon)
        new.append((1 - norm_coefficient_post) * y)
        firsts.append(v)
        seconds.append(h)
    return (*new, *firsts, *seconds)


# -- sequences and optional values
# ----------------------------------------------------------------------------


@op("SequenceEmpty")
def sequence_empty(*, dtype: int = 1) -> list:
    return []


@op("SequenceConstruct")
def sequence_construct(*xs: Tensor) -> list:
    return list(xs)


@op("SequenceInsert")
def sequence_insert(items: list, x: Tensor, at: Any = None) -> list:
    place = len(items) if at is None else int(number(at))
    place += len(items) if place < 0 else 0
    return [*items[:place], x, *items[place:]]


@op("SequenceErase")
def sequence_erase(items: list, at: Any = None) -> list:
    place = (len(items) - 1 if at is None else int(number(at))) % len(items)
    return [*items[:place], *items[place + 1:]]


@op("SequenceAt")
def sequence_at(items: list, at: Tensor) -> Tensor:
    return items[int(number(at))]


@op("SequenceLength")
def sequence_length(items: list) -> Tensor:
    return fw.tensor(len(items), dtype=fw.int64)


@op("SplitToSequence")
def split_to_sequence(x: Tensor, split: Any = None, *, axis: int = 0, keepdims: int = 1) -> list:
    if split is None:
        parts = list(fw.split(x, 1, axis))
        return parts if keepdims else [p.squeeze(axis) for p in parts]
    return list(fw.split(x, ints(split) if split.ndim else int(number(split)), axis))


@op("ConcatFromSequence")
def concat_from_sequence(items: list, *, axis: int, new_axis: int = 0) -> Tensor:
    return fw.stack(items, axis) if new_axis else fw.cat(items, axis)


@op("Optional")
def optional(x: Any = None, *, type: Any = None) -> Any:
    return x


@op("OptionalHasElement")
def optional_has_element(x: Any = None) -> Tensor:
    return fw.tensor(x is not None)


@op("OptionalGetElement")
def optional_get_element(x: Any) -> Any:
    return x


# -- control flow
# ----------------------------------------------------------------------------------------------


@op("If")
def if_(condition: Tensor, *, then_branch: Any, else_branch: Any, run: Any, outputs: int = 1) -> Any:
    found = run(then_branch if number(condition) else else_branch, ())
    return found[0] if outputs == 1 else tuple(found)


@op("Loop")
def loop(most: Any, condition: Any, *states: Any, body: Any, run: Any, outputs: int = 1) -> Any:
    n = None if most is None else int(number(most))
    going = True if condition is None else bool(number(condition))
    kept: list[Any] = list(states)
    scans: list[list] = [[] for _ in range(outputs - len(states))]
    i = 0
    while going and (n is None or i < n):
        found = run(body, (fw.tensor(i, dtype=fw.int64), fw.tensor(True), *kept))
        going = bool(number(found[0]))
        kept = list(found[1:1 + len(kept)])
        for scan, x in zip(scans, found[1 + len(kept):]):
            scan.append(x)
        i += 1
    stacked = [fw.stack(s) if s else fw.zeros(0) for s in scans]
    results = (*kept, *stacked)
    return results[0] if outputs == 1 else results


@op("Scan", since=9)
def scan(*xs: Tensor, body: Any, num_scan_inputs: int, scan_input_axes: Any = None,
         scan_input_directions: Any = None,
         scan_output_axes: Any = None, scan_output_directions: Any = None, run: Any, outputs: int = 1) -> Any:
    split = len(xs) - num_scan_inputs
    kept, along = list(xs[:split]), xs[split:]
    axes = scan_input_axes or [0] * num_scan_inputs
    turned = scan_input_directions or [0] * num_scan_inputs
    steps = along[0].shape[axes[0]]
    scans: list[list] = [[] for _ in range(outputs - split)]
    for t in range(steps):
        parts = [x.select(a, steps - 1 - t if back else t) for x, a, back in zip(along, axes, turned)]
        found = run(body, (*kept, *parts))
        kept = list(found[:split])
        for s, x in zip(scans, found[split:]):
            s.append(x)
    out_axes = scan_output_axes or [0] * len(scans)
    back = scan_output_directions or [0] * len(scans)
    stacked = [fw.stack(s[::-1] if b else s, a) for s, a, b in zip(scans, out_axes, back)]
    results = (*kept, *stacked)
    return results[0] if outputs == 1 else results


@op("Scan", since=8)
def scan_8(lengths: Any, *xs: Tensor, body: Any, num_scan_inputs: int, directions: Any = None, run: Any,
           outputs: int = 1) -> Any:
    rows = []
    for b in range(xs[0].shape[0]):
        found = scan(*[x[b] for x in xs], body=body, num_scan_inputs=num_scan_inputs,
                     scan_input_directions=directions, run=run, outputs=outputs)
        rows.append(found if isinstance(found, tuple) else (found,))
    results = tuple(fw.stack(part) for part in zip(*rows))
    return results[0] if outputs == 1 else results


