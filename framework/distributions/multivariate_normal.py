"""The multivariate normal distribution."""

import math
from typing import Any

import framework as fw

from ..tensor import Tensor
from . import constraints
from .location_scale import Centred
from .utils import lazy_property, one_of, standard_normal

__all__ = ["MultivariateNormal"]


def _batch_mv(matrix: Tensor, vector: Tensor) -> Tensor:
    """Matrices times vectors: (..., n, m), (..., m) -> (..., n)."""
    return (matrix @ vector.unsqueeze(-1)).squeeze(-1)


def _batch_mahalanobis(factor: Tensor, off: Tensor) -> Tensor:
    """``off^T (L L^T)^-1 off`` for lower triangular L: (..., n, n), (..., n) -> (...)."""
    if factor.ndim == 2:  # one matrix: all vectors are columns of one right hand side
        columns = off.reshape(-1, off.shape[-1]).mT
        solved = fw.linalg.solve_triangular(factor, columns, upper=False)
        return solved.square().sum(0).reshape(off.shape[:-1])
    batch = fw.broadcast_shapes(tuple(factor.shape[:-2]), tuple(off.shape[:-1]))
    n = off.shape[-1]
    solved = fw.linalg.solve_triangular(factor.expand((*batch, n, n)), off.expand((*batch, n)).unsqueeze(-1),
                                        upper=False)
    return solved.squeeze(-1).square().sum(-1)


def _half_log_det(factor: Tensor) -> Tensor:
    """``log det L`` of lower triangular matrices."""
    return factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def _precision_to_scale_tril(precision: Tensor) -> Tensor:
    """The Cholesky factor of the inverse: that of the matrix turned end for end, turned and inverted."""
    turned = fw.linalg.cholesky(precision.flip(-2, -1)).flip(-2, -1).mT
    eye = fw.eye(precision.shape[-1], dtype=precision.dtype, device=precision.device)
    return fw.linalg.solve_triangular(turned, eye.expand(turned.shape), upper=False)


def factor_of(covariance: Any, precision: Any, scale_tril: Any) -> Tensor:
    """The Cholesky factor of the covariance, from the one that was given."""
    if scale_tril is not None:
        return scale_tril
    return fw.linalg.cholesky(covariance) if covariance is not None else _precision_to_scale_tril(precision)


class MultivariateNormal(Centred):
    """Normal vectors of mean ``loc`` (..., n) and one of covariance, precision (its inverse), or the lower
    triangular ``scale_tril`` L with covariance ``L L^T``, each (..., n, n).

    >>> d = fw.distributions.MultivariateNormal(fw.zeros(2), fw.eye(2))
    >>> d.log_prob(fw.zeros(2))
    tensor(-1.8379)
    """

    arg_constraints = {"loc": constraints.real_vector, "covariance_matrix": constraints.positive_definite,
                       "precision_matrix": constraints.positive_definite,
                       "scale_tril": constraints.lower_cholesky}
    support = constraints.real_vector
    has_rsample = True
    _parameters = {"loc": 1, "covariance_matrix": 2, "precision_matrix": 2, "scale_tril": 2}

    def __init__(self, loc: Tensor, covariance_matrix: Tensor | None = None,
                 precision_matrix: Tensor | None = None, scale_tril: Tensor | None = None,
                 validate_args: bool | None = None) -> None:
        if loc.ndim < 1:
            raise ValueError("MultivariateNormal: loc must have at least 1 dimension, that of the vectors")
        name, matrix = one_of("MultivariateNormal", covariance_matrix=covariance_matrix,
                              precision_matrix=precision_matrix, scale_tril=scale_tril)
        if matrix.ndim < 2:
            raise ValueError(f"MultivariateNormal: {name} must have at least 2 dimensions, got shape "
                             f"{list(matrix.shape)}")
        batch = fw.broadcast_shapes(tuple(matrix.shape[:-2]), tuple(loc.shape[:-1]))
        event = tuple(loc.shape[-1:])
        setattr(self, name, matrix.expand((*batch, *matrix.shape[-2:])))
        self.loc = loc.expand((*batch, *event))
        super().__init__(batch, event, validate_args=validate_args)
        self._unbroadcasted_scale_tril = factor_of(covariance_matrix, precision_matrix, scale_tril)

    def _square(self) -> tuple[int, ...]:
        return (*self._batch_shape, *self._event_shape, *self._event_shape)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor L of the covariance."""
        return self._unbroadcasted_scale_tril.expand(self._square())

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """``L L^T``."""
        factor = self._unbroadcasted_scale_tril
        return (factor @ factor.mT).expand(self._square())

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        return fw.cholesky_inverse(self._unbroadcasted_scale_tril).expand(self._square())

    @property
    def variance(self) -> Tensor:
        square = self._unbroadcasted_scale_tril.square().sum(-1)
        return square.expand((*self._batch_shape, *self._event_shape))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        noise = standard_normal(self._extended_shape(sample_shape), self.loc)
        return self.loc + _batch_mv(self._unbroadcasted_scale_tril, noise)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        far = _batch_mahalanobis(self._unbroadcasted_scale_tril, value - self.loc)
        n = self._event_shape[0]
        return -0.5 * (n * math.log(2 * math.pi) + far) - _half_log_det(self._unbroadcasted_scale_tril)

    def entropy(self) -> Tensor:
        n = self._event_shape[0]
        entropy = 0.5 * n * (1 + math.log(2 * math.pi)) + _half_log_det(self._unbroadcasted_scale_tril)
        return entropy.expand(self._batch_shape)
