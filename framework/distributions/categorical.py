"""The categorical distribution: one of several classes."""

import math
from typing import Any

import framework as fw

from ..ops.record.batched import any_batched
from ..tensor import Tensor
from . import constraints
from .distribution import Distribution, all_pairs
from .utils import lazy_property, logits_to_probs, one_of, probs_to_logits

__all__ = ["Categorical"]


class Categorical(Distribution):
    """A class 0 .. n - 1 with probabilities in proportion to ``probs`` (..., n), or ``exp(logits)``.

    Both are normalised. ``log_prob`` takes class numbers of any dtype.

    >>> d = fw.distributions.Categorical(probs=fw.tensor([1.0, 3.0]))
    >>> d.probs, d.log_prob(fw.tensor([0, 1]))
    (tensor([0.2500, 0.7500]), tensor([-1.3863, -0.2877]))
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _parameters = {"probs": 1, "logits": 1}

    def __init__(self, probs: Tensor | None = None, logits: Tensor | None = None,
                 validate_args: bool | None = None) -> None:
        name, value = one_of("Categorical", probs=probs, logits=logits)
        if value.ndim < 1:
            raise ValueError(f"Categorical: {name} must have at least 1 dimension, that of the classes")
        if name == "probs":
            self.probs = value / value.sum(-1, keepdim=True)
        else:
            self.logits = value - value.logsumexp(-1, keepdim=True)
        super().__init__(self._param.shape[:-1], validate_args=validate_args)

    @property
    def _param(self) -> Tensor:
        return self.__dict__["probs" if "probs" in self.__dict__ else "logits"]

    @property
    def _num_events(self) -> int:
        return self._param.shape[-1]

    @property
    def param_shape(self) -> tuple[int, ...]:
        """The shape of ``probs`` and ``logits``."""
        return self._param.shape

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:  # type: ignore[override]
        """The class numbers."""
        return constraints.integer_interval(0, self._num_events - 1)

    @lazy_property
    def logits(self) -> Tensor:
        """The logarithms of ``probs``."""
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self) -> Tensor:
        """The probabilities, which sum to 1."""
        return logits_to_probs(self.logits)

    @property
    def mean(self) -> Tensor:
        """nan: class numbers have no mean."""
        return self._param.new_full(self.batch_shape, fw.nan)

    @property
    def mode(self) -> Tensor:
        return self.probs.argmax(-1)

    @property
    def variance(self) -> Tensor:
        """nan: class numbers have no variance."""
        return self._param.new_full(self.batch_shape, fw.nan)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with fw.no_grad():
            shape = self._extended_shape(sample_shape)
            rows = self.probs.reshape(-1, self._num_events)
            count = math.prod(sample_shape)
            if count == 0 or rows.shape[0] == 0:
                return fw.zeros(shape, dtype=fw.int64, device=rows.device)
            if any_batched((rows._array,)):  # under vmap numbers are drawn for all examples at once
                below = rows.cumsum(-1)[:, :-1] / rows.sum(-1, keepdim=True)
                drawn = fw.rand(count, rows.shape[0], 1, dtype=rows.dtype, device=rows.device)
                return (drawn >= below).sum(-1).reshape(shape)
            return fw.multinomial(rows, count, True).T.reshape(shape)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        value, logits = fw.broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return logits.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        logits = self.logits.clamp(min=fw.finfo(self.logits.dtype).min)  # 0 * -inf would be nan
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = fw.arange(self._num_events, device=self._param.device)
        return all_pairs(values, self.batch_shape, 0, expand)
