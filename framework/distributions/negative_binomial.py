"""The negative binomial distribution."""

from typing import Any

import framework as fw

from ..tensor import Tensor
from . import constraints
from .distribution import Distribution
from .utils import Coin

__all__ = ["NegativeBinomial"]


class NegativeBinomial(Coin, Distribution):
    """Successes of probability ``probs`` before ``total_count`` failures, which may be any number >= 0.

    Probability: ``gamma(n + k) / (gamma(n) k!) (1 - p)**n p**k``.

    >>> fw.distributions.NegativeBinomial(1.0, probs=0.5).log_prob(fw.tensor(0.0))
    tensor(-0.6931)
    """

    arg_constraints = {"total_count": constraints.greater_than_eq(0),
                       "probs": constraints.half_open_interval(0.0, 1.0), "logits": constraints.real}
    support = constraints.nonnegative_integer
    _parameters = {"total_count": 0, "probs": 0, "logits": 0}

    def __init__(self, total_count: Any, probs: Any = None, logits: Any = None,
                 validate_args: bool | None = None) -> None:
        if isinstance(total_count, Tensor) and not total_count.is_floating_point():
            given = probs if probs is not None else logits
            total_count = total_count.to(given.dtype if isinstance(given, Tensor) else fw.get_default_dtype())
        (self.total_count,), batch_shape = self._take(probs, logits, total_count)
        super().__init__(batch_shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.mean / (-self.logits).sigmoid()

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with fw.no_grad():
            shape = self._extended_shape(sample_shape)
            none = self.total_count == 0
            draw = fw._standard_gamma(fw.where(none, 1.0, self.total_count).expand(shape))
            return fw.poisson(fw.where(none, 0.0, draw * self.logits.exp()))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logsigmoid, n = fw.nn.functional.logsigmoid, self.total_count
        certain = (n == 0) & (value == 0)  # lgamma(0) - lgamma(0)
        start = fw.where(certain, 1.0, n + fw.zeros_like(value))
        ways = (start + value).lgamma() - (value + 1).lgamma() - start.lgamma()
        return ways + n * logsigmoid(-self.logits) + value * logsigmoid(self.logits)
