"""Transforms to triangular and to positive definite matrices."""

from typing import Any

import framework as fw

from ...tensor import Tensor
from .. import constraints
from ..utils import tril_matrix_to_vec, vec_to_tril_matrix
from .base import Transform

__all__ = ["CorrCholeskyTransform", "LowerCholeskyTransform", "PositiveDefiniteTransform"]


class _OfMatrices(Transform):
    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    __hash__ = object.__hash__


class LowerCholeskyTransform(_OfMatrices):
    """Square matrices into lower triangular ones with a positive diagonal, ``exp`` of the one that was.

    >>> fw.distributions.LowerCholeskyTransform()(fw.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(_OfMatrices):
    """Square matrices into positive definite ones: ``L L^T`` with L by `LowerCholeskyTransform`.

    >>> fw.distributions.PositiveDefiniteTransform()(fw.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(fw.linalg.cholesky(y))


class CorrCholeskyTransform(_OfMatrices):
    """n (n - 1) / 2 numbers into the Cholesky factor of an n x n correlation matrix: rows of length 1.

    ``tanh`` of each number is a partial correlation, which takes its share of what is left of its row's
    length: D. Lewandowski, D. Kurowicka and H. Joe, "Generating random correlation matrices based on vines
    and extended onion method", 2009.

    >>> fw.distributions.CorrCholeskyTransform()(fw.zeros(1))
    tensor([[1., 0.],
            [0., 1.]])
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        eps = fw.finfo(x.dtype).eps
        partial = vec_to_tril_matrix(x.tanh().clamp(-1 + eps, 1 - eps), diag=-1)
        eye = fw.eye(partial.shape[-1], dtype=x.dtype, device=x.device)
        left = (1 - partial.square()).sqrt().cumprod(-1)  # of the row's length, after each entry
        before = fw.cat([fw.ones_like(left[..., :1]), left[..., :-1]], -1)
        return (partial + eye) * before

    def _inverse(self, y: Tensor) -> Tensor:
        partial = tril_matrix_to_vec(y, diag=-1) / self._before(y).sqrt()
        return 0.5 * (partial.log1p() - (-partial).log1p())  # atanh

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        # triangular: d y_ij / d x_ij is sech^2(x_ij) times the length left before
        softplus = fw.nn.functional.softplus
        slope = -2 * (x + softplus(-2 * x) - 0.6931471805599453)
        return (0.5 * self._before(y).log() + slope).sum(-1)

    @staticmethod
    def _before(y: Tensor) -> Tensor:
        """The square of the length that was left before each entry below the diagonal."""
        left = (1 - y.square().cumsum(-1)).clamp(min=fw.finfo(y.dtype).tiny)
        return tril_matrix_to_vec(fw.cat([fw.ones_like(left[..., :1]), left[..., :-1]], -1), diag=-1)

    def forward_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("CorrCholeskyTransform: wanted at least 1 dimension, got none")
        k = shape[-1]
        n = round((0.25 + 2 * k) ** 0.5 + 0.5)
        if n * (n - 1) // 2 != k:
            raise ValueError(f"CorrCholeskyTransform: no correlation matrix has {k} entries below the "
                             "diagonal")
        return (*shape[:-1], n, n)

    def inverse_shape(self, shape: Any) -> Any:
        if len(shape) < 2 or shape[-2] != shape[-1]:
            raise ValueError(f"CorrCholeskyTransform: wanted square matrices, got shape {list(shape)}")
        n = shape[-1]
        return (*shape[:-2], n * (n - 1) // 2)
