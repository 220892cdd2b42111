"""Batch dimensions that count as part of an event."""

from typing import Any

from ..tensor import Tensor
from . import constraints
from .distribution import Distribution, _size
from .utils import sum_rightmost

__all__ = ["Independent"]


class Independent(Distribution):
    """A distribution whose last ``reinterpreted_batch_ndims`` batch dimensions belong to the event.

    Log probabilities are summed over them.

    >>> d = fw.distributions.Independent(fw.distributions.Normal(fw.zeros(3), 1.0), 1)
    >>> d.batch_shape, d.event_shape, d.log_prob(fw.zeros(3))
    ((), (3,), tensor(-2.7568))
    """

    arg_constraints: dict[str, constraints.Constraint] = {}

    def __init__(self, base_distribution: Distribution, reinterpreted_batch_ndims: int,
                 validate_args: bool | None = None) -> None:
        batch = base_distribution.batch_shape
        if reinterpreted_batch_ndims > len(batch):
            raise ValueError(f"Independent: reinterpreted_batch_ndims={reinterpreted_batch_ndims}, but the "
                             f"base distribution has {len(batch)} batch dimensions, {list(batch)}")
        kept = len(batch) - reinterpreted_batch_ndims
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, reinterpreted_batch_ndims
        super().__init__(batch[:kept], (*batch[kept:], *base_distribution.event_shape), validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        shape = _size(batch_shape)
        new = self._get_checked_instance(Independent, _instance)
        inner = self.event_shape[:self.reinterpreted_batch_ndims]
        new.base_dist = self.base_dist.expand((*shape, *inner))
        return self._expanded(new, shape)

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        """Whether samples have a gradient."""
        return self.base_dist.has_rsample

    @property
    def has_enumerate_support(self) -> bool:  # type: ignore[override]
        """Whether the values can be listed: only where no dimension was taken in."""
        return self.reinterpreted_batch_ndims == 0 and self.base_dist.has_enumerate_support

    @constraints.dependent_property
    def support(self) -> constraints.Constraint:  # type: ignore[override]
        """That of the base distribution, over more dimensions."""
        region = self.base_dist.support
        return constraints.independent(region, self.reinterpreted_batch_ndims) \
            if self.reinterpreted_batch_ndims else region

    @property
    def mean(self) -> Tensor:
        return self.base_dist.mean

    @property
    def mode(self) -> Tensor:
        return self.base_dist.mode

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        return sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        if self.reinterpreted_batch_ndims > 0:
            raise NotImplementedError("Independent: the values of several batch dimensions together are too "
                                      "many to list; call enumerate_support of base_dist")
        return self.base_dist.enumerate_support(expand)

    def __repr__(self) -> str:
        return f"Independent({self.base_dist}, {self.reinterpreted_batch_ndims})"
