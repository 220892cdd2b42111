"""The Kumaraswamy distribution."""

from typing import Any

import framework as fw

from ..tensor import Tensor
from . import constraints
from .transformed_distribution import TransformedDistribution
from .transforms.numbers import AffineTransform, PowerTransform
from .uniform import Uniform
from .utils import euler_constant, parameters

__all__ = ["Kumaraswamy"]


class Kumaraswamy(TransformedDistribution):
    """A relative of the beta distribution: ``(1 - u**(1 / b)) ** (1 / a)`` with u uniform in (0, 1).

    Density: ``a b x**(a - 1) (1 - x**a)**(b - 1)``, a = ``concentration1``, b = ``concentration0``.

    >>> fw.distributions.Kumaraswamy(1.0, 1.0).log_prob(fw.tensor(0.5))
    tensor(0.)
    """

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True
    _parameters = {"concentration1": 0, "concentration0": 0}

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        both, _ = parameters(concentration1, concentration0)
        self.concentration1, self.concentration0 = both
        base = Uniform(fw.zeros_like(both[0]), fw.ones_like(both[0]), validate_args=validate_args)
        steps = [PowerTransform(self.concentration0.reciprocal()), AffineTransform(1.0, -1.0),
                 PowerTransform(self.concentration1.reciprocal())]
        super().__init__(base, steps, validate_args=validate_args)

    def _moment(self, n: int) -> Tensor:
        """The expectation of ``x ** n``: ``b B(1 + n / a, b)``."""
        b, order = self.concentration0, 1 + n / self.concentration1
        return (b.log() + order.lgamma() + b.lgamma() - (order + b).lgamma()).exp()

    @property
    def mean(self) -> Tensor:
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        """``((a - 1) / (a b - 1)) ** (1 / a)``; nan where a or b is below 1."""
        a, b = self.concentration1, self.concentration0
        known = ((a - 1) / (a * b - 1)) ** a.reciprocal()
        return fw.where((a < 1) | (b < 1), fw.nan, known)

    @property
    def variance(self) -> Tensor:
        return self._moment(2) - self._moment(1).square()

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        return (1 - 1 / b) + (1 - 1 / a) * ((b + 1).digamma() + euler_constant) - a.log() - b.log()
