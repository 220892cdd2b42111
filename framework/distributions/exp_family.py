"""Exponential families: densities ``h(x) exp(<theta, t(x)> - F(theta))``."""

from typing import Any

import framework as fw

from ..tensor import Tensor
from .distribution import Distribution
from .utils import sum_rightmost

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """A distribution that knows its natural parameters theta and its log normalizer F.

    Entropy and KL divergence then follow from F and its gradient alone (Bregman divergences):
    F. Nielsen and R. Nock, "Entropies and cross-entropies of exponential families", 2010.
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        """theta, one tensor for each part of t(x)."""
        raise self._lacks("the tuple of natural parameters")

    def _log_normalizer(self, *natural_params: Any) -> Tensor:
        """F at ``theta``."""
        raise self._lacks("the log normalizer")

    _mean_carrier_measure: Any = None  # the expectation of log h(x)

    def _normalizer_and_slopes(self) -> tuple[list[Tensor], Tensor, Any]:
        """theta as new leaves, F there, and the gradient of F, which can be differentiated again."""
        with fw.enable_grad():
            theta = [p if p.requires_grad else p.detach().requires_grad_() for p in self._natural_params]
            normalizer = self._log_normalizer(*theta)
            slopes = fw.autograd.grad(normalizer.sum(), theta, create_graph=True)
        return theta, normalizer, slopes

    def entropy(self) -> Tensor:
        """``F - <theta, grad F> - E[log h]``."""
        if self._mean_carrier_measure is None:
            raise self._lacks("entropy")
        theta, normalizer, slopes = self._normalizer_and_slopes()
        events = len(self.event_shape)
        entropy = normalizer - self._mean_carrier_measure
        for part, slope in zip(theta, slopes):
            entropy = entropy - sum_rightmost(part * slope,
                                              part.ndim - len(self.batch_shape) if events else 0)
        return entropy
