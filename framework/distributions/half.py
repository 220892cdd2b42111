"""What halves of symmetric distributions share: ``|x|`` has twice the density of x, and half its range."""

import math
from typing import Any

import framework as fw

from ..tensor import Tensor
from . import constraints
from .distribution import Distribution
from .transformed_distribution import TransformedDistribution
from .transforms.numbers import AbsTransform


class Half(TransformedDistribution):
    """``|x|`` with x of the distribution ``whole``, which is symmetric about 0."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    whole: type[Distribution]

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        whole: Any = self.whole
        super().__init__(whole(0.0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)

    @property
    def scale(self) -> Tensor:
        """That of x."""
        return self.base_dist.scale

    @property
    def mode(self) -> Tensor:
        return fw.zeros_like(self.scale)

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
