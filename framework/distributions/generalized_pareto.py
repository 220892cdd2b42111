"""The generalized Pareto distribution."""

from typing import Any

import framework as fw

from ..tensor import Tensor
from . import constraints
from .distribution import Distribution
from .utils import parameters

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """Excesses over ``loc``: ``P(X > x) = (1 + k (x - loc) / scale) ** (-1 / k)``, k the ``concentration``.

    For k = 0 the exponential distribution; for k < 0 it ends at ``loc - scale / k``.

    >>> fw.distributions.GeneralizedPareto(0.0, 1.0, 0.0).log_prob(fw.tensor(1.0))
    tensor(-1.)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive,
                       "concentration": constraints.real}
    has_rsample = True
    _parameters = {"loc": 0, "scale": 0, "concentration": 0}

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        (self.loc, self.scale, self.concentration), batch_shape = parameters(loc, scale, concentration)
        super().__init__(batch_shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> constraints.Constraint:  # type: ignore[override]
        """[loc, end]."""
        k = self.concentration
        end = fw.where(k < 0, self.loc - self.scale / k, fw.inf)
        return constraints.interval(self.loc, end)

    def _bent(self) -> tuple[Tensor, Tensor]:
        """Where k is near 0, and k with 1 there, so that nothing divides by it."""
        straight = self.concentration.abs() < fw.finfo(self.loc.dtype).eps
        return straight, fw.where(straight, 1.0, self.concentration)

    @property
    def mean(self) -> Tensor:
        """inf for k >= 1."""
        return fw.where(self.concentration < 1, self.loc + self.scale / (1 - self.concentration), fw.inf)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        """inf for k >= 1 / 2."""
        k = self.concentration
        return fw.where(k < 0.5, self.scale.square() / ((1 - k).square() * (1 - 2 * k)), fw.inf)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(fw.rand(shape, dtype=self.loc.dtype, device=self.loc.device))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        straight, k = self._bent()
        z = (value - self.loc) / self.scale
        return fw.where(straight, -z, -(1 + 1 / k) * (k * z).log1p()) - self.scale.log()

    def log_survival_function(self, value: Tensor) -> Tensor:
        """``log P(X > value)``."""
        if self._validate_args:
            self._validate_sample(value)
        straight, k = self._bent()
        z = (value - self.loc) / self.scale
        return fw.where(straight, -z, -(k * z).log1p() / k)

    def cdf(self, value: Tensor) -> Tensor:
        return -self.log_survival_function(value).expm1()

    def log_cdf(self, value: Tensor) -> Tensor:
        """``log P(X <= value)``."""
        return (-self.log_survival_function(value).exp()).log1p()

    def icdf(self, value: Tensor) -> Tensor:
        straight, k = self._bent()
        survived = (-value).log1p()
        return self.loc + self.scale * fw.where(straight, -survived, (-k * survived).expm1() / k)

    def entropy(self) -> Tensor:
        return self.scale.log() + self.concentration + 1
