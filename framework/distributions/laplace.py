"""The Laplace distribution."""

from typing import Any

from ..tensor import Tensor
from .location_scale import LocationScale
from .utils import uniform

__all__ = ["Laplace"]


class Laplace(LocationScale):
    """The Laplace (double exponential) distribution: density ``exp(-|x - loc| / scale) / (2 scale)``.

    >>> fw.distributions.Laplace(0.0, 1.0).log_prob(fw.tensor(0.0))
    tensor(-0.6931)
    """

    _parameters = {"loc": 0, "scale": 0}

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale.square()

    @property
    def stddev(self) -> Tensor:
        return 2 ** 0.5 * self.scale

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.icdf(uniform(self._extended_shape(sample_shape), self.loc))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return -(2 * self.scale).log() - (value - self.loc).abs() / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        off = value - self.loc
        return 0.5 - 0.5 * off.sign() * (-off.abs() / self.scale).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        off = value - 0.5
        return self.loc - self.scale * off.sign() * (-2 * off.abs()).log1p()

    def entropy(self) -> Tensor:
        return 1 + (2 * self.scale).log()
