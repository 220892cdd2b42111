"""What distributions share that are moved by ``loc`` and stretched by ``scale``."""

from typing import Any

from ..tensor import Tensor
from . import constraints
from .distribution import Distribution
from .utils import parameters


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
