"""The multivariate normal distribution with a covariance of low rank plus a diagonal."""

import math
from typing import Any

import framework as fw

from ..tensor import Tensor
from . import constraints
from .location_scale import Centred
from .multivariate_normal import _batch_mahalanobis, _batch_mv, _half_log_det
from .utils import lazy_property, standard_normal

__all__ = ["LowRankMultivariateNormal"]


class LowRankMultivariateNormal(Centred):
    """Normal vectors of mean ``loc`` (..., n) and covariance ``W W^T + diag(D)``.

    W = ``cov_factor`` (..., n, k), D = ``cov_diag`` (..., n). Determinant and inverse take a k x k matrix
    only, ``C = I + W^T D^-1 W`` (the matrix determinant lemma and Woodbury's formula).

    >>> d = fw.distributions.LowRankMultivariateNormal(fw.zeros(2), fw.zeros(2, 1), fw.ones(2))
    >>> d.log_prob(fw.zeros(2))
    tensor(-1.8379)
    """

    arg_constraints = {"loc": constraints.real_vector,
                       "cov_factor": constraints.independent(constraints.real, 2),
                       "cov_diag": constraints.independent(constraints.positive, 1)}
    support = constraints.real_vector
    has_rsample = True
    _parameters = {"loc": 1, "cov_factor": 2, "cov_diag": 1}

    def __init__(self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor,
                 validate_args: bool | None = None) -> None:
        n = tuple(loc.shape[-1:])
        if loc.ndim < 1 or cov_factor.ndim < 2 or cov_diag.ndim < 1 or \
                not n == tuple(cov_factor.shape[-2:-1]) == tuple(cov_diag.shape[-1:]):
            raise ValueError("LowRankMultivariateNormal: wanted loc (..., n), cov_factor (..., n, k) and "
                             f"cov_diag (..., n), got {list(loc.shape)}, {list(cov_factor.shape)}, "
                             f"{list(cov_diag.shape)}")
        batch = fw.broadcast_shapes(tuple(loc.shape[:-1]), tuple(cov_factor.shape[:-2]),
                                    tuple(cov_diag.shape[:-1]))
        self.loc, self.cov_diag = loc.expand((*batch, *n)), cov_diag.expand((*batch, *n))
        self.cov_factor = cov_factor.expand((*batch, *cov_factor.shape[-2:]))
        self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag = cov_factor, cov_diag
        super().__init__(batch, n, validate_args=validate_args)

    @lazy_property
    def _weighed(self) -> Tensor:
        """``W^T D^-1``."""
        return self._unbroadcasted_cov_factor.mT / self._unbroadcasted_cov_diag.unsqueeze(-2)

    @lazy_property
    def _capacitance_tril(self) -> Tensor:
        """The Cholesky factor of C."""
        small = self._weighed @ self._unbroadcasted_cov_factor
        return fw.linalg.cholesky(small + fw.eye(small.shape[-1], dtype=small.dtype, device=small.device))

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance."""
        return fw.linalg.cholesky(self.covariance_matrix)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """``W W^T + diag(D)``."""
        return self.cov_factor @ self.cov_factor.mT + self.cov_diag.diag_embed()

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """``D^-1 - D^-1 W C^-1 W^T D^-1``."""
        part = fw.linalg.solve_triangular(self._capacitance_tril, self._weighed, upper=False)
        inverse = self._unbroadcasted_cov_diag.reciprocal().diag_embed() - part.mT @ part
        return inverse.expand((*self._batch_shape, *self._event_shape, *self._event_shape))

    @property
    def variance(self) -> Tensor:
        return self.cov_factor.square().sum(-1) + self.cov_diag

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        low = standard_normal((*shape[:-1], self.cov_factor.shape[-1]), self.loc)
        return (self.loc + _batch_mv(self._unbroadcasted_cov_factor, low)
                + self._unbroadcasted_cov_diag.sqrt() * standard_normal(shape, self.loc))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        off = value - self.loc
        far = (off.square() / self._unbroadcasted_cov_diag).sum(-1) - _batch_mahalanobis(
            self._capacitance_tril, _batch_mv(self._weighed, off))
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + self._log_det() + far)

    def _log_det(self) -> Tensor:
        """That of the covariance: ``det C det D``."""
        return 2 * _half_log_det(self._capacitance_tril) + self._unbroadcasted_cov_diag.log().sum(-1)

    def entropy(self) -> Tensor:
        n = self._event_shape[0]
        return (0.5 * (n * (1 + math.log(2 * math.pi)) + self._log_det())).expand(self._batch_shape)
