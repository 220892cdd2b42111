"""The Cauchy distribution."""

import math
from typing import Any

import framework as fw

from ..tensor import Tensor
from .location_scale import LocationScale

__all__ = ["Cauchy"]


class Cauchy(LocationScale):
    """The Cauchy (Lorentz) distribution of median ``loc`` and half width ``scale``.

    Density: ``1 / (pi scale (1 + ((x - loc) / scale)**2))``. It has no mean.

    >>> fw.distributions.Cauchy(0.0, 1.0).log_prob(fw.tensor(0.0))
    tensor(-1.1447)
    """

    _parameters = {"loc": 0, "scale": 0}

    @property
    def mean(self) -> Tensor:
        """nan: the integral does not exist."""
        return fw.full_like(self.loc, fw.nan)

    @property
    def variance(self) -> Tensor:
        """inf."""
        return fw.full_like(self.loc, fw.inf)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(fw.rand(shape, dtype=self.loc.dtype, device=self.loc.device))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        turned = (value - self.loc) / self.scale
        return -math.log(math.pi) - self.scale.log() - turned.square().log1p()

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return ((value - self.loc) / self.scale).atan() / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * (math.pi * (value - 0.5)).tan()

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + self.scale.log()
