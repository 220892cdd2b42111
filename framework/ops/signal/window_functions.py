"""The windows of ``framework.signal.windows``: symmetric unless ``sym=False`` makes them periodic."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from ...tensor import Tensor
from ..record.args import number_arg
from ..record.public import public
from .windows import _window, kaiser_weights

_PAGE = "Shapes: -> (M). Raises ValueError for a negative M, DTypeError for a dtype that is not floating."


def _named(function: Any, line: str, example: str) -> Any:
    function.__doc__ = f"{line}\n\n    m is M - 1, or M for sym=False. {_PAGE}\n\n    {example}\n    "
    return public("signal.windows")(function)


def _cosines(name: str, a: Iterable[float], M: int, sym: bool, settings: dict) -> Tensor:
    weights = [float(w) * (-1) ** i for i, w in enumerate(a)]
    if not weights:
        raise ValueError(f"{name}: a must hold at least one weight")

    def formula(n: Any, m: float) -> Any:
        return np.sum([w * np.cos(2 * math.pi * i / m * n) for i, w in enumerate(weights)], axis=0)
    return _window(name, formula, M, not sym, settings.get("dtype"), settings.get("device"),
                   settings.get("requires_grad", False))


def _of_cosines(name: str, line: str, a: list[float], example: str) -> Any:
    def window(M: int, *, sym: bool = True, dtype: Any = None, device: Any = None,
               requires_grad: bool = False) -> Tensor:
        return _cosines(name, a, M, sym, {"dtype": dtype, "device": device, "requires_grad": requires_grad})
    window.__name__ = window.__qualname__ = name
    return _named(window, line, example)


hann = _of_cosines("hann", "One turn of a raised cosine: ``0.5 - 0.5 * cos(2 pi n / m)``.", [0.5, 0.5],
                   ">>> fw.signal.windows.hann(3)\n    tensor([0., 1., 0.])")
hamming = _of_cosines("hamming", "A raised cosine on a pedestal: ``0.54 - 0.46 * cos(2 pi n / m)``.",
                      [0.54, 0.46],
                      ">>> fw.signal.windows.hamming(3)\n    tensor([0.0800, 1.0000, 0.0800])")
blackman = _of_cosines(
    "blackman", "Two cosines: ``0.42 - 0.5 * cos(2 pi n / m) + 0.08 * cos(4 pi n / m)``.",
    [0.42, 0.5, 0.08], ">>> fw.signal.windows.blackman(5, sym=False)\n"
    "    tensor([-1.3878e-17,  2.0077e-01,  8.4923e-01,  8.4923e-01,  2.0077e-01])")
nuttall = _of_cosines(
    "nuttall", "Three cosines, the weights by A. Nuttall, \"Some windows with very good sidelobe behavior\","
    "\n    1981: 0.3635819, 0.4891775, 0.1365995, 0.0106411.",
    [0.3635819, 0.4891775, 0.1365995, 0.0106411],
    ">>> fw.signal.windows.nuttall(5)[1:4]\n    tensor([0.2270, 1.0000, 0.2270])")


@public("signal.windows")
def general_cosine(M: int, *, a: Iterable[float], sym: bool = True, dtype: Any = None, device: Any = None,
                   requires_grad: bool = False) -> Tensor:
    """A sum of cosines: ``sum_i (-1)**i a_i cos(2 pi i n / m)`` -> (M), m being M - 1, or M for sym=False.

    Raises ValueError for no weights or a negative M, DTypeError for a dtype that is not floating.

    >>> fw.signal.windows.general_cosine(3, a=[0.5, 0.5])
    tensor([0., 1., 0.])
    """
    return _cosines("general_cosine", a, M, sym,
                    {"dtype": dtype, "device": device, "requires_grad": requires_grad})


@public("signal.windows")
def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, dtype: Any = None, device: Any = None,
                    requires_grad: bool = False) -> Tensor:
    """``alpha - (1 - alpha) * cos(2 pi n / m)`` -> (M), m being M - 1, or M for sym=False.

    >>> fw.signal.windows.general_hamming(3, alpha=0.75)
    tensor([0.5000, 1.0000, 0.5000])
    """
    alpha = number_arg(alpha, "general_hamming", "alpha")
    return _cosines("general_hamming", [alpha, 1 - alpha], M, sym,
                    {"dtype": dtype, "device": device, "requires_grad": requires_grad})


@public("signal.windows")
def bartlett(M: int, *, sym: bool = True, dtype: Any = None, device: Any = None,
             requires_grad: bool = False) -> Tensor:
    """A triangle: ``1 - abs(2 n / m - 1)`` -> (M), m being M - 1, or M for sym=False.

    >>> fw.signal.windows.bartlett(5)
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    return _window("bartlett", lambda n, m: 1 - np.abs(2 * n / m - 1), M, not sym, dtype, device,
                   requires_grad)


