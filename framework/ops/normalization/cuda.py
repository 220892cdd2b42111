"""Norms on GPUs: one kernel forward; backward one for the input, and folds for weights that rows share.

Batch norms of channels that lie side by side go to cuDNN where it is installed and has a plan: here one block
sums up a channel, whose numbers should lie together.
"""

import math
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...backends import cuda, cudnn_graphs, device_code, device_launcher, on_device
from ...memory_formats import format_of, laid_as
from ..language.cuda import DeviceKernel
from ..language.cuda_fold import DeviceFold

_SOURCE = device_code.source(Path(__file__).with_name("kernels.cu"))
_NORM = np.dtype(
    [
        (name, "i8")
        for name in ("rows", "n", "inner", "outer", "row_step", "weight_rows", "weight_step", "weight_inner")
    ]
)
_of_weight = DeviceFold("g * (x - mean) * rsqrt(var + eps)", ("g", "x", "mean", "var", "eps"))
_of_rms_weight = DeviceFold("g * x * rsqrt(var + eps)", ("g", "x", "var", "eps"))
_of_bias = DeviceFold("g", ("g",))


# cuDNN keeps 1 / sqrt(var + eps) of the batch, the records its variance
_variance = DeviceKernel("maximum(1 / (r * r) - eps, 0.0)", ("r", "eps"), lambda *_: NotImplemented)
_inverse = DeviceKernel("rsqrt(var + eps)", ("var", "eps"), lambda *_: NotImplemented)
_average = DeviceKernel("x * keep + new * share", ("x", "new", "keep", "share"), lambda *_: NotImplemented)


def running_average(x: Any, new: Any, *, momentum: float, factor: float) -> Any:
    """The device function of running_average, where there is one new value for each old one."""
    if new.size != x.size or not device_code.enabled:
        return NotImplemented
    return _average(x, new.reshape(x.shape), float(1 - momentum), float(momentum * factor))


def average_into(x: Any, new: Any, momentum: float, factor: float) -> bool:
    """``running_average`` written over the old values; False, nothing done, where that is not one launch."""
    if not device_code.is_device_array(x) or type(new) is not type(x) or new.size != x.size \
            or new.dtype != x.dtype or not x.flags.c_contiguous or not device_code.enabled:
        return False
    with on_device(x):
        made = _average(x, new.reshape(x.shape), float(1 - momentum), float(momentum * factor), out=x)
    return made is not NotImplemented


