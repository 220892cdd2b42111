"""Distributions of transformed random numbers."""

from typing import Any, ClassVar

from ..tensor import Tensor
from . import constraints
from .distribution import Distribution, _owner, _size
from .independent import Independent
from .transforms.base import ComposeTransform, Transform
from .utils import sum_rightmost

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """The distribution of ``y = f(x)``, x of ``base_distribution`` and f the transforms, the first one first.

    Density: ``p(x) / |det dy/dx|`` with ``x = f^-1(y)``.

    >>> D = fw.distributions
    >>> d = D.TransformedDistribution(D.Normal(0.0, 1.0), [D.ExpTransform()])
    >>> d.log_prob(fw.tensor(1.0))
    tensor(-0.9189)
    """

    arg_constraints: dict[str, constraints.Constraint] = {}
    _parameters: ClassVar[dict[str, int]] = {}

    def __init__(self, base_distribution: Distribution, transforms: Any,
                 validate_args: bool | None = None) -> None:
        parts = transforms if isinstance(transforms, (list, tuple)) else [transforms]
        if not all(isinstance(t, Transform) for t in parts):
            raise ValueError("TransformedDistribution: transforms must be a Transform or a list of them, "
                             f"got {transforms!r}")
        self.transforms: list[Transform] = list(parts)
        joined = ComposeTransform(self.transforms)
        base = (*base_distribution.batch_shape, *base_distribution.event_shape)
        if len(base) < joined.domain.event_dim:
            raise ValueError("TransformedDistribution: the transforms take events of "
                             f"{joined.domain.event_dim} "
                             f"dimensions, the base distribution has shape {list(base)}")
        shape = tuple(joined.forward_shape(base))
        base_distribution = base_distribution.expand(
            tuple(joined.inverse_shape(shape))[:len(base) - len(base_distribution.event_shape)])
        lifted = joined.domain.event_dim - len(base_distribution.event_shape)
        self.base_dist: Any = Independent(base_distribution, lifted) if lifted > 0 else base_distribution
        beyond = len(base_distribution.event_shape) - joined.domain.event_dim
        cut = len(shape) - joined.codomain.event_dim - max(beyond, 0)
        super().__init__(shape[:cut], shape[cut:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        shape = _size(batch_shape)
        new = self._get_checked_instance(_owner(type(self), "_parameters"), _instance)
        inner = tuple(ComposeTransform(self.transforms).inverse_shape((*shape, *self.event_shape)))
        new.base_dist = self.base_dist.expand(inner[:len(inner) - len(self.base_dist.event_shape)])
        return self._expanded(new, shape)

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> constraints.Constraint:  # type: ignore[override]
        """The codomain of the last transform."""
        if not self.transforms:
            return self.base_dist.support
        region = self.transforms[-1].codomain
        lifted = len(self.event_shape) - region.event_dim
        return constraints.independent(region, lifted) if lifted > 0 else region

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        """Whether samples have a gradient: as those of the base distribution."""
        return self.base_dist.has_rsample

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self._forward(self.base_dist.sample(sample_shape)).detach()

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self._forward(self.base_dist.rsample(sample_shape))

    def _forward(self, x: Tensor) -> Tensor:
        for transform in self.transforms:
            x = transform(x)
        return x

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        events = len(self.event_shape)
        slope: Any = 0.0
        y = value
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            events += transform.domain.event_dim - transform.codomain.event_dim
            own = transform.log_abs_det_jacobian(x, y)
            slope = slope + sum_rightmost(own, events - transform.domain.event_dim)
            y = x
        return sum_rightmost(self.base_dist.log_prob(y), events - len(self.base_dist.event_shape)) - slope

    def _orient(self, probability: Tensor) -> Tensor:
        """``1 - p`` where the transforms fall, p where they rise."""
        sign: Any = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        if isinstance(sign, int) and sign == 1:
            return probability
        return sign * (probability - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._orient(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        return self._forward(self.base_dist.icdf(self._orient(value)))

    def __repr__(self) -> str:
        if type(self) is TransformedDistribution:
            return f"TransformedDistribution({self.base_dist}, {self.transforms})"
        return super().__repr__()
