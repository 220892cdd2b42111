"""Activation functions: one scalar expression each, written so that no |x| overflows.

PyTorch gives most of them an ``inplace`` argument; it writes the result into the input's memory.
"""

import math
from functools import cache
from typing import Any

import numpy as np

from ... import _native
from ...errors import RangeError, ShapeError
from ...tensor import Tensor
from ..convert.cast import clone
from ..language.elementwise import Elementwise, elementwise
from ..record import autocast
from ..record.args import number_arg, one_dim, tensor_arg
from ..record.into import computed_into
from ..record.planned import Step, planned
from ..record.public import public
from ..shape.split import split
from ..shape.view import take_shape
from ..write.inplace import inplace as in_place_form
from ..write.inplace import recorded_into
from .elementary import sigmoid, tanh

public("nn.functional", op=sigmoid.op)(sigmoid)
public("nn.functional", op=tanh.op)(tanh)


def _record(name: str, expr: str, vjp: str, settings: str = "", result: str = "float",
            complex: bool = False, onnx: str | None = None) -> Elementwise:
    return Elementwise(name, "x", expr, settings=settings, result=result, vjp={"x": vjp},
                       jvp="symmetric", complex=complex, onnx=onnx)


def _apply(op: Elementwise, x: Tensor, inplace: bool = False, name: str = "", **settings: Any) -> Tensor:
    tensor_arg(x, name or op.name, "input")
    for value in settings.values():
        if isinstance(value, Tensor):
            settings = {s: number_arg(v, name or op.name, s) for s, v in settings.items()}
            break
    if not inplace:
        return op.run(x, **settings)
    call, method = (op, (x,), settings), f"{name or op.name}_"
    if computed_into(x, call, method) or recorded_into(x, call, method):
        return x
    return in_place_form(op.run, op.name, op)(x, **settings)


if hasattr(_native.module, "applied"):  # in C++, which calls this one for what is unusual
    _apply = _native.module.applied(_apply)

_relu = elementwise("relu", "x", "maximum(x, 0)", """The element, or 0 where it is negative.
    >>> fw.relu(fw.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """, vjp={"x": "where(out <= 0, 0.0, g)"}, jvp="symmetric", onnx="relu(x)")


