"""The geometric distribution."""

from typing import Any

import framework as fw

from ..tensor import Tensor
from . import constraints
from .distribution import Distribution
from .utils import Coin, need_all, uniform

__all__ = ["Geometric"]


class Geometric(Coin, Distribution):
    """Failures before the first success of probability ``probs``: probability ``(1 - p)**k p``.

    >>> fw.distributions.Geometric(0.5).log_prob(fw.tensor(0.0))
    tensor(-0.6931)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer
    _parameters = {"probs": 0, "logits": 0}

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        _, batch_shape = self._take(probs, logits)
        super().__init__(batch_shape, validate_args=validate_args)
        if self._validate_args and probs is not None:
            text = ("Geometric: expected parameter probs to be above 0 everywhere: without a success the "
                    "waiting never ends")
            need_all(self.probs > 0, text, lambda: text)

    @property
    def mean(self) -> Tensor:
        return 1 / self.probs - 1

    @property
    def mode(self) -> Tensor:
        return fw.zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return (1 / self.probs - 1) / self.probs

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with fw.no_grad():
            u = uniform(self._extended_shape(sample_shape), self.probs)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return fw.special.xlog1py(value, -self.probs) + self.probs.log()

    def entropy(self) -> Tensor:
        binary = fw.nn.functional.binary_cross_entropy_with_logits
        return binary(self.logits, self.probs, reduction="none") / self.probs
