"""The continuous Bernoulli distribution."""

import math
from typing import Any

import framework as fw

from ..tensor import Tensor
from . import constraints
from .exp_family import ExponentialFamily
from .utils import Coin, broadcast_all, clamp_probs, uniform

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(Coin, ExponentialFamily):
    """Numbers in [0, 1] of density ``C p**x (1 - p)**(1 - x)``, p = ``probs``.

    ``C = 2 atanh(1 - 2p) / (1 - 2p)``. For p within ``lims``, around 1/2, Taylor series are used. G.
    Loaiza-Ganem and J. Cunningham, "The continuous Bernoulli: fixing a pervasive error in variational
    autoencoders", 2019.

    >>> fw.distributions.ContinuousBernoulli(0.5).log_prob(fw.tensor(0.3))
    tensor(0.)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _parameters = {"probs": 0, "logits": 0}
    _mean_carrier_measure = 0

    def __init__(self, probs: Any = None, logits: Any = None, lims: tuple[float, float] = (0.499, 0.501),
                 validate_args: bool | None = None) -> None:
        _, batch_shape = self._take(probs, logits)
        self._lims = lims
        super().__init__(batch_shape, validate_args=validate_args)
        if probs is not None:
            self.probs = clamp_probs(self.probs)

    def _near(self) -> tuple[Tensor, Tensor, Tensor]:
        """Where p is near 1/2, p with a harmless number there, and ``p - 1/2``."""
        near = (self.probs > self._lims[0]) & (self.probs < self._lims[1])
        return near, fw.where(near, self._lims[0], self.probs), self.probs - 0.5

    def _log_constant(self) -> Tensor:
        """``log C``."""
        near, p, off = self._near()
        known = ((-p).log1p() - p.log()).abs().log() - (1 - 2 * p).abs().log()
        square = off.square()
        return fw.where(near, math.log(2) + (4 / 3 + 104 / 45 * square) * square, known)

    @property
    def mean(self) -> Tensor:
        near, p, off = self._near()
        known = p / (2 * p - 1) + 1 / ((-p).log1p() - p.log())
        return fw.where(near, 0.5 + (1 / 3 + 16 / 45 * off.square()) * off, known)

    @property
    def stddev(self) -> Tensor:
        return self.variance.sqrt()

    @property
    def variance(self) -> Tensor:
        near, p, off = self._near()
        known = p * (p - 1) / (1 - 2 * p).square() + 1 / ((-p).log1p() - p.log()).square()
        square = off.square()
        return fw.where(near, 1 / 12 - (1 / 15 - 128 / 945 * square) * square, known)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.icdf(uniform(self._extended_shape(sample_shape), self.probs))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        binary = fw.nn.functional.binary_cross_entropy_with_logits
        return self._log_constant() - binary(logits, value, reduction="none")

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        near, p, off = self._near()
        known = (p ** value * (1 - p) ** (1 - value) + p - 1) / (2 * p - 1)
        inside = fw.where(near, value - 2 * off * value * (1 - value), known)
        return fw.where(value <= 0, 0.0, fw.where(value >= 1, 1.0, inside))

    def icdf(self, value: Tensor) -> Tensor:
        near, p, off = self._near()
        known = ((-p + value * (2 * p - 1)).log1p() - (-p).log1p()) / (p.log() - (-p).log1p())
        return fw.where(near, value + 2 * off * value * (1 - value), known)

    def entropy(self) -> Tensor:
        tails = (-self.probs).log1p()
        return self.mean * (tails - self.probs.log()) - self._log_constant() - tails

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        """``log((exp(x) - 1) / x)``."""
        low, high = (math.log(p / (1 - p)) for p in self._lims)
        near = (x > low) & (x < high)
        safe = fw.where(near, high, x)
        square = x.square()
        known = safe.expm1().abs().log() - safe.abs().log()
        return fw.where(near, 0.5 * x + square / 24 - square.square() / 2880, known)
