"""Draws from distributions whose parameters are tensors: Poisson, binomial, gamma, Dirichlet.

Numbers are drawn on the host (see ``framework/random.py``). The gamma and Dirichlet draws have a gradient:
that of the sample held at its quantile (``draw_kernels.py``).
"""

from typing import Any

import numpy as np

from ...backends import backend_of, move
from ...device import CPU
from ...dtypes import finfo, promote_types
from ...errors import ShapeError
from ...random import Generator, drawn
from ...tensor import Tensor, wrap
from ..record.args import floating, real_arg
from ..record.batched import known
from ..record.op import Meta, Op
from ..record.public import public
from .draw_kernels import dirichlet_slope, gamma_slope


def _same(x: Meta, *others: Meta, **_: Any) -> Meta:
    return x


def _result(array: Any, like: Any, lowest: float = 0.0) -> Any:
    """A host array in the dtype and place of the parameter ``like``."""
    return move(np.asarray(np.maximum(array, lowest)).astype(like.dtype), wrap(like).device)


def _lowest(like: Any) -> float:
    """The smallest normal number: where a draw underflows, its logarithm stays finite."""
    return finfo(wrap(like).dtype).tiny


def _host(x: Any) -> np.ndarray:
    return np.asarray(known(move(x, CPU)))


def _gamma_kernel(xp: Any, x: Any, *, generator: Any) -> Any:
    shape = _host(x).astype(np.float64)
    return _result(drawn(wrap(x).device, generator, lambda rng: rng.standard_gamma(shape)), x,
                   _lowest(x))


def _dirichlet_kernel(xp: Any, x: Any, *, generator: Any) -> Any:
    a = _host(x).astype(np.float64)

    def draw(rng: Any) -> Any:
        # a gamma number of shape a is one of shape a + 1 times u^(1 / a): by logarithms, small a do not give
        # 0
        with np.errstate(divide="ignore"):
            log = np.log(rng.standard_gamma(a + 1)) + np.log1p(-rng.random(a.shape)) / a
        parts = np.exp(log - log.max(axis=-1, keepdims=True, initial=-np.inf))
        return parts / parts.sum(axis=-1, keepdims=True)
    return _result(drawn(wrap(x).device, generator, draw), x, _lowest(x))


def _angles_kernel(xp: Any, x: Any, *, generator: Any) -> Any:
    spread = _host(x).astype(np.float64)
    return _result(drawn(wrap(x).device, generator, lambda rng: rng.vonmises(0.0, spread)), x, -np.inf)


angles_op = Op("von_mises", "x", kernel=_angles_kernel, infer=_same)  # around 0, of concentrations x
slope_of_gamma = Op("_standard_gamma_grad", "x y", kernel=gamma_slope, infer=_same, vjp="undefined")
_dirichlet_slope = Op("_dirichlet_grad", "x y w", kernel=dirichlet_slope, infer=_same, vjp="undefined")
_gamma = Op("_standard_gamma", "x", kernel=_gamma_kernel, infer=_same, jvp="symmetric",
            vjp={"x": lambda g, x, out: g * slope_of_gamma(x, out)})
_dirichlet = Op("_sample_dirichlet", "x", kernel=_dirichlet_kernel, infer=_same, vjp={
    "x": lambda g, x, out: (g - (g * out).sum(-1, keepdims=True)) * _dirichlet_slope(
        out, x, x.sum(-1, keepdims=True))})


@public(op=_gamma)
def _standard_gamma(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Gamma numbers of shape ``input`` > 0 and rate 1, in the dtype of ``input``.

    Density: ``z**(input - 1) * exp(-z) / gamma(input)``. The gradient is that of the sample held at its
    quantile: M. Figurnov et al., "Implicit reparameterization gradients", 2018; it has none in turn. Raises
    ValueError where input is not above 0.

    >>> bool((fw._standard_gamma(fw.tensor([2.0, 3.0])) > 0).all())
    True
    """
    _positive(_real(input, "_standard_gamma"), "_standard_gamma", "input")
    return _gamma.run(input, generator=generator)


@public(op=_dirichlet)
def _sample_dirichlet(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Rows that sum to 1 of the Dirichlet distribution of concentrations ``input`` > 0: (..., n) -> (..., n).

    Density: proportional to the product of ``x_i ** (input_i - 1)``. The gradient is a pathwise one: M.
    Jankowiak and F. Obermeyer, "Pathwise derivatives beyond the reparameterization trick", 2018.
    Raises ShapeError for 0 dimensions, ValueError where input is not above 0.

    >>> round(fw._sample_dirichlet(fw.tensor([2.0, 3.0])).sum().item(), 3)
    1.0
    """
    if _real(input, "_sample_dirichlet").ndim == 0:
        raise ShapeError("_sample_dirichlet: input must have at least 1 dimension, that of the parts")
    _positive(input, "_sample_dirichlet", "input")
    return _dirichlet.run(input, generator=generator)


def _real(x: Any, op: str, name: str = "input") -> Tensor:
    floating(real_arg(x, op, name), op, name)
    return x


def _positive(x: Tensor, op: str, name: str) -> None:
    array = _host(x._array)
    if not np.all(array > 0):
        raise ValueError(f"{op}: {name} must be above 0 everywhere, found {float(array[~(array > 0)][0])}")


@public()
def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Poisson numbers of rate ``input`` >= 0, in the dtype of ``input``. No gradient flows through.

    Probability of k: ``input**k * exp(-input) / k!``. Raises ValueError for a rate below 0 or nan.

    >>> fw.poisson(fw.tensor([0.0, 0.0]))
    tensor([0., 0.])
    """
    return poisson_op.run(_real(input, "poisson"), generator=generator)


def _poisson(xp: Any, x: Any, *, generator: Generator | None) -> Any:
    rate = _host(x)
    if not np.all(rate >= 0):
        raise ValueError(f"poisson: input must not be below 0, found {float(rate[~(rate >= 0)][0])}")
    wide = rate.astype(np.float64)
    return _result(drawn(backend_of(x).device_of(x), generator, lambda rng: rng.poisson(wide)), x)


poisson_op = Op("poisson", "x", kernel=_poisson, infer=lambda x, **_: x)


@public()
def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor:
    """The number of successes in ``count`` trials of probability ``prob``; they broadcast. No gradient.

    Probability of k: ``(count over k) * prob**k * (1 - prob)**(count - k)``. Raises ValueError
    for a count that is not a whole number >= 0, or a probability outside [0, 1].

    >>> fw.binomial(fw.tensor([3.0, 5.0]), fw.tensor([1.0, 0.0]))
    tensor([3., 0.])
    """
    both = _real(count, "binomial", "count"), _real(prob, "binomial", "prob")
    kind = promote_types(count.dtype, prob.dtype)
    return binomial_op.run(*both, dtype=kind.numpy, generator=generator)


def _binomial(xp: Any, count: Any, prob: Any, *, dtype: Any, generator: Generator | None) -> Any:
    n, p = _host(count), _host(prob)
    if not np.all((n >= 0) & (n == np.rint(n))):
        raise ValueError("binomial: count must be whole numbers >= 0")
    if not np.all((p >= 0) & (p <= 1)):
        raise ValueError("binomial: prob must be in [0, 1]")
    whole, wide = n.astype(np.int64), p.astype(np.float64)
    place = backend_of(count).device_of(count)
    array = drawn(place, generator, lambda rng: rng.binomial(whole, wide))
    return move(np.asarray(array).astype(dtype), place)


binomial_op = Op("binomial", "count prob", kernel=_binomial)
