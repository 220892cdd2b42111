"""The Wishart distribution."""

import math
from typing import Any

import framework as fw

from ..tensor import Tensor
from . import constraints
from .exp_family import ExponentialFamily
from .multivariate_normal import _half_log_det, factor_of
from .utils import all_hold, is_number, lazy_property, one_of, standard_normal

__all__ = ["Wishart"]


class Wishart(ExponentialFamily):
    """Matrices ``sum of x x^T`` over ``df`` normal vectors x (n) of one of covariance, precision or
    scale_tril.

    Density: proportional to ``det(V)**((df - n - 1) / 2) exp(-trace(S^-1 V) / 2)`` with S the covariance.
    Samples by M. Bartlett's decomposition, 1933.

    >>> fw.distributions.Wishart(3.0, fw.eye(2)).mean
    tensor([[3., 0.],
            [0., 3.]])
    """

    support = constraints.positive_definite
    has_rsample = True
    _parameters = {"df": 0, "covariance_matrix": 2, "precision_matrix": 2, "scale_tril": 2}

    def __init__(self, df: Any, covariance_matrix: Tensor | None = None,
                 precision_matrix: Tensor | None = None,
                 scale_tril: Tensor | None = None, validate_args: bool | None = None) -> None:
        name, matrix = one_of("Wishart", covariance_matrix=covariance_matrix,
                              precision_matrix=precision_matrix, scale_tril=scale_tril)
        if matrix.ndim < 2:
            raise ValueError(f"Wishart: {name} must have at least 2 dimensions, got shape "
                             f"{list(matrix.shape)}")
        if is_number(df):
            df = fw.tensor(df, dtype=matrix.dtype, device=matrix.device)
        batch = fw.broadcast_shapes(tuple(matrix.shape[:-2]), tuple(df.shape))
        event = tuple(matrix.shape[-2:])
        self.df = df.expand(batch)
        if not all_hold(self.df > event[-1] - 1):
            raise ValueError(f"Wishart: df must be above n - 1 = {event[-1] - 1} everywhere, found "
                             f"{self.df.min().item()}")
        setattr(self, name, matrix.expand((*batch, *event)))
        super().__init__(batch, event, validate_args=validate_args)
        self._unbroadcasted_scale_tril = factor_of(covariance_matrix, precision_matrix, scale_tril)

    @property
    def arg_constraints(self) -> dict[str, Any]:  # type: ignore[override]
        """df is bounded by the size of the matrices."""
        return {"covariance_matrix": constraints.positive_definite,
                "precision_matrix": constraints.positive_definite, "scale_tril": constraints.lower_cholesky,
                "df": constraints.greater_than(self.event_shape[-1] - 1)}

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor L of the covariance of x."""
        return self._unbroadcasted_scale_tril.expand((*self._batch_shape, *self._event_shape))

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """``L L^T``."""
        factor = self._unbroadcasted_scale_tril
        return (factor @ factor.mT).expand((*self._batch_shape, *self._event_shape))

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        inverse = fw.cholesky_inverse(self._unbroadcasted_scale_tril)
        return inverse.expand((*self._batch_shape, *self._event_shape))

    @property
    def _n(self) -> int:
        return self._event_shape[-1]

    @property
    def mean(self) -> Tensor:
        return self.df[..., None, None] * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        """nan for df <= n + 1."""
        factor = self.df - self._n - 1
        return fw.where(factor > 0, factor, fw.nan)[..., None, None] * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        diagonal = self.covariance_matrix.diagonal(dim1=-2, dim2=-1)
        outer = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self.df[..., None, None] * (self.covariance_matrix.square() + outer)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        n, shape = self._n, self._extended_shape(sample_shape)
        steps = fw.arange(n, dtype=self.df.dtype, device=self.df.device)
        half = fw._standard_gamma(((self.df.unsqueeze(-1) - steps) / 2).expand(shape[:-1]))
        lower = standard_normal(shape, self.df).tril(-1) + (2 * half).sqrt().diag_embed()
        factor = self._unbroadcasted_scale_tril @ lower
        return factor @ factor.mT

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        n, df = self._n, self.df
        trace = (self.precision_matrix * value).sum((-2, -1))  # both are symmetric
        return (-df * (0.5 * n * math.log(2) + _half_log_det(self._unbroadcasted_scale_tril))
                - fw.mvlgamma(df / 2, n) + 0.5 * (df - n - 1) * fw.linalg.slogdet(value)[1] - 0.5 * trace)

    def entropy(self) -> Tensor:
        n, df = self._n, self.df
        half = _half_log_det(self._unbroadcasted_scale_tril)
        steps = fw.arange(n, dtype=df.dtype, device=df.device)
        log_det = ((df.unsqueeze(-1) - steps) / 2).digamma().sum(-1) + n * math.log(2) + 2 * half
        return (df * (0.5 * n * math.log(2) + half) + fw.mvlgamma(df / 2, n)
                - 0.5 * (df - n - 1) * log_det + 0.5 * n * df)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return -0.5 * self.precision_matrix, 0.5 * (self.df - self._n - 1)

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        order = y + 0.5 * (self._n + 1)
        return order * (self._n * math.log(2) - fw.linalg.slogdet(-2 * x)[1]) + fw.mvlgamma(order, self._n)
