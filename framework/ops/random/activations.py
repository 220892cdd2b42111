"""Activations that draw numbers: rrelu while training, gumbel_softmax always."""

from typing import Any

import numpy as np

from ... import random
from ...tensor import Tensor, wrap
from ..index.scatter import scatter
from ..pointwise.activations import leaky_relu
from ..pointwise.arithmetic import mul
from ..record.args import floating, number_arg, one_dim, real_arg
from ..record.public import public
from ..reduce.softmax import softmax
from ..write.inplace import inplace as in_place_form
from .formula import Formula


def _uniform(x: Tensor) -> Any:
    """An array like x, uniform in [0, 1), drawn in float32 where x is narrower."""
    draw = np.float64 if x._array.dtype.itemsize == 8 else np.float32
    return random.uniform_array(x.shape, draw, x.device)


@public("nn.functional")
def rrelu(input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False,
          inplace: bool = False) -> Tensor:
    """``input`` where positive, else ``a * input``, a being random in [lower, upper) while training.

    Otherwise a is their mean. B. Xu et al., "Empirical evaluation of rectified activations in convolutional
    network", 2015. Raises DTypeError for integers, ValueError unless lower <= upper.

    >>> fw.nn.functional.rrelu(fw.tensor([-2.0, 2.0]), 0.2, 0.3)
    tensor([-0.5000,  2.0000])
    """
    floating(real_arg(input, "rrelu"), "rrelu")
    lower, upper = number_arg(lower, "rrelu", "lower"), number_arg(upper, "rrelu", "upper")
    if not lower <= upper:
        raise ValueError(f"rrelu: lower must not exceed upper, got {lower} and {upper}")
    if not training:
        return leaky_relu(input, (lower + upper) / 2, inplace)
    slope = _slope(input._array, _uniform(input), upper - lower, lower)
    run = in_place_form(mul, "rrelu", mul.op) if inplace else mul  # type: ignore[attr-defined]
    return run(input, wrap(slope.astype(input._array.dtype, copy=False)))


_slope = Formula("where(x > 0, 1.0, u * span + lower)", "x, u, span, lower", rounded=True)


@public("nn.functional")
def rrelu_(input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False) -> Tensor:
    """``rrelu`` in place.

    >>> fw.nn.functional.rrelu_(fw.tensor([-2.0, 2.0]), 0.2, 0.3)
    tensor([-0.5000,  2.0000])
    """
    return rrelu(input, lower, upper, training, inplace=True)


@public("nn.functional")
def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10,
                   dim: int = -1) -> Tensor:
    """``softmax((logits + noise) / tau)`` along ``dim``: a sample of the classes that has a gradient.

    The noise is -log(-log(u)), u uniform, new in every call. hard: 1 at the largest and 0 elsewhere, with
    the gradient of the soft sample. eps is not used. E. Jang et al., "Categorical reparameterization with
    Gumbel-softmax", 2017. Raises DTypeError for integers, ValueError for a tau that is not positive.

    >>> fw.nn.functional.gumbel_softmax(fw.zeros(2, 3), hard=True).sum(-1)
    tensor([1., 1.])
    """
    x: Any = logits
    floating(real_arg(x, "gumbel_softmax", "logits"), "gumbel_softmax", "logits")
    if not tau > 0:
        raise ValueError(f"gumbel_softmax: tau must be positive, got {tau}")
    at = one_dim(dim, x.ndim, "gumbel_softmax")
    u = _uniform(x)
    tiny = np.finfo(u.dtype).tiny  # u is 0 now and then
    noise = _gumbel(u, float(tiny))
    soft: Any = softmax((x + wrap(noise.astype(x._array.dtype, copy=False))) / tau, at)
    if not hard:
        return soft
    place = soft.detach().argmax(at, True)
    one = scatter(soft.new_zeros(soft.shape), at, place, 1.0)
    return one - soft.detach() + soft  # type: ignore[operator]


_gumbel = Formula("-log(-log(maximum(u, tiny)))", "u, tiny")
