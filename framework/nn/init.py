"""Initialisations: each fills a tensor in place, outside the graph, and returns it."""

import math
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import numpy as np

from ..autograd.mode import no_grad
from ..backends import array_module, on_device
from ..config.listing import own as _own
from ..errors import ShapeError
from ..ops.linalg.decompositions import qr
from ..ops.random.formula import Formula
from ..random import Generator, normal_array, uniform_array
from ..tensor import Tensor, wrap

_GAINS = {"linear": 1.0, "conv1d": 1.0, "conv2d": 1.0, "conv3d": 1.0, "conv_transpose1d": 1.0,
          "conv_transpose2d": 1.0, "conv_transpose3d": 1.0, "sigmoid": 1.0, "tanh": 5.0 / 3.0,
          "relu": math.sqrt(2.0), "selu": 0.75}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor by which weights before this nonlinearity are larger than before a linear one.

    param: the negative slope of "leaky_relu" (default 0.01).

    >>> round(fw.nn.init.calculate_gain("relu"), 4)
    1.4142
    """
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, (int, float)):
            raise ValueError(f"calculate_gain: the slope of leaky_relu must be a number, got {slope!r}")
        return math.sqrt(2.0 / (1.0 + slope ** 2))
    if nonlinearity not in _GAINS:
        raise ValueError(f"calculate_gain: nonlinearity '{nonlinearity}' is unknown; use one of "
                         f"{', '.join([*_GAINS, 'leaky_relu'])}")
    return _GAINS[nonlinearity]


class _Skipping(threading.local):
    on = False


_skipping = _Skipping()


@contextmanager
def skipped() -> Iterator[None]:
    """Within the block, in this thread, initialisations leave the memory as it is.

    >>> t = fw.ones(2)
    >>> with fw.nn.init.skipped():
    ...     fw.nn.init.zeros_(t)
    tensor([1., 1.])
    """
    before, _skipping.on = _skipping.on, True
    try:
        yield
    finally:
        _skipping.on = before


def _fills(function: Callable) -> Callable:
    fill = no_grad()(function)

    @wraps(function)
    def run(*args: Any, **settings: Any) -> Tensor:
        tensor = args[0] if args else settings["tensor"]
        if _skipping.on:
            return tensor
        with on_device(tensor._array):
            return fill(*args, **settings)
    return run


@_fills
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0,
             generator: Generator | None = None) -> Tensor:
    """Fill with numbers uniform in [a, b)."""
    return tensor.uniform_(a, b, generator=generator)  # type: ignore[attr-defined]


@_fills
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0,
            generator: Generator | None = None) -> Tensor:
    """Fill with normal numbers."""
    return tensor.normal_(mean, std, generator=generator)  # type: ignore[attr-defined]


@_fills
def trunc_normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0,
                  generator: Generator | None = None) -> Tensor:
    """Fill with normal numbers that lie in [a, b]: those whose distribution function is uniform there."""
    if not a < b or a - mean > 8 * std or mean - b > 8 * std:
        raise ValueError(f"trunc_normal_: no numbers of mean {mean} and std {std} in [{a}, {b}]")
    if not std:
        return constant_(tensor, mean)
    low, high = (a - mean) / std, (b - mean) / std
    turned = low > 0  # near 1 a probability has fewer digits than near 0, where the mirrored ones lie
    if turned:
        low, high = -high, -low
    array = tensor._array
    draw, farthest = (np.float64, 8.2) if array.dtype.itemsize == 8 else (np.float32, 5.4)
    if low < -farthest and high > farthest:  # nearly nothing is cut off
        return tensor.normal_(mean, std, generator=generator).clamp_(a, b)  # type: ignore[attr-defined]
    low = max(low, min(-farthest, high - 6))  # beyond lies less than a step of the uniform numbers
    below, share = _between(low, high)
    u = uniform_array(array.shape, draw, tensor.device, generator=generator)
    if tensor.device.type == "meta":
        return tensor
    return _fill(tensor, _quantile(u, below, share, -std if turned else std, mean, a, b))


_quantile = Formula("minimum(maximum(ndtri(u * share + below) * std + mean, a), b)",
                    "u, below, share, std, mean, a, b")


def _between(low: float, high: float) -> tuple[float, float]:
    """The probability of normal numbers below ``low``, and of those from there to ``high``."""
    below, upto = (0.5 * math.erfc(-x / math.sqrt(2)) for x in (low, high))
    return below, upto - below


def _normal(tensor: Tensor, shape: tuple, generator: Generator | None) -> Any:
    return normal_array(shape, tensor._array.dtype, tensor.device, generator=generator)


def _fill(tensor: Tensor, array: Any) -> Tensor:
    return tensor.copy_(wrap(array))  # type: ignore[attr-defined]


@_fills
def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with one number.

    >>> fw.nn.init.constant_(fw.empty(2), 0.5)
    tensor([0.5000, 0.5000])
    """
    return tensor.fill_(val)  # type: ignore[attr-defined]


def ones_(tensor: Tensor) -> Tensor:
    """Fill with ones."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill with zeros."""
    return constant_(tensor, 0.0)


@_fills
def eye_(tensor: Tensor) -> Tensor:
    """Fill a matrix with the identity."""
    if tensor.ndim != 2:
        raise ShapeError(f"eye_: wanted a matrix, got shape {list(tensor.shape)}")
    return _fill(tensor, array_module(tensor._array).eye(*tensor.shape, dtype=tensor._array.dtype))


