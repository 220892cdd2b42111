"""The beta distribution."""

from typing import Any

import framework as fw

from ..tensor import Tensor
from . import constraints
from .exp_family import ExponentialFamily
from .utils import parameters

__all__ = ["Beta"]


class Beta(ExponentialFamily):
    """The beta distribution on [0, 1] of ``concentration1`` (a) and ``concentration0`` (b).

    Density: ``x**(a - 1) (1 - x)**(b - 1) / B(a, b)``. Samples have a pathwise gradient.

    >>> fw.distributions.Beta(2.0, 2.0).log_prob(fw.tensor(0.5))
    tensor(0.4055)
    """

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True
    _parameters = {"concentration1": 0, "concentration0": 0}

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        both, batch_shape = parameters(concentration1, concentration0)
        self.concentration1, self.concentration0 = both
        super().__init__(batch_shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Tensor:
        """The highest point; 1 where both ends are infinitely high."""
        a, b = (self.concentration1 - 1).clamp(min=0), (self.concentration0 - 1).clamp(min=0)
        ends = (self.concentration1 < 1) & (self.concentration0 < 1)
        return fw.where(ends, 1.0, a / (a + b))

    @property
    def variance(self) -> Tensor:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total.square() * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        both = fw.stack([self.concentration1.expand(shape), self.concentration0.expand(shape)], -1)
        return fw._sample_dirichlet(both)[..., 0]

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        a, b = self.concentration1, self.concentration0
        return (fw.xlogy(a - 1, value) + fw.special.xlog1py(b - 1, -value)
                - self._log_normalizer(a, b))

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        return (self._log_normalizer(a, b) - (a - 1) * a.digamma() - (b - 1) * b.digamma()
                + (a + b - 2) * (a + b).digamma())

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.concentration1, self.concentration0

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        return x.lgamma() + y.lgamma() - (x + y).lgamma()
