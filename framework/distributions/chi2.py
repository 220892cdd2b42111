"""The chi-square distribution."""

from typing import Any

from ..tensor import Tensor
from . import constraints
from .gamma import Gamma

__all__ = ["Chi2"]


class Chi2(Gamma):
    """Sums of ``df`` squared standard normal numbers: ``Gamma(df / 2, 1 / 2)``.

    >>> fw.distributions.Chi2(2.0).mean
    tensor(2.)
    """

    arg_constraints = {"df": constraints.positive}
    _parameters = {"concentration": 0, "rate": 0}

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    @property
    def df(self) -> Tensor:
        """The degrees of freedom."""
        return self.concentration * 2