@public("signal.windows")
def cosine(M: int, *, sym: bool = True, dtype: Any = None, device: Any = None,
           requires_grad: bool = False) -> Tensor:
    """Half a turn of a sine: ``sin(pi * (n + 1/2) / (m + 1))`` -> (M), m being M - 1, or M for sym=False.

    >>> fw.signal.windows.cosine(3)
    tensor([0.5000, 1.0000, 0.5000])
    """
    return _window("cosine", lambda n, m: np.sin(math.pi * (n + 0.5) / (m + 1)), M, not sym, dtype, device,
                   requires_grad)


@public("signal.windows")
def exponential(M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, dtype: Any = None,
                device: Any = None, requires_grad: bool = False) -> Tensor:
    """``exp(-abs(n - center) / tau)`` -> (M). center: m / 2, m being M - 1, or M for sym=False.

    Raises ValueError for a tau that is not positive, or a center of a symmetric window.

    >>> fw.signal.windows.exponential(3, tau=2.0)
    tensor([0.6065, 1.0000, 0.6065])
    """
    tau, center = number_arg(tau, "exponential", "tau"), number_arg(center, "exponential", "center")
    if not tau > 0:
        raise ValueError(f"exponential: tau must be positive, got {tau}")
    if center is not None and sym:
        raise ValueError("exponential: a symmetric window has its center in the middle; give sym=False with "
                         "center")

    def formula(n: Any, m: float) -> Any:
        return np.exp(-np.abs(n - (m / 2 if center is None else center)) / tau)
    return _window("exponential", formula, M, not sym, dtype, device, requires_grad)


@public("signal.windows")
def gaussian(M: int, *, std: float = 1.0, sym: bool = True, dtype: Any = None, device: Any = None,
             requires_grad: bool = False) -> Tensor:
    """``exp(-((n - m / 2) / std)**2 / 2)`` -> (M), m being M - 1, or M for sym=False.

    Raises ValueError for a std that is not positive.

    >>> fw.signal.windows.gaussian(3, std=2.0)
    tensor([0.8825, 1.0000, 0.8825])
    """
    std = number_arg(std, "gaussian", "std")
    if not std > 0:
        raise ValueError(f"gaussian: std must be positive, got {std}")
    return _window("gaussian", lambda n, m: np.exp(-0.5 * ((n - m / 2) / std) ** 2), M, not sym, dtype,
                   device, requires_grad)


@public("signal.windows")
def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, dtype: Any = None, device: Any = None,
           requires_grad: bool = False) -> Tensor:
    """``i0(beta * sqrt(1 - (2 n / m - 1)**2)) / i0(beta)`` -> (M), m being M - 1, or M for sym=False.

    Raises ValueError for a negative beta.

    >>> fw.signal.windows.kaiser(3, beta=2.0)
    tensor([0.4387, 1.0000, 0.4387])
    """
    beta = number_arg(beta, "kaiser", "beta")
    if beta < 0:
        raise ValueError(f"kaiser: beta must not be negative, got {beta}")

    def formula(n: Any, m: float) -> Any:
        return kaiser_weights(n, m, beta)
    return _window("kaiser", formula, M, not sym, dtype, device, requires_grad)
