"""The inverse gamma distribution."""

from typing import Any

import framework as fw

from ..tensor import Tensor
from . import constraints
from .gamma import Gamma
from .transformed_distribution import TransformedDistribution
from .transforms.numbers import PowerTransform

__all__ = ["InverseGamma"]


class InverseGamma(TransformedDistribution):
    """``1 / x`` with x of ``Gamma(concentration, rate)``.

    >>> fw.distributions.InverseGamma(2.0, 1.0).log_prob(fw.tensor(1.0))
    tensor(-1.)
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True
    _parameters = {}

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args=validate_args)
        super().__init__(base, PowerTransform(-base.rate.new_ones(())), validate_args=validate_args)

    @property
    def concentration(self) -> Tensor:
        """The shape of x."""
        return self.base_dist.concentration

    @property
    def rate(self) -> Tensor:
        """The inverse scale of x."""
        return self.base_dist.rate

    @property
    def mean(self) -> Tensor:
        """inf for a concentration <= 1."""
        return fw.where(self.concentration > 1, self.rate / (self.concentration - 1), fw.inf)

    @property
    def mode(self) -> Tensor:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Tensor:
        """inf for a concentration <= 2."""
        a = self.concentration
        return fw.where(a > 2, self.rate.square() / ((a - 1).square() * (a - 2)), fw.inf)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()
