"""The uniform distribution."""

from typing import Any

import framework as fw

from ..tensor import Tensor
from . import constraints
from .distribution import Distribution
from .utils import parameters

__all__ = ["Uniform"]


class Uniform(Distribution):
    """Numbers equally likely in [low, high).

    Density: ``1 / (high - low)`` inside, 0 outside.

    >>> fw.distributions.Uniform(0.0, 2.0).log_prob(fw.tensor(1.0))
    tensor(-0.6931)
    """

    has_rsample = True
    _parameters = {"low": 0, "high": 0}

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        (self.low, self.high), batch_shape = parameters(low, high)
        super().__init__(batch_shape, validate_args=validate_args)

    @property
    def arg_constraints(self) -> dict[str, Any]:  # type: ignore[override]
        """``low < high``, each seen from the other."""
        return {"low": constraints.less_than(self.high), "high": constraints.greater_than(self.low)}

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> constraints.Constraint:  # type: ignore[override]
        """[low, high]."""
        return constraints.interval(self.low, self.high)

    @property
    def mean(self) -> Tensor:
        return (self.high + self.low) / 2

    @property
    def mode(self) -> Tensor:
        """nan: no value is likelier than others."""
        return fw.full_like(self.high, fw.nan)

    @property
    def stddev(self) -> Tensor:
        return (self.high - self.low) / 12 ** 0.5

    @property
    def variance(self) -> Tensor:
        return (self.high - self.low).square() / 12

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        unit = fw.rand(self._extended_shape(sample_shape), dtype=self.low.dtype, device=self.low.device)
        return self.low + unit * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        inside = ((self.low <= value) & (self.high > value)).to(self.low.dtype)
        return inside.log() - (self.high - self.low).log()

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return ((value - self.low) / (self.high - self.low)).clamp(0, 1)

    def icdf(self, value: Tensor) -> Tensor:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Tensor:
        return (self.high - self.low).log()
