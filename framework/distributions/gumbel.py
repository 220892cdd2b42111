"""The Gumbel distribution."""

import math
from typing import Any

import framework as fw

from ..tensor import Tensor
from . import constraints
from .transformed_distribution import TransformedDistribution
from .transforms.numbers import AffineTransform, ExpTransform
from .uniform import Uniform
from .utils import euler_constant, parameters

__all__ = ["Gumbel"]


class Gumbel(TransformedDistribution):
    """The law of maxima: ``loc - scale * log(-log(u))`` with u uniform in (0, 1).

    Density: ``exp(-(z + exp(-z))) / scale`` with ``z = (x - loc) / scale``.

    >>> fw.distributions.Gumbel(0.0, 1.0).log_prob(fw.tensor(0.0))
    tensor(-1.)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    _parameters = {"loc": 0, "scale": 0}

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        (self.loc, self.scale), batch_shape = parameters(loc, scale)
        info = fw.finfo(self.loc.dtype)
        low = fw.full(batch_shape, info.tiny, dtype=self.loc.dtype, device=self.loc.device)
        base = Uniform(low, fw.full_like(low, 1 - info.eps), validate_args=validate_args)
        steps = [ExpTransform().inv, AffineTransform(0, -fw.ones_like(self.scale)), ExpTransform().inv,
                 AffineTransform(self.loc, -self.scale)]
        super().__init__(base, steps, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * euler_constant

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return math.pi / 6 ** 0.5 * self.scale

    @property
    def variance(self) -> Tensor:
        return math.pi ** 2 / 6 * self.scale.square()

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        z = (self.loc - value) / self.scale
        return z - z.exp() - self.scale.log()

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return (-((self.loc - value) / self.scale).exp()).exp()

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc - self.scale * (-value.log()).log()

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + euler_constant)
