"""Transforms of single numbers."""

import math
from typing import Any

import framework as fw

from ...tensor import Tensor
from .. import constraints
from ..utils import sum_rightmost
from .base import Transform

__all__ = ["AbsTransform", "AffineTransform", "CumulativeDistributionTransform", "ExpTransform",
           "PowerTransform",
           "SigmoidTransform", "SoftplusTransform", "TanhTransform"]


class _Plain(Transform):
    """A rising bijection without parameters: two are equal if they are of one kind."""

    bijective = True
    sign = 1

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    __hash__ = object.__hash__


class ExpTransform(_Plain):
    """``exp(x)``.

    >>> fw.distributions.ExpTransform()(fw.tensor(0.0))
    tensor(1.)
    """

    domain = constraints.real
    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class SigmoidTransform(_Plain):
    """``1 / (1 + exp(-x))``, kept inside (0, 1).

    >>> fw.distributions.SigmoidTransform()(fw.tensor(0.0))
    tensor(0.5000)
    """

    domain = constraints.real
    codomain = constraints.unit_interval

    def _call(self, x: Tensor) -> Tensor:
        info = fw.finfo(x.dtype)
        return x.sigmoid().clamp(info.tiny, 1 - info.eps)

    def _inverse(self, y: Tensor) -> Tensor:
        info = fw.finfo(y.dtype)
        y = y.clamp(info.tiny, 1 - info.eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        softplus = fw.nn.functional.softplus
        return -softplus(-x) - softplus(x)


class TanhTransform(_Plain):
    """``tanh(x)``.

    >>> fw.distributions.TanhTransform()(fw.tensor(0.0))
    tensor(0.)
    """

    domain = constraints.real
    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        # 1 - tanh(x)^2 = 4 / (exp(x) + exp(-x))^2, without cancelling where x is large
        return 2 * (math.log(2) - x - fw.nn.functional.softplus(-2 * x))


class SoftplusTransform(_Plain):
    """``log(1 + exp(x))``.

    >>> fw.distributions.SoftplusTransform()(fw.tensor(0.0))
    tensor(0.6931)
    """

    domain = constraints.real
    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return fw.nn.functional.softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -fw.nn.functional.softplus(-x)


class AbsTransform(Transform):
    """``|x|``; its inverse takes the positive one.

    >>> fw.distributions.AbsTransform()(fw.tensor(-2.0))
    tensor(2.)
    """

    domain = constraints.real
    codomain = constraints.positive

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbsTransform)

    __hash__ = object.__hash__

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class PowerTransform(Transform):
    """``x ** exponent`` of positive numbers.

    >>> fw.distributions.PowerTransform(2.0)(fw.tensor(3.0))
    tensor(9.)
    """

    domain = constraints.positive
    codomain = constraints.positive
    bijective = True

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.exponent = exponent if isinstance(exponent, Tensor) else fw.tensor(float(exponent))

    def with_cache(self, cache_size: int = 1) -> "PowerTransform":
        return self if self._cache_size == cache_size else PowerTransform(self.exponent,
                                                                          cache_size=cache_size)

    @property
    def sign(self) -> Any:
        return self.exponent.sign()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PowerTransform) and _same(self.exponent, other.exponent)

    __hash__ = object.__hash__

    def _call(self, x: Tensor) -> Tensor:
        return x.pow(self.exponent)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Any) -> Any:
        return fw.broadcast_shapes(shape, tuple(self.exponent.shape))

    inverse_shape = forward_shape


class AffineTransform(Transform):
    """``loc + scale * x``, over events of ``event_dim`` dimensions.

    >>> fw.distributions.AffineTransform(1.0, 2.0)(fw.tensor(3.0))
    tensor(7.)
    """

    bijective = True

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    @property
    def event_dim(self) -> int:
        return self._event_dim

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:  # type: ignore[override]
        """All numbers, or vectors."""
        return constraints.independent(constraints.real,
                                       self._event_dim) if self._event_dim else constraints.real

    codomain = domain

    def with_cache(self, cache_size: int = 1) -> "AffineTransform":
        if self._cache_size == cache_size:
            return self
        return AffineTransform(self.loc, self.scale, self._event_dim, cache_size=cache_size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AffineTransform) and _same(self.loc, other.loc) and _same(self.scale,
                                                                                           other.scale)

    __hash__ = object.__hash__

    @property
    def sign(self) -> Any:
        if isinstance(self.scale, Tensor):
            return self.scale.sign()
        return (self.scale > 0) - (self.scale < 0)

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        scale = self.scale
        slope = scale.abs().log() if isinstance(scale, Tensor) else fw.full_like(x, math.log(abs(scale)))
        shape = fw.broadcast_shapes(tuple(x.shape), tuple(slope.shape))
        return sum_rightmost(slope.expand(shape), self._event_dim)

    def forward_shape(self, shape: Any) -> Any:
        return fw.broadcast_shapes(shape, *[tuple(getattr(v, "shape", ())) for v in (self.loc, self.scale)])

    inverse_shape = forward_shape


class CumulativeDistributionTransform(Transform):
    """The distribution function of a distribution of single numbers: its samples become uniform.

    >>> t = fw.distributions.CumulativeDistributionTransform(fw.distributions.Normal(0.0, 1.0))
    >>> t(fw.tensor(0.0))
    tensor(0.5000)
    """

    bijective = True
    codomain = constraints.unit_interval
    sign = 1

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    @property
    def domain(self) -> Any:  # type: ignore[override]
        """The support of the distribution."""
        return self.distribution.support

    def with_cache(self, cache_size: int = 1) -> "CumulativeDistributionTransform":
        if self._cache_size == cache_size:
            return self
        return CumulativeDistributionTransform(self.distribution, cache_size=cache_size)

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.distribution.log_prob(x)


def _same(one: Any, other: Any) -> bool:
    """Whether two parameters, numbers or tensors, are equal everywhere."""
    equal = one == other
    return bool(equal.all()) if isinstance(equal, Tensor) else bool(equal)