@public("nn.functional", op=_relu.op)
def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """``max(input, 0)``; its derivative at 0 is 0.

    >>> fw.nn.functional.relu(fw.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    return _apply(_relu.op, input, True) if inplace else _relu(input)


_hardtanh = _record("hardtanh", "minimum(maximum(x, low), high)",
                    "where((x <= low) | (x >= high), 0.0, g)", "low high", result="same",
                    onnx="Clip(x, low, high)")


@public("nn.functional", op=_hardtanh)
def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0,
             inplace: bool = False) -> Tensor:
    """The element limited to [min_val, max_val]; the derivative at the limits and beyond is 0.

    Raises ValueError if min_val > max_val.

    >>> fw.nn.functional.hardtanh(fw.tensor([-3.0, 0.5, 3.0]))
    tensor([-1.0000,  0.5000,  1.0000])
    """
    if type(min_val) is not float or type(max_val) is not float:
        min_val = number_arg(min_val, "hardtanh", "min_val")
        max_val = number_arg(max_val, "hardtanh", "max_val")
    if min_val > max_val:
        raise ValueError(f"hardtanh: min_val={min_val} is above max_val={max_val}; swap them")
    if tensor_arg(input, "hardtanh", "input")._array.dtype.kind in "iu":
        min_val, max_val = int(min_val), int(max_val)
    if not inplace:
        return _hardtanh.run(input, low=min_val, high=max_val)
    return _apply(_hardtanh, input, inplace, low=min_val, high=max_val)


@public("nn.functional")
def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """``min(max(input, 0), 6)``.

    >>> fw.nn.functional.relu6(fw.tensor([-1.0, 2.0, 8.0]))
    tensor([0., 2., 6.])
    """
    return hardtanh(tensor_arg(input, "relu6", "input"), 0.0, 6.0, inplace)


# elu, celu and selu are one function: scale * x above 0, scale * alpha * (exp(rate * x) - 1) below.
_elu = _record("elu", "where(x > 0, scale * x, (scale * alpha) * expm1(rate * minimum(x, 0)))",
               "g * where(x > 0, scale, (rate * scale * alpha) * exp(rate * minimum(x, 0)))",
               "alpha scale rate", onnx="elu(x, alpha, scale, rate)")


@public("nn.functional", op=_elu)
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """``input`` where positive, else ``alpha * (exp(input) - 1)`` (Clevert et al., arXiv:1511.07289).

    >>> fw.nn.functional.elu(fw.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """
    return _apply(_elu, input, inplace, alpha=alpha, scale=1.0, rate=1.0)


@public("nn.functional")
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """``max(input, 0) + min(0, alpha * (exp(input / alpha) - 1))`` (Barron, arXiv:1704.07483).

    Raises ValueError if alpha is 0.

    >>> fw.nn.functional.celu(fw.tensor([-1.0, 2.0]), alpha=2.0)
    tensor([-0.7869,  2.0000])
    """
    alpha = number_arg(alpha, "celu", "alpha")
    if alpha == 0:
        raise ValueError("celu: alpha must not be 0")
    return _apply(_elu, input, inplace, "celu", alpha=alpha, scale=1.0, rate=1.0 / alpha)


_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


@public("nn.functional")
def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """``scale * elu(input, alpha)`` with the constants of self-normalising nets (arXiv:1706.02515).

    >>> fw.nn.functional.selu(fw.tensor([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])
    """
    if not inplace:
        return _elu.run(tensor_arg(input, "selu", "input"), alpha=_SELU_ALPHA, scale=_SELU_SCALE, rate=1.0)
    return _apply(_elu, input, inplace, "selu", alpha=_SELU_ALPHA, scale=_SELU_SCALE, rate=1.0)


# of slopes from 0 up, whose results are positive where x is: x may be written over, or freed
_leaky = _record("leaky_relu", "where(x > 0, x, slope * x)", "where(out > 0, g, slope * g)", "slope",
                 onnx="LeakyRelu(x, alpha=slope)")


@public("nn.functional", op=_leaky)
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """``input`` where positive, else ``negative_slope * input``.

    >>> fw.nn.functional.leaky_relu(fw.tensor([-1.0, 2.0]), 0.1)
    tensor([-0.1000,  2.0000])
    """
    if type(negative_slope) is not float:
        negative_slope = number_arg(negative_slope, "leaky_relu", "negative_slope")
    if isinstance(negative_slope, (float, int)) and negative_slope < 0:
        x = tensor_arg(input, "leaky_relu", "input")
        if not inplace:
            return _prelu.run(x, negative_slope)
        return in_place_form(_prelu.run, "leaky_relu", _prelu)(x, negative_slope)
    return _apply(_leaky, input, inplace, slope=negative_slope)


_prelu = Elementwise("prelu", "x weight", "where(x > 0, x, weight * x)", result="float",
                     vjp={"x": "where(x > 0, g, g * weight)", "weight": "where(x > 0, 0.0, g * x)"})


@public("nn.functional", method=True, op=_prelu, autocast="lower", deferred=True)
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """``input`` where positive, else ``weight * input``, the weight being learned (arXiv:1502.01852).

    weight: one element, or one per channel (dimension 1 of the input). Raises ShapeError otherwise.

    >>> fw.nn.functional.prelu(fw.tensor([-1.0, 2.0]), fw.tensor([0.25]))
    tensor([-0.2500,  2.0000])
    """
    tensor_arg(input, "prelu", "input"), tensor_arg(weight, "prelu", "weight")
    channels = input.shape[1] if input.ndim > 1 else 1
    if weight.ndim > 1 or weight.numel() not in (1, channels):
        raise ShapeError(f"prelu: weight must have 1 element or one per channel ({channels} in an input "
                         f"of shape {list(input.shape)}), got shape {list(weight.shape)}")
    if weight.numel() == 1:
        return _prelu.run(input, take_shape(weight, ()))
    return _prelu.run(input, take_shape(weight, (channels,) + (1,) * (input.ndim - 2)))


_gelu = _record("gelu", "x * ndtr(x)", "g * gelu_slope(x)", onnx="gelu(x, 'none')")
_record("gelu_slope", "gelu_slope(x)", "g * ((2 - x * x) * (0.3989422804014327 * exp((-0.5 * x) * x)))")
# With s = sigmoid(2k(z + c z^3)): 0.5 * (1 + tanh(...)) is s. Beyond |z| = 30 s is 0 or 1 in every
# dtype, so limiting z there changes nothing and keeps z^3 finite.
_Z = "minimum(maximum(x, -30.0), 30.0)"
_S = f"sigmoid(1.5957691216057308 * ({_Z} + 0.044715 * ({_Z} * {_Z} * {_Z})))"
_gelu_tanh = _record("gelu_tanh", f"x * {_S}", f"g * ({_S} * (1 + x * (1 - {_S})"
                     f" * (1.5957691216057308 * (1 + 0.134145 * ({_Z} * {_Z})))))", onnx="gelu(x, 'tanh')")


@public("nn.functional", op=_gelu)
def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """``input * P(Z <= input)`` for standard normal Z (Hendrycks and Gimpel, arXiv:1606.08415).

    approximate: "none" for the exact function, "tanh" for
    ``0.5 * input * (1 + tanh(sqrt(2 / pi) * (input + 0.044715 * input**3)))``.

    >>> fw.nn.functional.gelu(fw.tensor([-1.0, 2.0]))
    tensor([-0.1587,  1.9545])
    """
    if approximate not in ("none", "tanh"):
        raise ValueError(f"gelu: approximate must be 'none' or 'tanh', got {approximate!r}")
    return _apply(_gelu if approximate == "none" else _gelu_tanh, input, False, "gelu")


_silu = _record("silu", "x * sigmoid(x)", "g * silu_slope(x)", complex=True)
_record("silu_slope", "silu_slope(x)",
        "g * (sigmoid(x) * sigmoid(-x) * (2 + x * (1 - 2 * sigmoid(x))))", complex=True)


@public("nn.functional", op=_silu)
def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """``input * sigmoid(input)``, also called swish (arXiv:1606.08415).

    >>> fw.nn.functional.silu(fw.tensor([-1.0, 2.0]))
    tensor([-0.2689,  1.7616])
    """
    return _apply(_silu, input, inplace)


_T = "tanh(maximum(x, 0) + log1p(exp(-abs(x))))"  # tanh(softplus(x))
_mish = _record("mish", f"x * {_T}", f"g * ({_T} + x * (1 - square({_T})) * sigmoid(x))", onnx="mish(x)")


@public("nn.functional", op=_mish)
def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """``input * tanh(softplus(input))`` (Misra, arXiv:1908.08681).

    >>> fw.nn.functional.mish(fw.tensor([-1.0, 2.0]))
    tensor([-0.3034,  1.9440])
    """
    return _apply(_mish, input, inplace)


_hardswish = _record("hardswish", "x * (minimum(maximum(x + 3, 0), 6) / 6)",
                     "g * where(x <= -3, 0.0, where(x < 3, x / 3 + 0.5, 1.0))", onnx="HardSwish(x)")


@public("nn.functional", op=_hardswish)
def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """``input * min(max(input + 3, 0), 6) / 6`` (Howard et al., arXiv:1905.02244).

    >>> fw.nn.functional.hardswish(fw.tensor([-4.0, 0.0, 4.0]))
    tensor([-0., 0., 4.])
    """
    return _apply(_hardswish, input, inplace)


_hardsigmoid = _record("hardsigmoid", "minimum(maximum(x + 3, 0), 6) / 6",
                       "where((x <= -3) | (x >= 3), 0.0, g / 6)",
                       onnx="HardSigmoid(x, alpha=0.16666666666666666, beta=0.5)")


@public("nn.functional", op=_hardsigmoid)
def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """``min(max(input + 3, 0), 6) / 6``.

    >>> fw.nn.functional.hardsigmoid(fw.tensor([-4.0, 0.0, 4.0]))
    tensor([0.0000, 0.5000, 1.0000])
    """
    return _apply(_hardsigmoid, input, inplace)


_hardshrink = _record("hardshrink", "where(abs(x) <= lambd, 0.0, x)",
                      "where(abs(x) <= lambd, 0.0, g)", "lambd")


@public("nn.functional", method=True, op=_hardshrink)
def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """``input`` where ``|input| > lambd``, else 0.

    >>> fw.nn.functional.hardshrink(fw.tensor([-1.0, 0.3]))
    tensor([-1.,  0.])
    """
    return _apply(_hardshrink, input, lambd=lambd)


_softshrink = _record("softshrink", "x - minimum(maximum(x, -lambd), lambd)",
                      "where(abs(x) <= lambd, 0.0, g)", "lambd")


@public("nn.functional", op=_softshrink)
def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """``input`` moved towards 0 by ``lambd``, at most to 0. Raises ValueError if lambd is negative.

    >>> fw.nn.functional.softshrink(fw.tensor([-2.0, 0.25, 1.0]))
    tensor([-1.5000,  0.0000,  0.5000])
    """
    if lambd < 0:
        raise ValueError(f"softshrink: lambd must not be negative, got {lambd}")
    return _apply(_softshrink, input, lambd=lambd)


_tanhshrink = _record("tanhshrink", "x - tanh(x)", "g * square(tanh(x))", complex=True)


@public("nn.functional", op=_tanhshrink)
def tanhshrink(input: Tensor) -> Tensor:
    """``input - tanh(input)``.

    >>> fw.nn.functional.tanhshrink(fw.tensor([0.0, 2.0]))
    tensor([0.0000, 1.0360])
    """
    return _apply(_tanhshrink, input)


_softplus = _record("softplus", "where(beta * x > threshold, x,"
                    " (maximum(beta * x, 0) + log1p(exp(-abs(beta * x)))) / beta)",
                    "where(beta * x > threshold, g, g * sigmoid(beta * x))", "beta threshold",
                    onnx="softplus(x, beta)")


@public("nn.functional", op=_softplus)
def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """``log(1 + exp(beta * input)) / beta``, and ``input`` itself where ``beta * input > threshold``.

    >>> fw.nn.functional.softplus(fw.tensor([-1.0, 100.0]))
    tensor([  0.3133, 100.0000])
    """
    if autocast.used:
        input = autocast.in_float32_on_a_gpu(input)
    return _apply(_softplus, input, beta=beta, threshold=threshold)


_softsign = _record("softsign", "x / (1 + abs(x))", "g / square(1 + abs(x))", onnx="Softsign(x)")


@public("nn.functional", op=_softsign)
def softsign(input: Tensor) -> Tensor:
    """``input / (1 + |input|)``.

    >>> fw.nn.functional.softsign(fw.tensor([-1.0, 3.0]))
    tensor([-0.5000,  0.7500])
    """
    return _apply(_softsign, input)


logsigmoid_op = _record("logsigmoid", "minimum(x, 0) - log1p(exp(-abs(x)))", "g * sigmoid(-x)")


@public("nn.functional", op=logsigmoid_op)
def logsigmoid(input: Tensor) -> Tensor:
    """``log(sigmoid(input))``, without overflow or loss of digits.

    >>> fw.nn.functional.logsigmoid(fw.tensor([-100.0, 0.0]))
    tensor([-100.0000,   -0.6931])
    """
    return _apply(logsigmoid_op, input)


_threshold = _record("threshold", "where(x <= threshold, value, x)",
                     "where(x <= threshold, 0.0, g)", "threshold value", result="same")


@public("nn.functional", op=_threshold)
def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """``input`` where ``input > threshold``, else ``value``, which the dtype must hold.

    >>> fw.nn.functional.threshold(fw.tensor([0.1, 2.0]), 1.0, -5.0)
    tensor([-5.,  2.])
    """
    dtype = tensor_arg(input, "threshold", "input")._array.dtype
    if dtype.kind in "iu":
        threshold = number_arg(threshold, "threshold", "threshold")
        threshold, value = _whole_threshold(dtype, threshold, number_arg(value, "threshold", "value"))
    return _apply(_threshold, input, inplace, threshold=threshold, value=value)


@cache
def _limits(dtype: np.dtype) -> tuple[int, int]:
    return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)


def _whole_threshold(dtype: np.dtype, threshold: float, value: float) -> tuple[int, int]:
    """The limit and what stands below it as numbers of an integer dtype, the same on every device."""
    (least, most), value = _limits(dtype), int(value)
    if not least <= value <= most:
        raise RangeError(f"threshold: the number {value} is out of bounds for {dtype}; choose a wider dtype, "
                         "e.g. framework.int64")
    if not threshold >= least:  # no element is below, nor beside a nan
        return least, least
    return (most if threshold >= most else math.floor(threshold)), value


_gated = Elementwise("glu", "x y", "x * sigmoid(y)", result="float", complex=True, vjp={
    "x": "g * sigmoid(y)", "y": "g * x * (sigmoid(y) * (1 - sigmoid(y)))"})


def _halves_gated(x: Tensor, at: int) -> Tensor:
    return _gated.run(*split(x, x._array.shape[at] // 2, at))


@planned
def _glu(x: Tensor, dim: int) -> list[Step]:
    at = one_dim(dim, tensor_arg(x, "glu", "input").ndim, "glu")
    size = x.shape[at] if x.ndim else 1
    if size % 2:
        raise ShapeError(f"glu: dimension {dim} of an input of shape {list(x.shape)} must have an even "
                         f"size, it has {size}")
    return [(_halves_gated, 1, {"at": at})] if size else [(clone, 1, {})]


@public("nn.functional", deferred=True)
def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half along ``dim`` times the sigmoid of the second (Dauphin et al., 1612.08083).

    Raises ShapeError if the size of ``dim`` is odd.

    >>> fw.nn.functional.glu(fw.tensor([1.0, 2.0, 0.0, 0.0]))
    tensor([0.5000, 1.0000])
    """
    return _glu(input, dim)
