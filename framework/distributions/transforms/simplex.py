"""Transforms from vectors to points of a simplex: parts >= 0 that sum to 1."""

from typing import Any

import framework as fw

from ...tensor import Tensor
from .. import constraints
from .base import Transform

__all__ = ["SoftmaxTransform", "StickBreakingTransform"]


class SoftmaxTransform(Transform):
    """``exp(x)``, normalised: as many parts as numbers, so not bijective. The inverse is ``log(y)``.

    >>> fw.distributions.SoftmaxTransform()(fw.zeros(2))
    tensor([0.5000, 0.5000])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SoftmaxTransform)

    __hash__ = object.__hash__

    def _call(self, x: Tensor) -> Tensor:
        return x.softmax(-1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def forward_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("SoftmaxTransform: wanted at least 1 dimension, got none")
        return shape

    inverse_shape = forward_shape


class StickBreakingTransform(Transform):
    """n - 1 numbers into n parts: part i is ``sigmoid(x_i - log(n - 1 - i))`` of what the ones before left.

    The shift makes 0 the image of equal parts. Carpenter et al., "Stan: a probabilistic programming
    language", 2017, appendix on transforms.

    >>> fw.distributions.StickBreakingTransform()(fw.zeros(2))
    tensor([0.3333, 0.3333, 0.3333])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StickBreakingTransform)

    __hash__ = object.__hash__

    @staticmethod
    def _shift(x: Tensor) -> Tensor:
        n = x.shape[-1]
        return fw.arange(n, 0, -1, dtype=x.dtype, device=x.device).log()

    def _call(self, x: Tensor) -> Tensor:
        logsigmoid = fw.nn.functional.logsigmoid
        share = x - self._shift(x)
        left = logsigmoid(-share).cumsum(-1)  # the logarithm of what remains after each part
        zero = fw.zeros_like(left[..., :1])
        return (fw.cat([logsigmoid(share), zero], -1) + fw.cat([zero, left], -1)).exp()

    def _inverse(self, y: Tensor) -> Tensor:
        parts = y[..., :-1]
        left = (1 - parts.cumsum(-1)).clamp(min=fw.finfo(y.dtype).tiny)
        return parts.log() - left.log() + self._shift(parts)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        # a triangular Jacobian: d y_i / d x_i = y_i sigmoid(-share_i)
        share = x - self._shift(x)
        return (y[..., :-1].log() + fw.nn.functional.logsigmoid(-share)).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("StickBreakingTransform: wanted at least 1 dimension, got none")
        return (*shape[:-1], shape[-1] + 1)

    def inverse_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("StickBreakingTransform: wanted at least 1 dimension, got none")
        return (*shape[:-1], shape[-1] - 1)
