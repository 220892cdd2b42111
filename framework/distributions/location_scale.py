"""What distributions share that lie around ``loc``, and those that ``scale`` stretches."""

from typing import Any

from ..tensor import Tensor
from . import constraints
from .distribution import Distribution
from .utils import parameters


class Centred(Distribution):
    """One whose mean and whose mode are ``loc``."""

    loc: Tensor

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc


class LocationScale(Distribution):
    """``loc + scale * z``, z of a fixed density with its top at 0."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        (self.loc, self.scale), batch_shape = parameters(loc, scale)
        super().__init__(batch_shape, validate_args=validate_args)

    @property
    def mode(self) -> Tensor:
        return self.loc
