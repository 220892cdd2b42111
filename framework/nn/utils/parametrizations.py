"""Ready parametrizations: weight norm, spectral norm, orthogonal matrices."""

from enum import Enum
from typing import Any

from ...autograd.mode import no_grad
from ...config.listing import own as _own
from ...creation import eye
from ...ops.linalg.decompositions import qr
from ...ops.linalg.powers import matrix_exp
from ...tensor import Tensor
from .. import functional as F
from ..module import Module
from . import parametrize


def norm_except(v: Any, dim: int | None) -> Any:
    """The 2-norm over all dimensions but one, kept as sizes of 1; dim None (or -1): over all."""
    if dim is None or dim == -1:
        return (v * v).sum().sqrt()
    dims = [d for d in range(v.ndim) if d != dim % v.ndim]
    return v.abs() if not dims else (v * v).sum(dims, keepdim=True).sqrt()


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Any, weight_v: Any) -> Any:
        """``g v / |v|``"""
        return weight_v * (weight_g / norm_except(weight_v, self.dim))

    def right_inverse(self, weight: Tensor) -> tuple:
        """(the norms, the weight)"""
        return norm_except(weight, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """``w = g v / |v|`` with the norm over all dimensions but ``dim`` (None: over all); ``original0`` is g,
    ``original1`` is v. T. Salimans and D. Kingma, "Weight normalization", 2016. Returns the module.

    >>> layer = fw.nn.utils.parametrizations.weight_norm(fw.nn.Linear(4, 2))
    >>> layer.parametrizations.weight.original0.shape
    (2, 1)
    """
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)
    return module


