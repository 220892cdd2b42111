"""Mixtures of distributions of one family."""

from typing import Any

import framework as fw

from ..tensor import Tensor
from . import constraints
from .categorical import Categorical
from .distribution import Distribution, _size

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """A component chosen by ``mixture_distribution``, then a sample of it.

    The last batch dimension of ``component_distribution`` counts the components.

    >>> D = fw.distributions
    >>> parts = D.Normal(fw.tensor([-1.0, 1.0]), 1.0)
    >>> D.MixtureSameFamily(D.Categorical(fw.ones(2)), parts).mean
    tensor(0.)
    """

    arg_constraints: dict[str, constraints.Constraint] = {}

    def __init__(self, mixture_distribution: Categorical, component_distribution: Distribution,
                 validate_args: bool | None = None) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(f"MixtureSameFamily: mixture_distribution must be a Categorical, got "
                             f"{type(mixture_distribution).__name__}")
        if not isinstance(component_distribution, Distribution):
            raise ValueError(f"MixtureSameFamily: component_distribution must be a Distribution, got "
                             f"{type(component_distribution).__name__}")
        parts, batch = mixture_distribution._num_events, component_distribution.batch_shape
        mixed = mixture_distribution.batch_shape
        if not batch or batch[-1] != parts or any(
                a != b and 1 not in (a, b) for a, b in zip(reversed(mixed), reversed(batch[:-1]))):
            raise ValueError(f"MixtureSameFamily: {parts} components of batch shape {list(mixed)} wanted a "
                             f"component_distribution of batch shape {[*mixed, parts]}, got {list(batch)}")
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        self._num_component = parts
        super().__init__(batch[:-1], component_distribution.event_shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        shape = _size(batch_shape)
        new = self._get_checked_instance(MixtureSameFamily, _instance)
        new._mixture_distribution = self._mixture_distribution.expand(shape)
        new._component_distribution = self._component_distribution.expand((*shape, self._num_component))
        return self._expanded(new, shape)

    @property
    def mixture_distribution(self) -> Categorical:
        """How likely each component is."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        """The components, along the last batch dimension."""
        return self._component_distribution

    @constraints.dependent_property
    def support(self) -> constraints.Constraint:  # type: ignore[override]
        """Inside the support of each component."""
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    def _pad(self, x: Tensor) -> Tensor:
        """With a dimension for the components."""
        return x.unsqueeze(-1 - len(self._event_shape))

    def _weights(self) -> Tensor:
        """The probabilities, with dimensions for an event."""
        probs = self._mixture_distribution.probs
        return probs.reshape((*probs.shape, *[1] * len(self._event_shape)))

    def _averaged(self, x: Tensor) -> Tensor:
        return (self._weights() * x).sum(-1 - len(self._event_shape))

    @property
    def mean(self) -> Tensor:
        return self._averaged(self._component_distribution.mean)

    @property
    def variance(self) -> Tensor:
        """The mean of the variances, plus the variance of the means."""
        parts = self._component_distribution
        return self._averaged(parts.variance) + self._averaged((parts.mean - self._pad(self.mean)).square())

    def cdf(self, x: Tensor) -> Tensor:
        return (self._component_distribution.cdf(self._pad(x)) * self._mixture_distribution.probs).sum(-1)

    def log_prob(self, x: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(x)
        log_prob = self._component_distribution.log_prob(self._pad(x))
        return (log_prob + self._mixture_distribution.logits.log_softmax(-1)).logsumexp(-1)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with fw.no_grad():
            events, event = len(self._event_shape), self._event_shape
            shape = (*_size(sample_shape), *self._batch_shape)
            picked = self._mixture_distribution.expand(self._batch_shape).sample(sample_shape)
            drawn = self._component_distribution.sample(sample_shape)
            index = picked.reshape((*shape, 1, *[1] * events)).expand((*shape, 1, *event))
            return drawn.gather(len(shape), index).squeeze(len(shape))

    def __repr__(self) -> str:
        return f"MixtureSameFamily({self._mixture_distribution}, {self._component_distribution})"
