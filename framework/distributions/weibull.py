"""The Weibull distribution."""

from typing import Any

import framework as fw

from ..tensor import Tensor
from . import constraints
from .exponential import Exponential
from .transformed_distribution import TransformedDistribution
from .transforms.numbers import AffineTransform, PowerTransform
from .utils import euler_constant, parameters

__all__ = ["Weibull"]


class Weibull(TransformedDistribution):
    """``scale * x ** (1 / concentration)`` with x exponential of rate 1.

    Density: ``k / s (x / s)**(k - 1) exp(-(x / s)**k)``, s the scale, k the concentration.

    >>> fw.distributions.Weibull(1.0, 1.0).log_prob(fw.tensor(1.0))
    tensor(-1.)
    """

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive
    _parameters = {"scale": 0, "concentration": 0, "concentration_reciprocal": 0}

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        (self.scale, self.concentration), _ = parameters(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        base = Exponential(fw.ones_like(self.scale), validate_args=validate_args)
        steps = [PowerTransform(self.concentration_reciprocal), AffineTransform(0, self.scale)]
        super().__init__(base, steps, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.scale * (1 + self.concentration_reciprocal).lgamma().exp()

    @property
    def mode(self) -> Tensor:
        """0 for a concentration of at most 1."""
        inverse = self.concentration_reciprocal
        return self.scale * (1 - inverse).clamp(min=0) ** inverse

    @property
    def variance(self) -> Tensor:
        inverse = self.concentration_reciprocal
        return self.scale.square() * ((1 + 2 * inverse).lgamma().exp() - (2 * (1 + inverse).lgamma()).exp())

    def entropy(self) -> Tensor:
        inverse = self.concentration_reciprocal
        return euler_constant * (1 - inverse) + (self.scale * inverse).log() + 1
