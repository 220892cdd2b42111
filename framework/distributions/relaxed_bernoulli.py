"""The relaxed Bernoulli distribution."""

from typing import Any

import framework as fw

from ..tensor import Tensor
from . import constraints
from .distribution import Distribution
from .relaxed import Relaxed
from .transforms.numbers import SigmoidTransform
from .utils import Coin, broadcast_all, uniform

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(Coin, Distribution):
    """``(logits + noise) / temperature`` with logistic noise: the logit of a relaxed coin.

    C. Maddison, A. Mnih and Y. Teh, "The concrete distribution", 2017.

    >>> from framework.distributions.relaxed_bernoulli import LogitRelaxedBernoulli
    >>> LogitRelaxedBernoulli(1.0, logits=0.0).log_prob(fw.tensor(0.0))
    tensor(-1.3863)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    has_rsample = True
    _parameters = {"probs": 0, "logits": 0}

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None,
                 validate_args: bool | None = None) -> None:
        self.temperature = temperature
        _, batch_shape = self._take(probs, logits)
        super().__init__(batch_shape, validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        u = uniform(self._extended_shape(sample_shape), self._param)
        return (u.log() - (-u).log1p() + self.logits) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        (temperature, _) = broadcast_all(self.temperature, logits)
        off = logits - value * temperature
        return temperature.log() + off - 2 * fw.nn.functional.softplus(off)


class RelaxedBernoulli(Relaxed):
    """Numbers in (0, 1) that go to coins of ``probs`` as the temperature goes to 0, with a gradient.

    C. Maddison et al., "The concrete distribution", 2017; E. Jang et al., "Categorical reparameterization
    with Gumbel-softmax", 2017.

    >>> fw.distributions.RelaxedBernoulli(1.0, probs=0.5).log_prob(fw.tensor(0.5))
    tensor(0.)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    _parameters = {}

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None,
                 validate_args: bool | None = None) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)
