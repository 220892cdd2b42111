"""Transforms of parts of a tensor, and of its shape."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import framework as fw

from ...tensor import Tensor
from .. import constraints
from ..utils import sum_rightmost
from .base import Transform

__all__ = ["CatTransform", "ReshapeTransform", "StackTransform"]


class ReshapeTransform(Transform):
    """Events of ``in_shape`` as events of ``out_shape``; the Jacobian is 1.

    >>> fw.distributions.ReshapeTransform((4,), (2, 2))(fw.zeros(3, 4)).shape
    (3, 2, 2)
    """

    bijective = True

    def __init__(self, in_shape: Any, out_shape: Any, cache_size: int = 0) -> None:
        self.in_shape, self.out_shape = tuple(in_shape), tuple(out_shape)
        if math.prod(self.in_shape) != math.prod(self.out_shape):
            raise ValueError(f"ReshapeTransform: {list(self.in_shape)} and {list(self.out_shape)} do not "
                             f"have as many elements")
        super().__init__(cache_size=cache_size)

    @constraints.dependent_property
    def domain(self) -> Any:  # type: ignore[override]
        """Where it takes values from."""
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property
    def codomain(self) -> Any:  # type: ignore[override]
        """Where its values lie."""
        return constraints.independent(constraints.real, len(self.out_shape))

    def with_cache(self, cache_size: int = 1) -> "ReshapeTransform":
        if self._cache_size == cache_size:
            return self
        return ReshapeTransform(self.in_shape, self.out_shape, cache_size=cache_size)

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape((*x.shape[:x.ndim - len(self.in_shape)], *self.out_shape))

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape((*y.shape[:y.ndim - len(self.out_shape)], *self.in_shape))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x.new_zeros(tuple(x.shape[:x.ndim - len(self.in_shape)]))

    def forward_shape(self, shape: Any) -> Any:
        return self._other(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._other(shape, self.out_shape, self.in_shape)

    @staticmethod
    def _other(shape: Any, old: tuple, new: tuple) -> tuple:
        cut = len(shape) - len(old)
        if cut < 0 or tuple(shape[cut:]) != old:
            raise ValueError(f"ReshapeTransform: wanted a shape that ends in {list(old)}, got {list(shape)}")
        return (*shape[:cut], *new)


class _Parts(Transform):
    """Several transforms, each of a part along ``dim``."""

    def __init__(self, tseq: Sequence[Transform], dim: int, cache_size: int) -> None:
        if not all(isinstance(t, Transform) for t in tseq):
            raise TypeError(f"{type(self).__name__}: tseq must be a sequence of Transforms")
        super().__init__(cache_size=cache_size)
        self.transforms = [t.with_cache(cache_size) for t in tseq] if cache_size else list(tseq)
        self.dim = dim

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return all(t.bijective for t in self.transforms)

    def _split(self, value: Tensor) -> Sequence[Tensor]:
        raise NotImplementedError

    def _join(self, parts: list[Tensor]) -> Tensor:
        raise NotImplementedError

    def _each(self, functions: Sequence[Callable], value: Tensor) -> Tensor:
        return self._join([f(part) for f, part in zip(functions, self._split(value))])

    def _call(self, x: Tensor) -> Tensor:
        return self._each(self.transforms, x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self._each([t.inv for t in self.transforms], y)


class CatTransform(_Parts):
    """Transforms side by side along ``dim``, each of as many entries as ``lengths`` says (1 by default).

    >>> D = fw.distributions
    >>> t = D.CatTransform([D.ExpTransform(), D.identity_transform])
    >>> t(fw.zeros(2))
    tensor([1., 0.])
    """

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, lengths: Sequence[int] | None = None,
                 cache_size: int = 0) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise ValueError(f"CatTransform: {len(self.transforms)} transforms and {len(self.lengths)} "
                             f"lengths; give one each")

    @property
    def event_dim(self) -> int:
        return max(t.event_dim for t in self.transforms)

    @property
    def length(self) -> int:
        """All entries along ``dim``."""
        return sum(self.lengths)

    def with_cache(self, cache_size: int = 1) -> "CatTransform":
        if self._cache_size == cache_size:
            return self
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    @constraints.dependent_property
    def domain(self) -> Any:  # type: ignore[override]
        """Where it takes values from."""
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> Any:  # type: ignore[override]
        """Where its values lie."""
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)

    def _split(self, value: Tensor) -> Sequence[Tensor]:
        if value.shape[self.dim] != self.length:
            raise ValueError(f"CatTransform: wanted {self.length} entries along dim={self.dim}, got shape "
                             f"{list(value.shape)}")
        return value.split(self.lengths, self.dim)

    def _join(self, parts: list[Tensor]) -> Tensor:
        return fw.cat(parts, self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        slopes = []
        for t, before, after in zip(self.transforms, self._split(x), self._split(y)):
            slope = t.log_abs_det_jacobian(before, after)
            slopes.append(sum_rightmost(slope, self.event_dim - t.event_dim))
        dim = self.dim if self.dim < 0 else self.dim - x.ndim
        dim += self.event_dim
        return fw.cat(slopes, dim) if dim < 0 else sum(slopes[1:], slopes[0])


class StackTransform(_Parts):
    """Transforms along ``dim``, one for each entry.

    >>> D = fw.distributions
    >>> t = D.StackTransform([D.ExpTransform(), D.identity_transform])
    >>> t(fw.zeros(2, 2))
    tensor([[1., 1.],
            [0., 0.]])
    """

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(tseq, dim, cache_size)

    def with_cache(self, cache_size: int = 1) -> "StackTransform":
        return self if self._cache_size == cache_size else StackTransform(self.transforms, self.dim,
                                                                          cache_size)

    @constraints.dependent_property
    def domain(self) -> Any:  # type: ignore[override]
        """Where it takes values from."""
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> Any:  # type: ignore[override]
        """Where its values lie."""
        return constraints.stack([t.codomain for t in self.transforms], self.dim)

    def _split(self, value: Tensor) -> Sequence[Tensor]:
        if value.shape[self.dim] != len(self.transforms):
            raise ValueError(f"StackTransform: {len(self.transforms)} transforms for shape "
                             f"{list(value.shape)} "
                             f"along dim={self.dim}")
        return value.unbind(self.dim)

    def _join(self, parts: list[Tensor]) -> Tensor:
        return fw.stack(parts, self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        pairs = zip(self.transforms, self._split(x), self._split(y))
        return fw.stack([t.log_abs_det_jacobian(before, after) for t, before, after in pairs], self.dim)
