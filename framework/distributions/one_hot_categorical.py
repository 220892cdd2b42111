"""Categorical distributions over one-hot vectors."""

from typing import Any

import framework as fw

from ..tensor import Tensor
from . import constraints
from .categorical import Categorical
from .distribution import Distribution, _size, all_pairs
from .utils import indicators

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


class OneHotCategorical(Distribution):
    """One-hot vectors of classes with probabilities in proportion to ``probs`` (..., n), or ``exp(logits)``.

    >>> d = fw.distributions.OneHotCategorical(probs=fw.tensor([1.0, 3.0]))
    >>> d.log_prob(fw.tensor([0.0, 1.0]))
    tensor(-0.2877)
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(self, probs: Tensor | None = None, logits: Tensor | None = None,
                 validate_args: bool | None = None) -> None:
        self._categorical = Categorical(probs, logits)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        shape = _size(batch_shape)
        new = self._get_checked_instance(OneHotCategorical, _instance)
        new._categorical = self._categorical.expand(shape)
        return self._expanded(new, shape)

    @property
    def _param(self) -> Tensor:
        return self._categorical._param

    @property
    def probs(self) -> Tensor:
        """The probabilities, which sum to 1."""
        return self._categorical.probs

    @property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        return self._categorical.logits

    @property
    def param_shape(self) -> tuple[int, ...]:
        """The shape of ``probs`` and ``logits``."""
        return self._categorical.param_shape

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return self._one_hot(self.probs.argmax(-1))

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def _one_hot(self, classes: Tensor) -> Tensor:
        return indicators(classes, self._event_shape[0], self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with fw.no_grad():
            return self._one_hot(self._categorical.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = self.event_shape[0]
        values = fw.eye(n, dtype=self._param.dtype, device=self._param.device)
        return all_pairs(values, self.batch_shape, 1, expand)


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """One-hot samples whose gradient is that of ``probs``: the straight-through estimator.

    Y. Bengio, N. Leonard and A. Courville, "Estimating or propagating gradients through stochastic neurons",
    2013.

    >>> p = fw.tensor([0.5, 0.5], requires_grad=True)
    >>> fw.distributions.OneHotCategoricalStraightThrough(probs=p).rsample().requires_grad
    True
    """

    has_rsample = True

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())
