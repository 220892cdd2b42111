"""Dropout: elements or whole channels set to 0 at random while training.

``dropout`` draws one word from the generator of ``framework.manual_seed``, the key; the mask is a pure
function of it, so nothing is kept and backward makes the mask again. Where one number decides over many
elements, the mask is an input of the multiplication.
"""

import math
import warnings
from typing import Any

import numpy as np

from ... import random
from ...autograd.mode import state
from ...dtypes import float32, float64
from ...errors import ShapeError
from ...philox import coins
from ...tensor import Tensor, wrap
from ..pointwise.arithmetic import mul, plus_product
from ..record.args import floating, number_arg, tensor_arg
from ..record.deferred import InSteps
from ..record.op import Op
from ..record.public import public
from ..write.inplace import inplace as in_place_form
from . import cuda
from .formula import Formula

# dropped elements take the value selu tends to for x -> -inf: -scale * alpha
_SELU_LIMIT = -1.7580993408473766


def _check(x: Any, p: float, op: str, training: bool) -> None:
    tensor_arg(x, op, "input")
    if training and p:
        floating(x, op, "input")
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"{op}: p is the probability to drop, it must be in [0, 1], got {p}")


def _dropout_kernel(xp: Any, x: Any, *, p: float, key: int) -> Any:
    kind = np.dtype(np.float32) if x.dtype.itemsize == 2 else x.dtype  # rounded once, at the end
    mask = coins(key, x.size, p).reshape(x.shape).astype(kind)
    mask *= cuda.factor(p)
    return (x * xp.asarray(mask)).astype(x.dtype, copy=False)


dropout_op = Op("dropout", "x", onnx="dropped(x, p)", kernel=_dropout_kernel, native="dropout", jvp="linear",
                device=cuda.dropout,
                infer=lambda x, *, p, key: x, vjp={"x": lambda g, p, key: dropout_op(g, p=p, key=key)})


def _drawn(x: Tensor, shape: tuple[int, ...]) -> Any:
    """Numbers of ``shape`` that decide, uniform in [0, 1)."""
    draw = np.float64 if x._array.dtype.itemsize == 8 else np.float32
    return random.uniform_array(shape, draw, x.device)


_mask = Formula("where(u >= p, factor + 0 * u, 0 * u)", "u, p, factor", rounded=True)
_shift = Formula("where(u >= p, 0 * u, 1 + 0 * u) * limit - mean", "u, p, limit, mean", rounded=True)


def _drop(x: Tensor, p: float, training: bool, inplace: bool, shape: tuple[int, ...]) -> Tensor:
    """``x * mask / (1 - p)`` with a mask of ``shape``, which broadcasts to x."""
    if not training or p == 0:
        return x
    mask = _mask(_drawn(x, shape), p, cuda.factor(p))
    run = in_place_form(mul, "dropout", mul.op) if inplace else mul
    return run(x, wrap(mask.astype(x._array.dtype, copy=False)))


def _alpha_drop(x: Tensor, p: float, training: bool, inplace: bool, shape: tuple[int, ...]) -> Tensor:
    """``a * (x where kept, else the limit) + b``, which keeps mean 0 and variance 1."""
    if not training or p == 0:
        return x
    if p == 1:
        return _drop(x, p, training, inplace, shape)
    a, dtype = 1 / math.sqrt((1 - p) * (1 + p * _SELU_LIMIT ** 2)), x._array.dtype
    u = _drawn(x, shape)
    scale, shift = _mask(u, p, a), _shift(u, p, a * _SELU_LIMIT, a * p * _SELU_LIMIT)
    scale, shift = (wrap(v.astype(dtype, copy=False)) for v in (scale, shift))

    def affine(x: Tensor) -> Tensor:
        return plus_product.run(shift, x, scale, value=1)
    return (in_place_form(affine, "alpha_dropout", None) if inplace else affine)(x)


def _channels(x: Tensor, op: str, ndims: tuple[int, ...], unbatched: int | None) -> tuple[int, ...]:
    """The shape of a mask with one number per channel of each sample."""
    if x.ndim not in ndims:
        listed = " or ".join(str(n) for n in ndims)
        said = f"{op}: wanted an input of {listed} dimensions, got shape {list(x.shape)}"
        if x.ndim < 2 or op == "dropout1d":
            raise ShapeError(said)
        warnings.warn(f"{said}; the first two are taken as samples and channels, as PyTorch still does; "
                      f"reshape it", UserWarning, stacklevel=4)
    lead = 1 if x.ndim == unbatched else 2
    return x.shape[:lead] + (1,) * (x.ndim - lead)


