"""The LKJ distribution of correlation matrices."""

import math
from typing import Any

import framework as fw

from ..tensor import Tensor
from . import constraints
from .distribution import Distribution
from .utils import is_number, standard_normal

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Cholesky factors of ``dim x dim`` correlation matrices of density ``det(M) ** (concentration - 1)``.

    1: all correlation matrices are equally likely; above, those near the identity are likelier. Samples by
    the onion method: D. Lewandowski, D. Kurowicka and H. Joe, "Generating random correlation matrices based
    on vines and extended onion method", 2009.

    >>> fw.distributions.LKJCholesky(2, 1.0).log_prob(fw.eye(2))
    tensor(-0.6931)
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky
    _parameters = {"concentration": 0}

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ValueError(f"LKJCholesky: dim must be at least 2, got {dim}")
        self.dim = dim
        self.concentration = fw.tensor(float(concentration)) if is_number(concentration) else concentration
        super().__init__(tuple(self.concentration.shape), (dim, dim), validate_args=validate_args)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with fw.no_grad():
            n, shape = self.dim, self._extended_shape(sample_shape)
            row = fw.arange(n, dtype=self.concentration.dtype, device=self.concentration.device)
            # the squared length of row i left of the diagonal is Beta(i / 2, concentration + (n - 1 - i) / 2)
            one = fw.stack(fw.broadcast_tensors(0.5 * row[1:], self.concentration.unsqueeze(-1)
                                                + 0.5 * (n - 1 - row[1:])), -1)
            length = fw._sample_dirichlet(one.expand((*shape[:-2], n - 1, 2)))[..., 0]
            length = fw.cat([fw.zeros_like(length[..., :1]), length], -1).unsqueeze(-1)
            way = standard_normal(shape, self.concentration).tril(-1)
            way = way / way.square().sum(-1, keepdim=True).sqrt().clamp(min=fw.finfo(way.dtype).tiny)
            rest = (1 - length).clamp(min=fw.finfo(way.dtype).tiny).sqrt()
            return length.sqrt() * way + rest.squeeze(-1).diag_embed()

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        n, eta = self.dim, self.concentration
        row = fw.arange(1, n, dtype=eta.dtype, device=eta.device)
        order = 2 * (eta.unsqueeze(-1) - 1) + (n - 1 - row)
        diagonal = value.diagonal(dim1=-2, dim2=-1)[..., 1:]
        alpha = eta + 0.5 * (n - 1)
        constant = (0.5 * (n - 1) * math.log(math.pi) + fw.mvlgamma(alpha - 0.5, n - 1)
                    - (n - 1) * alpha.lgamma())
        return (order * diagonal.log()).sum(-1) - constant
