"""The gamma distribution."""

from typing import Any

import framework as fw

from ..autograd.function import Function
from ..ops.random.draws import slope_of_gamma
from ..tensor import Tensor
from . import constraints
from .exp_family import ExponentialFamily
from .utils import parameters

__all__ = ["Gamma"]


class _Below(Function):
    """``gammainc(a, x)`` with a derivative by ``a``, too.

    Where a sample at a quantile moves by z with a, the probability below x falls by z times its density.
    """

    @staticmethod
    def forward(ctx: Any, a: Tensor, x: Tensor) -> Tensor:
        ctx.save_for_backward(a, x)
        return fw.special.gammainc(a.detach(), x)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:
        a, x = ctx.saved_tensors
        density = (fw.xlogy(a - 1, x) - x - a.lgamma()).exp() * g
        return fw.where(x > 0, -density * slope_of_gamma.run(a, x), 0.0), density


class Gamma(ExponentialFamily):
    """The gamma distribution of shape ``concentration`` and inverse scale ``rate``.

    Density: ``rate**a x**(a - 1) exp(-rate x) / gamma(a)`` with a the concentration. Samples have a gradient
    by implicit reparameterisation (M. Figurnov et al., 2018).

    >>> fw.distributions.Gamma(2.0, 1.0).log_prob(fw.tensor(1.0))
    tensor(-1.)
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _parameters = {"concentration": 0, "rate": 0}
    _mean_carrier_measure = 0

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        (self.concentration, self.rate), batch_shape = parameters(concentration, rate)
        super().__init__(batch_shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate.square()

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return fw._standard_gamma(self.concentration.expand(shape)) / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        value = fw.as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        if self._validate_args:
            self._validate_sample(value)
        return (fw.xlogy(self.concentration, self.rate) + fw.xlogy(self.concentration - 1, value)
                - self.rate * value - self.concentration.lgamma())

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        at = self.rate * value
        if self.concentration.requires_grad and fw.is_grad_enabled():
            return _Below.apply(*fw.broadcast_tensors(self.concentration, at))
        return fw.special.gammainc(self.concentration, at)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a - self.rate.log() + a.lgamma() + (1 - a) * a.digamma()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        return (x + 1).lgamma() - (x + 1) * (-y).log()
