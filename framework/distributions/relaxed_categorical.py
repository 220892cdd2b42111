"""The relaxed categorical distribution."""

import math
from typing import Any

import framework as fw

from ..tensor import Tensor
from . import constraints
from .categorical import Categorical
from .distribution import Distribution, _size
from .relaxed import Relaxed
from .transforms.numbers import ExpTransform
from .utils import broadcast_all, uniform

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(Distribution):
    """``log_softmax((logits + Gumbel noise) / temperature)``: the logarithm of a relaxed one-hot vector.

    C. Maddison, A. Mnih and Y. Teh, "The concrete distribution", 2017.

    >>> from framework.distributions.relaxed_categorical import ExpRelaxedCategorical
    >>> ExpRelaxedCategorical(1.0, logits=fw.zeros(3)).event_shape
    (3,)
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.real_vector  # of logarithms that sum to 1 under exp
    has_rsample = True

    def __init__(self, temperature: Any, probs: Tensor | None = None, logits: Tensor | None = None,
                 validate_args: bool | None = None) -> None:
        self._categorical = Categorical(probs, logits)
        self.temperature = temperature
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        shape = _size(batch_shape)
        new = self._get_checked_instance(ExpRelaxedCategorical, _instance)
        new._categorical = self._categorical.expand(shape)
        return self._expanded(new, shape)

    @property
    def param_shape(self) -> tuple[int, ...]:
        """The shape of ``probs`` and ``logits``."""
        return self._categorical.param_shape

    @property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        return self._categorical.logits

    @property
    def probs(self) -> Tensor:
        """The probabilities, which sum to 1."""
        return self._categorical.probs

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        noise = -(-uniform(self._extended_shape(sample_shape), self.logits).log()).log()
        return ((self.logits + noise) / self.temperature).log_softmax(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        n = self._categorical._num_events
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        temperature = fw.as_tensor(self.temperature, dtype=logits.dtype, device=logits.device)
        scale = math.lgamma(n) + (n - 1) * temperature.log()
        return (logits - value * temperature).log_softmax(-1).sum(-1) + scale


class RelaxedOneHotCategorical(Relaxed):
    """Points of a simplex that go to one-hot vectors of ``probs`` as the temperature goes to 0, with a
    gradient.

    C. Maddison et al., "The concrete distribution", 2017; E. Jang et al., "Categorical reparameterization
    with Gumbel-softmax", 2017.

    >>> d = fw.distributions.RelaxedOneHotCategorical(0.5, logits=fw.zeros(3))
    >>> d.rsample((2,)).shape
    (2, 3)
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    _parameters = {}

    def __init__(self, temperature: Any, probs: Tensor | None = None, logits: Tensor | None = None,
                 validate_args: bool | None = None) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)
