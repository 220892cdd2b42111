"""The von Mises distribution."""

import math
from typing import Any

import framework as fw

from ..ops.random.draws import angles_op
from ..tensor import Tensor
from . import constraints
from .location_scale import Centred
from .utils import parameters

__all__ = ["VonMises"]


class VonMises(Centred):
    """Angles around ``loc``: density ``exp(concentration * cos(x - loc)) / (2 pi I0(concentration))``.

    Samples lie in [-pi, pi) and are drawn in float64: D. Best and N. Fisher, "Efficient simulation of the von
    Mises distribution", 1979. They have no gradient.

    >>> fw.distributions.VonMises(0.0, 1.0).log_prob(fw.tensor(0.0))
    tensor(-1.0738)
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    _parameters = {"loc": 0, "concentration": 0}

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        (self.loc, self.concentration), batch_shape = parameters(loc, concentration)
        super().__init__(batch_shape, validate_args=validate_args)

    @property
    def variance(self) -> Tensor:
        """The circular variance, ``1 - I1(k) / I0(k)``."""
        return 1 - fw.special.i1e(self.concentration) / fw.special.i0e(self.concentration)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with fw.no_grad():
            shape = self._extended_shape(sample_shape)
            angle = angles_op.run(self.concentration.double().expand(shape), generator=None) + self.loc
            return ((angle + math.pi) % (2 * math.pi) - math.pi).to(self.loc.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        k = self.concentration
        return k * ((value - self.loc).cos() - 1) - math.log(2 * math.pi) - fw.special.i0e(k).log()
