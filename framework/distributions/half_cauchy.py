"""The half Cauchy distribution."""

import math
from typing import Any

import framework as fw

from ..tensor import Tensor
from . import constraints
from .cauchy import Cauchy
from .transformed_distribution import TransformedDistribution
from .transforms.numbers import AbsTransform

__all__ = ["HalfCauchy"]


class HalfCauchy(TransformedDistribution):
    """``|x|`` with x of the Cauchy distribution of median 0 and half width ``scale``.

    >>> fw.distributions.HalfCauchy(1.0).log_prob(fw.tensor(0.0))
    tensor(-0.4516)
    """

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _parameters = {}

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Cauchy(0.0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)

    @property
    def scale(self) -> Tensor:
        """The half width of x."""
        return self.base_dist.scale

    @property
    def mean(self) -> Tensor:
        """inf."""
        return fw.full_like(self.scale, fw.inf)

    @property
    def mode(self) -> Tensor:
        return fw.zeros_like(self.scale)

    @property
    def variance(self) -> Tensor:
        """inf."""
        return self.base_dist.variance

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return fw.where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -fw.inf)

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, value: Tensor) -> Tensor:
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)
