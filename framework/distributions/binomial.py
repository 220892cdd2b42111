"""The binomial distribution."""

from typing import Any

import framework as fw

from ..tensor import Tensor
from . import constraints
from .distribution import Distribution, all_pairs
from .utils import Coin, all_hold

__all__ = ["Binomial"]


class Binomial(Coin, Distribution):
    """Successes in ``total_count`` trials of probability ``probs`` (or ``sigmoid(logits)``).

    Probability: ``(n over k) p**k (1 - p)**(n - k)``.

    >>> fw.distributions.Binomial(2, probs=0.5).log_prob(fw.tensor(1.0))
    tensor(-0.6931)
    """

    arg_constraints = {"total_count": constraints.nonnegative_integer,
                       "probs": constraints.unit_interval, "logits": constraints.real}
    has_enumerate_support = True
    _parameters = {"total_count": 0, "probs": 0, "logits": 0}

    def __init__(self, total_count: Any = 1, probs: Any = None, logits: Any = None,
                 validate_args: bool | None = None) -> None:
        if isinstance(total_count, Tensor) and not total_count.is_floating_point():
            given = probs if probs is not None else logits
            total_count = total_count.to(given.dtype if isinstance(given, Tensor) else fw.get_default_dtype())
        (self.total_count,), batch_shape = self._take(probs, logits, total_count)
        super().__init__(batch_shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:  # type: ignore[override]
        """0 to total_count."""
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return ((self.total_count + 1) * self.probs).floor().minimum(self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with fw.no_grad():
            shape = self._extended_shape(sample_shape)
            return fw.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        n = self.total_count
        ways = (n + 1).lgamma() - (value + 1).lgamma() - (n - value + 1).lgamma()
        return ways + value * self.logits - n * fw.nn.functional.softplus(self.logits)

    def entropy(self) -> Tensor:
        """By summing up; total_count must be one number for the whole batch."""
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(log_prob.exp() * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = self.total_count
        if n.numel() == 0 or not all_hold(n == n.max()):
            raise NotImplementedError("Binomial: the values are listed only where total_count is one number "
                                      "for the whole batch")
        values = fw.arange(int(n.max()) + 1, dtype=self._param.dtype, device=self._param.device)
        return all_pairs(values, self.batch_shape, 0, expand)
