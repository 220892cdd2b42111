"""The half normal distribution."""

import math

from ..tensor import Tensor
from .half import Half
from .normal import Normal

__all__ = ["HalfNormal"]


class HalfNormal(Half):
    """``|x|`` with x normal of mean 0 and standard deviation ``scale``.

    >>> fw.distributions.HalfNormal(1.0).log_prob(fw.tensor(0.0))
    tensor(-0.2258)
    """

    _parameters = {}
    whole = Normal

    @property
    def mean(self) -> Tensor:
        return self.scale * (2 / math.pi) ** 0.5

    @property
    def variance(self) -> Tensor:
        return self.scale.square() * (1 - 2 / math.pi)