def dropped(input: Tensor, p: float, key: int) -> Tensor:
    """``dropout`` by a key that was drawn."""
    return dropout_op.run(input, p=p, key=key)


def _in_steps(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """``dropout``: the key, which is drawn at once, and what follows from it."""
    if training is not True or inplace is not False or type(p) is not float or not 0.0 < p <= 1.0 \
            or type(input) is not Tensor or input.dtype not in (float32, float64):
        return NotImplemented
    return dropped(input, p, random.drawn_key(input.device))


@public("nn.functional", op=dropout_op, deferred=InSteps(_in_steps))
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Each element 0 with probability ``p``, else divided by ``1 - p`` (Hinton et al., 1207.0580).

    Returns the input itself if not ``training`` or p is 0. Raises ValueError for p outside [0, 1].

    >>> fw.nn.functional.dropout(fw.tensor([1.0, 2.0]), 0.5, training=False)
    tensor([1., 2.])
    """
    _check(input, p, "dropout", training)
    if not training or p == 0:
        return input
    if state.batches:  # masks that are arrays are drawn for each example, or for all
        return _drop(input, p, training, inplace, input.shape)
    run = _dropout_in_place if inplace else dropout_op.run
    return run(input, p=float(p), key=random.fresh_key(input.device))


_dropout_in_place = in_place_form(dropout_op.run, "dropout", dropout_op)


@public("nn.functional")
def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Whole channels of (N, C, L) or (C, L) dropped; see ``dropout``.

    >>> fw.nn.functional.dropout1d(fw.ones(1, 2, 3), p=1.0).sum()
    tensor(0.)
    """
    _check(input, p, "dropout1d", training)
    return _drop(input, p, training, inplace, _channels(input, "dropout1d", (2, 3), 2))


@public("nn.functional")
def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Whole channels of (N, C, H, W) dropped; see ``dropout``.

    Three dimensions are taken as (N, C, L), as PyTorch does; others but four too, with a warning.

    >>> fw.nn.functional.dropout2d(fw.ones(1, 2, 3, 3), p=1.0).sum()
    tensor(0.)
    """
    _check(input, p, "dropout2d", training)
    return _drop(input, p, training, inplace, _channels(input, "dropout2d", (3, 4), None))


@public("nn.functional")
def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Whole channels of (N, C, D, H, W) or (C, D, H, W) dropped; see ``dropout``.

    >>> fw.nn.functional.dropout3d(fw.ones(1, 2, 2, 2, 2), p=1.0).sum()
    tensor(0.)
    """
    _check(input, p, "dropout3d", training)
    return _drop(input, p, training, inplace, _channels(input, "dropout3d", (4, 5), 4))


@public("nn.functional")
def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False,
                  inplace: bool = False) -> Tensor:
    """Dropout to selu's lower limit that keeps mean 0 and variance 1 (arXiv:1706.02515).

    >>> fw.nn.functional.alpha_dropout(fw.tensor([1.0, 2.0]), 0.5)
    tensor([1., 2.])
    """
    p = number_arg(p, "alpha_dropout", "p")
    _check(input, p, "alpha_dropout", training)
    return _alpha_drop(input, p, training, inplace, input.shape)


@public("nn.functional")
def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False,
                          inplace: bool = False) -> Tensor:
    """``alpha_dropout`` of whole channels of (N, C, ...). Raises ShapeError below 2 dimensions.

    >>> fw.nn.functional.feature_alpha_dropout(fw.ones(1, 2, 3), 0.5).sum()
    tensor(6.)
    """
    p = number_arg(p, "feature_alpha_dropout", "p")
    _check(input, p, "feature_alpha_dropout", training)
    if input.ndim < 2 and training and p > 0:
        raise ShapeError(f"feature_alpha_dropout: wanted an input (N, C, ...), got {list(input.shape)}")
    return _alpha_drop(input, p, training, inplace, input.shape[:2] + (1,) * (input.ndim - 2))
