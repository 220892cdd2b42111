"""The half Cauchy distribution."""

import framework as fw

from ..tensor import Tensor
from .cauchy import Cauchy
from .half import Half

__all__ = ["HalfCauchy"]


class HalfCauchy(Half):
    """``|x|`` with x of the Cauchy distribution of median 0 and half width ``scale``.

    >>> fw.distributions.HalfCauchy(1.0).log_prob(fw.tensor(0.0))
    tensor(-0.4516)
    """

    _parameters = {}
    whole = Cauchy

    @property
    def mean(self) -> Tensor:
        """inf."""
        return fw.full_like(self.scale, fw.inf)

    @property
    def variance(self) -> Tensor:
        """inf."""
        return self.base_dist.variance