@_fills
def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill a convolution's weight (out, in, *kernel) so that it passes its input channels on."""
    if tensor.ndim not in (3, 4, 5):
        raise ShapeError(f"dirac_: wanted a weight of 3, 4 or 5 dimensions, got {list(tensor.shape)}")
    if groups < 1 or tensor.shape[0] % groups:
        raise ValueError(f"dirac_: {tensor.shape[0]} output channels do not divide by groups={groups}")
    array = array_module(tensor._array).zeros(tensor.shape, dtype=tensor._array.dtype)
    centre = tuple(k // 2 for k in tensor.shape[2:])
    per_group = tensor.shape[0] // groups
    for group in range(groups):
        for d in range(min(per_group, tensor.shape[1])):
            array[(group * per_group + d, d, *centre)] = 1.0
    return _fill(tensor, array)


def fans(tensor: Tensor, op: str = "fans") -> tuple[int, int]:
    """(fan in, fan out) of a weight (out, in, *kernel): how many numbers each unit reads and feeds."""
    if tensor.ndim < 2:
        raise ShapeError(f"{op}: fan in and fan out need a weight of at least 2 dimensions, got shape "
                         f"{list(tensor.shape)}; use another rule for it, e.g. zeros_ for a bias")
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


_calculate_fan_in_and_fan_out = fans


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """U(-a, a) with a = gain * sqrt(6 / (fan in + fan out)) (Glorot and Bengio 2010)."""
    bound = gain * math.sqrt(6.0 / max(sum(fans(tensor, "xavier_uniform_")), 1))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """N(0, std) with std = gain * sqrt(2 / (fan in + fan out)) (Glorot and Bengio 2010)."""
    fan = sum(fans(tensor, "xavier_normal_"))
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / max(fan, 1)), generator)


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"kaiming: mode must be 'fan_in' or 'fan_out', got {mode!r}")
    fan = fans(tensor, "kaiming")[mode == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(max(fan, 1))


def kaiming_uniform_(tensor: Tensor, a: float = 0, mode: str = "fan_in",
                     nonlinearity: str = "leaky_relu", generator: Generator | None = None) -> Tensor:
    """U(-b, b) with b = gain * sqrt(3 / fan) (He et al. 2015). a: the slope of leaky_relu."""
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(tensor: Tensor, a: float = 0, mode: str = "fan_in",
                    nonlinearity: str = "leaky_relu", generator: Generator | None = None) -> Tensor:
    """N(0, std) with std = gain / sqrt(fan) (He et al. 2015). a: the slope of leaky_relu."""
    return normal_(tensor, 0.0, _kaiming_std(tensor, a, mode, nonlinearity), generator)


@_fills
def orthogonal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """A (semi-)orthogonal matrix (rows, all the rest), times ``gain`` (Saxe et al. 2013)."""
    if tensor.ndim < 2:
        raise ShapeError(f"orthogonal_: wanted at least 2 dimensions, got {list(tensor.shape)}")
    if tensor.numel() == 0:
        return tensor
    rows, columns = tensor.shape[0], tensor.numel() // tensor.shape[0]
    xp, dtype = array_module(tensor._array), tensor._array.dtype
    values = _normal(tensor, (max(rows, columns), min(rows, columns)), generator)
    q, r = (part._array for part in qr(wrap(values.astype("float32") if dtype == "float16" else values)))
    q = q * xp.sign(xp.diagonal(r))  # makes the distribution uniform (Mezzadri 2006)
    q = (q.T if rows < columns else q) * gain
    return _fill(tensor, q.reshape(tensor.shape).astype(dtype))


@_fills
def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01,
            generator: Generator | None = None) -> Tensor:
    """N(0, std) with a fraction ``sparsity`` of each column 0 (Martens 2010)."""
    if tensor.ndim != 2:
        raise ShapeError(f"sparse_: wanted a matrix, got shape {list(tensor.shape)}")
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    values = _normal(tensor, tensor.shape, generator) * std
    keys = uniform_array((rows, columns), array_module(tensor._array).dtype("float64"), tensor.device,
                         generator=generator)
    order = keys.argsort(axis=0)
    values[order[:zeros], array_module(keys).arange(columns)] = 0.0
    return _fill(tensor, values)


def _without_underscore(function: Callable) -> Callable:
    name = function.__name__.rstrip("_")

    @wraps(function)
    def old(*args: Any, **settings: Any) -> Tensor:
        warnings.warn(f"nn.init.{name} is the old name of nn.init.{name}_", FutureWarning, stacklevel=2)
        return function(*args, **settings)
    old.__name__ = old.__qualname__ = name
    old.__doc__ = f"The old name of ``{name}_``, which it calls with a FutureWarning."
    return old


uniform, normal, constant, eye, dirac = map(_without_underscore, (uniform_, normal_, constant_, eye_, dirac_))
xavier_uniform, xavier_normal = map(_without_underscore, (xavier_uniform_, xavier_normal_))
kaiming_uniform, kaiming_normal = map(_without_underscore, (kaiming_uniform_, kaiming_normal_))
orthogonal, sparse = map(_without_underscore, (orthogonal_, sparse_))


__dir__ = _own(globals())