@lru_cache(4096)
def _plan(shape: tuple[int, ...], dims: tuple[int, ...], per: tuple[int, ...]) -> Any:
    """How elements, rows and weights lie; None for what the kernel does not take."""
    dims = tuple(d % len(shape) for d in dims)
    plan: Any = np.zeros(1, _NORM)
    ndim, n = len(shape), math.prod(shape[d] for d in dims)
    channels = per if len(per) == ndim else (1,) * (ndim - len(per)) + per
    if dims == tuple(range(ndim - len(dims), ndim)):  # the last dimensions: layer and group norm
        row = channels[: ndim - len(dims)]
        inside = channels[ndim - len(dims) :]
        if math.prod(row) > 1 and row[-1] != math.prod(row):
            return None
        last = next((d for d in range(len(inside) - 1, -1, -1) if inside[d] > 1), -1)
        if any(s not in (1, shape[ndim - len(dims) + d]) for d, s in enumerate(inside)) or any(
            inside[d] == 1 != shape[ndim - len(dims) + d] for d in range(last)
        ):
            return None
        weight_inner = math.prod(shape[ndim - len(dims) + last + 1 :])
        plan[0] = (math.prod(shape) // n, n, n, 0, n, math.prod(row), math.prod(inside), weight_inner)
    elif dims == (0, *range(2, ndim)) and math.prod(channels) == shape[1]:
        area = math.prod(shape[2:])
        plan[0] = (shape[1], n, area, shape[1] * area, area, shape[1], 1, n)
    else:
        return None
    return plan


class _Ready(NamedTuple):
    """What a kernel is called with."""

    char: str  # the letter of the elements' dtype
    plan: Any
    given: list  # elements, and weights or None, in rows
    weights: np.dtype  # of weights, or of the elements where there are none
    moments: np.dtype

    @property
    def wide(self) -> int:
        """Whether weights are of the dtype that is computed in."""
        return int(self.weights == self.moments)


def _kinds(x: Any, weights: list) -> Any:
    """(letter, dtype of weights, dtype of moments): elements of 16 bits may have weights of 32; or None."""
    char = device_code.char_of(x)
    if char not in device_code.FLOATS:
        return None
    moments = np.dtype("d" if char == "d" else "f")
    kinds = {a.dtype for a in weights if a is not None} or {x.dtype}
    own = kinds.pop()
    return (char, own, moments) if not kinds and own in (x.dtype, moments) else None


def _ready(elements: list, weights: list, dims: tuple[int, ...], per: tuple[int, ...]) -> Any:
    """How the kernel goes over the elements, all of one dtype; None where it does not."""
    x = elements[0]
    kinds = _kinds(x, weights)
    if kinds is None or not x.size or any(a.dtype != x.dtype for a in elements):
        return None
    plan = _plan(x.shape, dims, per)
    if plan is None:
        return None
    rows = cuda.cupy().ascontiguousarray
    return _Ready(kinds[0], plan, [None if a is None else rows(a) for a in (*elements, *weights)], *kinds[1:])


def takes_narrow(
    x: Any, weights: list, *, dims: tuple[int, ...] = (), per: tuple[int, ...], **_: Any
) -> bool:
    """Whether the kernels take elements of 16 bits as they are, with these weights; moments are float32."""
    if not device_code.is_device_array(x) or _kinds(x, weights) is None or not x.size:
        return False
    return not dims or _plan(x.shape, dims, per) is not None


@lru_cache(4096)
def _of_moments(shape: tuple[int, ...], dims: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of averages over dimensions, which are kept with size 1."""
    return tuple(1 if d in {e % len(shape) for e in dims} else s for d, s in enumerate(shape))


def _launch(plan: Any) -> tuple[tuple[int], tuple[int]]:
    rows, n = int(plan["rows"][0]), int(plan["n"][0])
    return (min(rows, 1 << 30),), (min(512, max(32, 1 << (n // 4).bit_length())),)


def _for_cudnn(elements: list[Any], weights: list[Any], dims: tuple[int, ...]) -> bool:
    """Whether these are a batch norm of rows of channels, which images with channels last are, with weights
    and moments of float32."""
    x = elements[0]
    return (
        cudnn_graphs.frontend() is not None
        and device_code.char_of(*elements) in ("f", "e", "E") and device_code.char_of(*weights) == "f"
        and (x.flags.c_contiguous if x.ndim == 2 else format_of(x).ndim == x.ndim)
        and tuple([d % x.ndim for d in dims]) == (0, *range(2, x.ndim))
    )


def _by_cudnn(x: Any, weight: Any, bias: Any, eps: float) -> Any:
    """(y, mean, var), or NotImplemented."""
    module, small = cuda.cupy(), (1, x.shape[1], *(1,) * (x.ndim - 2))
    rows = [module.ascontiguousarray(a) for a in (weight, bias)]
    numbers = [np.array([n], np.float32) for n in (eps, 0.0)]
    y, (mean, inverse, *unused) = module.empty_like(x), device_launcher.empty((4, *small), np.float32)
    # cuDNN wants running averages: it is shown numbers that are there, and what it makes of them is left
    arrays = x, *rows, *numbers, *rows, y, mean, inverse, *unused
    if not cudnn_graphs.normalize(device_code.char_of(x), arrays, backward=False):
        return NotImplemented
    return y, mean, _variance(inverse, float(eps))


def _grad_by_cudnn(g: Any, x: Any, weight: Any, mean: Any, var: Any, eps: float) -> Any:
    """(gx, gw, gb), or NotImplemented."""
    module = cuda.cupy()
    gx, (gw, gb) = module.empty_like(x), device_launcher.empty((2, x.shape[1]), np.float32)
    rows = map(module.ascontiguousarray, (weight, mean, _inverse(var, float(eps))))
    arrays = x, laid_as(module, g, x), *rows, gx, gw, gb
    done = cudnn_graphs.normalize(device_code.char_of(x), arrays, backward=True)
    return (gx, gw, gb) if done else NotImplemented


def norm(x: Any, weight: Any, bias: Any, *, dims: tuple[int, ...], per: tuple[int, ...], eps: float) -> Any:
    """The device function of layer, group and batch norm."""
    images = x
    if weight is not None and bias is not None and _for_cudnn([x], [weight, bias], dims):
        found = _by_cudnn(x, weight, bias, eps)
        if found is not NotImplemented:
            return found
    ready = _ready([x], [weight, bias], dims, per)
    if ready is None:
        return NotImplemented
    empty = device_launcher.empty
    small = _of_moments(x.shape, dims)
    y, mean, var = empty(x.shape, x.dtype), empty(small, ready.moments), empty(small, ready.moments)
    _SOURCE.kernel("norm_rows", ready.char)(
        *_launch(ready.plan), (y, mean, var, *ready.given, ready.wide, ready.plan, float(eps), 1))
    return laid_as(cuda.cupy(), y, images), mean, var


def rms_norm(x: Any, weight: Any, *, dims: tuple[int, ...], per: tuple[int, ...], eps: float) -> Any:
    """That of rms_norm."""
    ready = _ready([x], [weight], dims, per)
    if ready is None:
        return NotImplemented
    empty, small = device_launcher.empty, (*x.shape[: x.ndim - len(dims)], *(1,) * len(dims))
    y, var = empty(x.shape, x.dtype), empty(small, ready.moments)
    _SOURCE.kernel("norm_rows", ready.char)(
        *_launch(ready.plan), (y, None, var, *ready.given, None, ready.wide, ready.plan, float(eps), 0))
    return y, var


def fixed_norm(
    x: Any, mean: Any, var: Any, weight: Any, bias: Any, *, per: tuple[int, ...], eps: float
) -> Any:
    """That of batch norm by given averages."""
    numbers = [mean, var, weight, bias]
    kinds = _kinds(x, numbers)
    if kinds is None or not x.size:
        return NotImplemented
    rows, channels = cuda.cupy().ascontiguousarray, math.prod(per)
    y, area = device_launcher.empty(x.shape, x.dtype), math.prod(x.shape[2:])
    _SOURCE.kernel("norm_fixed", kinds[0])(
        (device_code.blocks(x.size),), (device_code.THREADS,),
        (y, rows(x), *[None if a is None else rows(a) for a in numbers], int(kinds[1] == kinds[2]), channels,
         area, x.size, float(eps)))
    return y


def norm_grad(
    g: Any,
    x: Any,
    weight: Any,
    mean: Any,
    var: Any,
    *,
    dims: tuple[int, ...],
    per: tuple[int, ...],
    eps: float,
    wanted: tuple[bool, bool],
) -> Any:
    """That of their backward."""
    images = x
    if mean is not None and weight is not None and _for_cudnn([x, g], [weight, mean, var], dims):
        found = _grad_by_cudnn(g, x, weight, mean, var, eps)
        if found is not NotImplemented:
            return found
    ready = _ready([g, x], [weight], dims, per)
    if ready is None or var.dtype != ready.moments:
        return NotImplemented
    empty, plan = device_launcher.empty, ready.plan
    nothing = empty(0, x.dtype)
    rows, step = int(plan["weight_rows"][0]), int(plan["weight_step"][0])
    one = wanted[1] and rows == int(plan["rows"][0]) and step == 1
    shape = per if len(per) == len(dims) else (math.prod(per),)
    gx = empty(x.shape, x.dtype) if wanted[0] else None
    gw = empty(shape, ready.weights) if wanted[1] else nothing
    gb = empty(shape, ready.weights) if wanted[1] and mean is not None else nothing
    if wanted[0] or one:
        weights = gw if one else None, gb if one and mean is not None else None
        moments = [None if a is None else cuda.cupy().ascontiguousarray(a) for a in (mean, var)]
        _SOURCE.kernel("norm_grad", ready.char)(
            *_launch(plan), (gx, *weights, *ready.given, ready.wide, *moments, plan, float(eps)))
    if wanted[1] and not one:
        channels = per if len(per) == x.ndim else (1,) * (x.ndim - len(per)) + per
        others = tuple([d for d in range(x.ndim) if channels[d] == 1])
        if not others:
            return NotImplemented
        over, to, (g, x) = ("sum", others, shape), device_code.letter(ready.weights), ready.given[:2]
        gw = (_of_rms_weight(*over, g, x, var, float(eps), to=to) if mean is None
              else _of_weight(*over, g, x, mean, var, float(eps), to=to))
        gb = _of_bias(*over, g, to=to) if mean is not None else nothing
    return nothing if gx is None else laid_as(cuda.cupy(), gx, images), gw, gb


def rms_norm_grad(g: Any, x: Any, weight: Any, var: Any, **settings: Any) -> Any:
    """That of rms_norm's backward."""
    found = norm_grad(g, x, weight, None, var, **settings)
    return found if found is NotImplemented else found[:2]


_through = DeviceKernel("g * rsqrt(var + eps)", ("g", "var", "eps"), lambda *_: NotImplemented)
_through_weight = DeviceKernel(
    "g * (rsqrt(var + eps) * w)", ("g", "var", "w", "eps"), lambda *_: NotImplemented)


def fixed_grads(g: Any, x: Any, mean: Any, var: Any, weight: Any, per: tuple[int, ...], eps: float,
                needs: tuple[bool, ...]) -> Any:
    """The gradients of a norm by given averages, a launch each; NotImplemented for what formulas do."""
    if not device_code.is_device_array(g) or needs[1] or needs[2]:
        return NotImplemented
    mean, var = mean.reshape(per), var.reshape(per)
    gx = gw = gb = None
    if needs[0]:
        gx = _through(g, var, eps) if weight is None else _through_weight(g, var, weight.reshape(per), eps)
    lead, shape = g.ndim - len(per), (math.prod(per),)
    dims = (*range(lead), *[d + lead for d, s in enumerate(per) if s == 1])
    if needs[3]:
        gw = _of_weight("sum", dims, shape, g, x, mean, var, eps)
    if needs[4]:
        gb = _of_bias("sum", dims, shape, g)
    found = [gx, None, None, gw, gb]
    return NotImplemented if any(part is NotImplemented for part in found) else found
