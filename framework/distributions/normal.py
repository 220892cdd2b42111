"""The normal distribution."""

import math
from typing import Any

import framework as fw

from ..tensor import Tensor
from .exp_family import ExponentialFamily
from .location_scale import LocationScale
from .utils import standard_normal

__all__ = ["Normal"]


class Normal(LocationScale, ExponentialFamily):
    """The normal (Gaussian) distribution of mean ``loc`` and standard deviation ``scale``.

    Density: ``exp(-((x - loc) / scale) ** 2 / 2) / (scale sqrt(2 pi))``.

    >>> fw.distributions.Normal(0.0, 1.0).log_prob(fw.tensor([0.0, 1.0]))
    tensor([-0.9189, -1.4189])
    """

    _parameters = {"loc": 0, "scale": 0}
    _mean_carrier_measure = 0

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        return self.scale.square()

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.loc + self.scale * standard_normal(self._extended_shape(sample_shape), self.loc)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        turned = (value - self.loc) / self.scale
        return -0.5 * turned * turned - self.scale.log() - 0.5 * math.log(2 * math.pi)

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return fw.special.ndtr((value - self.loc) / self.scale)

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * fw.special.ndtri(value)

    def entropy(self) -> Tensor:
        return 0.5 + 0.5 * math.log(2 * math.pi) + self.scale.log()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        inverse = self.scale.square().reciprocal()
        return self.loc * inverse, -0.5 * inverse

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        return -0.25 * x.square() / y + 0.5 * (-math.pi / y).log()
