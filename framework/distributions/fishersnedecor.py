"""The Fisher-Snedecor (F) distribution."""

from typing import Any

import framework as fw

from ..tensor import Tensor
from . import constraints
from .distribution import Distribution
from .utils import parameters

__all__ = ["FisherSnedecor"]


class FisherSnedecor(Distribution):
    """Ratios of two chi-square numbers, each over its degrees of freedom ``df1`` and ``df2``.

    >>> fw.distributions.FisherSnedecor(2.0, 2.0).log_prob(fw.tensor(1.0))
    tensor(-1.3863)
    """

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True
    _parameters = {"df1": 0, "df2": 0}

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        (self.df1, self.df2), batch_shape = parameters(df1, df2)
        super().__init__(batch_shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """nan for df2 <= 2."""
        return fw.where(self.df2 > 2, self.df2 / (self.df2 - 2), fw.nan)

    @property
    def mode(self) -> Tensor:
        """nan for df1 <= 2."""
        return fw.where(self.df1 > 2, (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2), fw.nan)

    @property
    def variance(self) -> Tensor:
        """nan for df2 <= 4."""
        m, n = self.df1, self.df2
        known = 2 * n.square() * (m + n - 2) / (m * (n - 2).square() * (n - 4))
        return fw.where(n > 4, known, fw.nan)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        upper = fw._standard_gamma((self.df1 / 2).expand(shape)) / self.df1
        lower = fw._standard_gamma((self.df2 / 2).expand(shape)) / self.df2
        return (upper / lower).clamp(min=fw.finfo(upper.dtype).tiny)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        m, n, ratio = self.df1 / 2, self.df2 / 2, self.df1 / self.df2
        beta = m.lgamma() + n.lgamma() - (m + n).lgamma()
        return m * ratio.log() + (m - 1) * value.log() - (m + n) * (ratio * value).log1p() - beta
