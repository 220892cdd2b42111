"""Student's t distribution."""

import math
from typing import Any

import framework as fw

from ..tensor import Tensor
from . import constraints
from .distribution import Distribution
from .utils import parameters, standard_normal

__all__ = ["StudentT"]


class StudentT(Distribution):
    """``loc + scale * t`` with t of ``df`` degrees of freedom: normal over the root of chi-square / df.

    Density of t: ``(1 + t**2 / df) ** (-(df + 1) / 2)``, normalised.

    >>> fw.distributions.StudentT(1.0).log_prob(fw.tensor(0.0))
    tensor(-1.1447)
    """

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _parameters = {"df": 0, "loc": 0, "scale": 0}

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        (self.df, self.loc, self.scale), batch_shape = parameters(df, loc, scale)
        super().__init__(batch_shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """nan for df <= 1."""
        return fw.where(self.df > 1, self.loc, fw.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        """inf for df <= 2, nan for df <= 1."""
        known = self.scale.square() * self.df / (self.df - 2)
        return fw.where(self.df > 2, known, fw.where(self.df > 1, fw.inf, fw.nan))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        half = fw._standard_gamma((self.df / 2).expand(shape))  # of a chi-square number
        return self.loc + self.scale * standard_normal(shape, self.df) * (2 * half / self.df).rsqrt()

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        turned = (value - self.loc) / self.scale
        return -0.5 * (self.df + 1) * (turned.square() / self.df).log1p() - self._log_constant()

    def _log_constant(self) -> Tensor:
        """The logarithm of what the density is divided by."""
        half = self.df / 2
        return (self.scale.log() + 0.5 * (self.df * math.pi).log() + half.lgamma()
                - (half + 0.5).lgamma())

    def entropy(self) -> Tensor:
        half = self.df / 2
        return self._log_constant() + (half + 0.5) * ((half + 0.5).digamma() - half.digamma())
