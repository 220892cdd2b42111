"""The Bernoulli distribution: a coin."""

from typing import Any

import framework as fw

from ..tensor import Tensor
from . import constraints
from .distribution import all_pairs
from .exp_family import ExponentialFamily
from .utils import Coin, broadcast_all

__all__ = ["Bernoulli"]


class Bernoulli(Coin, ExponentialFamily):
    """1 with probability ``probs`` (or ``sigmoid(logits)``), else 0.

    Probability: ``probs ** x * (1 - probs) ** (1 - x)``.

    >>> fw.distributions.Bernoulli(probs=0.25).log_prob(fw.tensor(1.0))
    tensor(-1.3863)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True
    _parameters = {"probs": 0, "logits": 0}
    _mean_carrier_measure = 0

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        _, batch_shape = self._take(probs, logits)
        super().__init__(batch_shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        """The likelier value; nan where both are as likely."""
        likelier = (self.probs >= 0.5).to(self.probs.dtype)
        return likelier.masked_fill(self.probs == 0.5, fw.nan)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with fw.no_grad():
            return fw.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -fw.nn.functional.binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Tensor:
        return fw.nn.functional.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = fw.arange(2, dtype=self._param.dtype, device=self._param.device)
        return all_pairs(values, self.batch_shape, 0, expand)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.probs.logit(),)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return fw.nn.functional.softplus(x)