class _SpectralNorm(Module):
    _u: Any
    _v: Any

    def __init__(self, weight: Any, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        if not -weight.ndim <= dim < weight.ndim:
            raise IndexError(f"spectral_norm: dim={dim} is out of range for a tensor of {weight.ndim} "
                             f"dimensions")
        if n_power_iterations <= 0:
            raise ValueError(f"spectral_norm: n_power_iterations must be positive, got {n_power_iterations}")
        self.dim = dim if dim >= 0 else dim + weight.ndim
        self.eps = eps
        if weight.ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = self._matrix(weight.detach())
            u, v = matrix.new_empty(matrix.shape[0]).normal_(), matrix.new_empty(matrix.shape[1]).normal_()
            self.register_buffer("_u", F.normalize(u, dim=0, eps=eps))
            self.register_buffer("_v", F.normalize(v, dim=0, eps=eps))
            self._iterate(matrix, 15)

    def _matrix(self, weight: Any) -> Any:
        if self.dim:
            weight = weight.permute(self.dim, *(d for d in range(weight.ndim) if d != self.dim))
        return weight.flatten(1)

    @no_grad()
    def _iterate(self, matrix: Any, times: int) -> None:
        """The power method, towards the first singular vectors."""
        for _ in range(times):
            self._u.copy_(F.normalize(matrix.mv(self._v), dim=0, eps=self.eps))
            self._v.copy_(F.normalize(matrix.mH.mv(self._u), dim=0, eps=self.eps))

    def forward(self, weight: Any) -> Any:
        """``w / sigma``"""
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._matrix(weight)
        if self.training:
            self._iterate(matrix.detach(), self.n_power_iterations)
        u, v = self._u.clone(), self._v.clone()  # they change in place before a second backward
        return weight / u.dot(matrix.mv(v))

    def right_inverse(self, value: Tensor) -> Tensor:
        """The value itself: the nearest there is to an inverse."""
        return value


def spectral_norm(module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12,
                  dim: int | None = None) -> Module:
    """``w / sigma`` with sigma the largest singular value of w as a matrix (``dim``, all the rest), which
    each use in training approaches by ``n_power_iterations`` steps. dim: 0, of transposed convolutions 1. T.
    Miyato et al., "Spectral normalization for generative adversarial networks", 2018. Returns the module.

    >>> layer = fw.nn.utils.parametrizations.spectral_norm(fw.nn.Linear(4, 4))
    >>> round(fw.linalg.matrix_norm(layer.weight, 2).item(), 1)
    1.0
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"spectral_norm: {type(module).__name__} has no parameter or buffer '{name}'")
    if dim is None:
        dim = 1 if getattr(module, "transposed", False) else 0
    parametrize.register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))
    return module


class _OrthMaps(Enum):
    matrix_exp = "matrix_exp"
    cayley = "cayley"
    householder = "householder"


class _Orthogonal(Module):
    base: Any

    def __init__(self, weight: Any, orthogonal_map: _OrthMaps, *, use_trivialization: bool = True) -> None:
        super().__init__()
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Any) -> Any:
        """The orthogonal matrix that X stands for."""
        wide = X.shape[-2] < X.shape[-1]
        if wide:
            X = X.mT
        n, k = X.shape[-2:]
        if self.orthogonal_map is _OrthMaps.householder:
            Q = _reflections(X)
        else:
            A = X.tril()
            if n != k:
                A = F.pad(A, (0, n - k))
            A = A - A.mH
            if self.orthogonal_map is _OrthMaps.matrix_exp:
                Q = matrix_exp(A)
            else:
                one = eye(n, dtype=A.dtype, device=A.device)
                Q = (one - A / 2).inverse() @ (one + A / 2)
            Q = Q[..., :k]
        if getattr(self, "base", None) is not None:
            Q = self.base @ Q
        return Q.mT if wide else Q

    @no_grad()
    def right_inverse(self, Q: Any) -> Any:
        """What gives the (semi-)orthogonal matrix nearest in kind to ``Q``: its own, if it is orthogonal."""
        if Q.shape != self.shape:
            raise ValueError(f"orthogonal: wanted a tensor of shape {list(self.shape)}, got {list(Q.shape)}")
        wide = Q.shape[-2] < Q.shape[-1]
        if wide:
            Q = Q.mT
        n, k = Q.shape[-2:]
        if "base" not in self._buffers:
            if self.orthogonal_map is not _OrthMaps.householder:
                raise NotImplementedError("orthogonal: assigning needs use_trivialization=True with the maps "
                                          "matrix_exp and cayley")
            A = _to_reflections(Q)
            return A.mT if wide else A
        R: Any
        if n == k:
            if _orthogonal(Q):
                base = Q
            else:
                base, R = qr(Q)
                base = base * R.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)
        else:
            full, R = qr(Q, mode="complete")
            base = full.clone()
            base[..., :k] *= R[..., :k, :].diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)
        self.base = base
        zeros = Q.new_zeros(Q.shape)
        if self.orthogonal_map is _OrthMaps.householder:
            zeros.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
        return zeros.mT if wide else zeros


def _orthogonal(Q: Any) -> bool:
    one = eye(Q.shape[-1], dtype=Q.dtype, device=Q.device)
    eps = 10.0 * Q.shape[-2] * {2: 1e-3, 4: 1.2e-7, 8: 2.3e-16, 16: 2.3e-16}[Q.itemsize]
    return bool(((Q.mH @ Q) - one).abs().max() < eps)


def _reflections(X: Any) -> Any:
    """``H_1 ... H_k`` applied to the first k unit vectors; ``H_i = 1 - tau v v^H``, v below the diagonal
    of column
    i of X under a 1; the signs of the diagonal of X turn the columns."""
    n, k = X.shape[-2:]
    A = X.tril(-1)
    tau = 2.0 / (1.0 + (A * A.conj()).real.sum(-2))
    Q = eye(n, dtype=X.dtype, device=X.device)[:, :k].expand(*X.shape)
    one = eye(n, k, dtype=X.dtype, device=X.device)
    V = A + one
    for i in reversed(range(k)):
        v = V[..., :, i:i + 1]
        Q = Q - tau[..., i:i + 1].unsqueeze(-1) * (v @ (v.mH @ Q))
    return Q * X.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


def _to_reflections(Q: Any) -> Any:
    """The X of which ``_reflections`` is Q, an orthogonal matrix: Householder's elimination."""
    work = Q.clone()
    n, k = work.shape[-2:]
    out = work.new_zeros(work.shape)
    for i in range(k):
        x = work[..., i:, i:i + 1]
        first = x[..., :1, :]
        sign = first.sgn() + (first == 0).to(first.dtype)
        head = first + sign * (x * x.conj()).real.sum(-2, keepdim=True).sqrt().to(x.dtype)
        v = x / head
        v[..., :1, :] = 1.0
        tau = 2.0 / (v * v.conj()).real.sum(-2, keepdim=True)
        work[..., i:, :] -= tau * (v @ (v.mH @ work[..., i:, :]))
        out[..., i:, i:i + 1] = v
    out.diagonal(dim1=-2, dim2=-1).copy_(work.diagonal(dim1=-2, dim2=-1).sgn())
    return out


def orthogonal(module: Module, name: str = "weight", orthogonal_map: str | None = None, *,
               use_trivialization: bool = True) -> Module:
    """Keep a matrix (or batch of them) orthogonal: ``w^H w = 1`` or, if it is wide, ``w w^H = 1``.

    orthogonal_map: "matrix_exp" (of a skew-symmetric matrix), "cayley" or "householder" (a product of
    reflections); by default matrix_exp for square and complex ones, householder for others.
    use_trivialization:
    start from, and assign by, a fixed matrix in front. M. Lezcano-Casado and D. Martinez-Rubio, "Cheap
    orthogonal constraints in neural networks", 2019. Returns the module; raises ValueError for tensors
    below 2 dimensions.

    >>> layer = fw.nn.utils.parametrizations.orthogonal(fw.nn.Linear(3, 3))
    >>> bool((layer.weight @ layer.weight.mT - fw.eye(3)).abs().max() < 1e-5)
    True
    """
    weight: Any = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"orthogonal: {type(module).__name__} has no parameter or buffer '{name}'")
    if weight.ndim < 2:
        raise ValueError(f"orthogonal: wanted a tensor of at least 2 dimensions, '{name}' has {weight.ndim}")
    square = weight.shape[-2] == weight.shape[-1]
    chosen = orthogonal_map or ("matrix_exp" if square or weight.is_complex() else "householder")
    if chosen not in _OrthMaps.__members__:
        raise ValueError(f"orthogonal: orthogonal_map must be one of {', '.join(_OrthMaps.__members__)}, got "
                         f"{orthogonal_map!r}")
    if chosen == "householder" and weight.is_complex():
        raise ValueError("orthogonal: householder is for real tensors")
    made = _Orthogonal(weight, _OrthMaps[chosen], use_trivialization=use_trivialization)
    parametrize.register_parametrization(module, name, made, unsafe=True)
    return module


__dir__ = _own(globals())
