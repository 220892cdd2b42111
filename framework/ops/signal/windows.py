"""Windows for short-time transforms, made in float64 and rounded once."""

import math
from functools import cache, lru_cache
from typing import Any

import numpy as np

from ... import dtypes
from ...backends import move
from ...device import as_device
from ...errors import DTypeError
from ...seam import Maker
from ...tensor import Tensor, made
from ..language.expression import array_function
from ..language.program import native_kernel
from ..record.args import number_arg
from ..record.public import public
from ..special.bessel import _scaled_i


@cache
def _maker(name: str) -> Maker:
    return Maker(name, ("window_length",))


def _window(name: str, formula: Any, length: int, periodic: bool, dtype: Any, device: Any,
            requires_grad: bool) -> Tensor:
    """``formula(n, m)`` at n = 0 .. length - 1, where m is the last n of a symmetric window."""
    if isinstance(length, bool) or not hasattr(length, "__index__"):
        raise TypeError(f"{name}: window_length must be an int, got {type(length).__name__}")
    count = length.__index__()
    if count < 0:
        raise ValueError(f"{name}: window_length must not be negative, got {count}")
    kind = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
    if not kind.is_floating_point:
        raise DTypeError(f"{name}: dtype must be floating, got {kind}")
    n, last = np.arange(float(count)), count if periodic else count - 1
    values = formula(n, float(last)) if count > 1 else np.ones(count)
    array = move(values.astype(kind.numpy), as_device(device))
    result = made(_maker(name), array, count)
    return result.requires_grad_(requires_grad) if requires_grad else result


@public(out=True)
def hann_window(window_length: int, periodic: bool = True, *, dtype: Any = None, device: Any = None,
                requires_grad: bool = False) -> Tensor:
    """One turn of a raised cosine: ``0.5 - 0.5 * cos(2 pi n / m)`` -> (window_length).

    periodic: m is the length, for spectra; else the length - 1, a symmetric window for filters. Raises
    ValueError for a negative length, DTypeError for a dtype that is not floating.

    >>> fw.hann_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _window("hann_window", lambda n, m: 0.5 - 0.5 * np.cos(2 * math.pi / m * n),
                   window_length, periodic, dtype, device, requires_grad)


@public(out=True)
def hamming_window(window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *,
                   dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A raised cosine on a pedestal: ``alpha - beta * cos(2 pi n / m)`` -> (window_length).

    periodic: as in ``hann_window``.

    >>> fw.hamming_window(4)
    tensor([0.0800, 0.5400, 1.0000, 0.5400])
    """
    alpha, beta = number_arg(alpha, "hamming_window", "alpha"), number_arg(beta, "hamming_window", "beta")
    return _window("hamming_window", lambda n, m: alpha - beta * np.cos(2 * math.pi / m * n),
                   window_length, periodic, dtype, device, requires_grad)


def _blackman(n: Any, m: float) -> Any:
    turn = 2 * math.pi / m * n
    return np.maximum(0.42 - 0.5 * np.cos(turn) + 0.08 * np.cos(2 * turn), 0.0)


@public(out=True)
def blackman_window(window_length: int, periodic: bool = True, *, dtype: Any = None, device: Any = None,
                    requires_grad: bool = False) -> Tensor:
    """``0.42 - 0.5 * cos(2 pi n / m) + 0.08 * cos(4 pi n / m)`` -> (window_length).

    periodic: as in ``hann_window``.

    >>> fw.blackman_window(4)
    tensor([0.0000, 0.3400, 1.0000, 0.3400])
    """
    return _window("blackman_window", _blackman, window_length, periodic, dtype, device, requires_grad)


@public(out=True)
def bartlett_window(window_length: int, periodic: bool = True, *, dtype: Any = None, device: Any = None,
                    requires_grad: bool = False) -> Tensor:
    """A triangle: ``1 - abs(2 n / m - 1)`` -> (window_length).

    periodic: as in ``hann_window``.

    >>> fw.bartlett_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _window("bartlett_window", lambda n, m: 1 - np.abs(2 * n / m - 1),
                   window_length, periodic, dtype, device, requires_grad)


def kaiser_weights(n: Any, m: float, beta: float) -> Any:
    """``i0(beta * sqrt(1 - (2 n / m - 1)**2)) / i0(beta)``, by i0 without its exponential.

    They are remembered, and not to be written.
    """
    return _few_weights(n.size, m, beta) if n.size <= _FEW else _weights(n, m, beta)


_FEW = 1024  # numbers of a window that is remembered


@lru_cache(32)
def _few_weights(count: int, m: float, beta: float) -> Any:
    return _weights(np.arange(float(count)), m, beta)


def _weights(n: Any, m: float, beta: float) -> Any:
    z = _along_half_circle(n, m, abs(beta))
    most = np.array([abs(beta)])
    return _share(_scaled_i(z, n=0), _scaled_i(most, n=0), z, most)


def _in_one_pass(text: str, names: str) -> Any:
    return native_kernel(text, tuple(names.split(", ")), array_function(text, names, np))


_along_half_circle = _in_one_pass(
    "beta * sqrt(maximum(1 - (2 * n / m - 1) * (2 * n / m - 1), 0.0))", "n, m, beta")
_share = _in_one_pass("x / y * exp(z - most)", "x, y, z, most")


@public(out=True)
def kaiser_window(window_length: int, periodic: bool = True, beta: float = 12.0, *, dtype: Any = None,
                  device: Any = None, requires_grad: bool = False) -> Tensor:
    """``i0(beta * sqrt(1 - (2 n / m - 1)**2)) / i0(beta)`` -> (window_length).

    periodic: as in ``hann_window``. J. Kaiser and R. Schafer, "On the use of the I0-sinh window for spectrum
    analysis", 1980.

    >>> fw.kaiser_window(4, beta=2.0)
    tensor([0.4387, 0.8348, 1.0000, 0.8348])
    """
    beta = number_arg(beta, "kaiser_window", "beta")

    def formula(n: Any, m: float) -> Any:
        return kaiser_weights(n, m, beta)
    return _window("kaiser_window", formula, window_length, periodic, dtype, device, requires_grad)
