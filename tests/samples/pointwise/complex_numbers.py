"""Rows of ops/pointwise/complex_numbers.py, and complex samples of the rows of other files."""

from typing import Any

import numpy as np

from framework.errors import DTypeError, ShapeError

from ..base import Sample, complex_twins, further, normal, planar, positive, row

Z, W, A = planar(2, 3), planar(3, seed=1), normal(2, 3)
ZERO = np.array([0j, 1 - 2j, -3 + 0j])


def _row(name: str, ref: Any, *samples: Sample, real: Any = A, method: bool = True, **more: Any) -> None:
    """One row of a function of one tensor: complex, real where ``real`` is one, and wrong calls."""
    def call(M: Any, x: Any) -> Any:
        return getattr(M, name)(x)

    own = [Sample("complex", call, (Z,), ref)]
    if real is not None:
        own.append(Sample("real", call, (real,), ref))
    if method:
        own.append(Sample("method", lambda M, x: getattr(x, name)(), (Z,), ref, grad=False))
    row(name, *own, *samples, errors=[("list", lambda M: call(M, [1j]), TypeError, "list"),
                                      *more.get("errors", [])])


_row("conj", np.conj)
_row("conj_physical", np.conj)
_row("resolve_conj", lambda x: x)
_row("resolve_neg", lambda x: x)
_row("adjoint", lambda x: np.conj(x).T, errors=[
    ("vector", lambda M: M.adjoint(M.ones(2)), ShapeError, "2 dimensions")])
_row("real", np.real, method=False)
_row("imag", np.imag, real=None, method=False, errors=[
    ("real", lambda M: M.imag(M.ones(2)), DTypeError, "complex")])
_row("sgn", np.sign, Sample("zero", lambda M, x: M.sgn(x), (ZERO,), np.sign, grad=False))
_row("angle", np.angle, Sample("zero", lambda M, x: M.angle(x), (ZERO[:2],), np.angle, grad=False),
     Sample("int", lambda M, x: M.angle(x), (np.array([1, -2, 0]),), np.angle))
_row("isreal", np.isreal, Sample("mixed", lambda M, x: M.isreal(x), (ZERO,), np.isreal))
row("is_complex", Sample("complex", lambda M, x: M.is_complex(x), (Z,), lambda x: True),
    Sample("real", lambda M, x: M.is_complex(x), (A,), lambda x: False),
    errors=[("list", lambda M: M.is_complex([1j]), TypeError, "list")])
for _name in ("is_conj", "is_neg"):
    row(_name, Sample("plain", lambda M, x, n=_name: getattr(M, n)(x), (Z,), lambda x: False),
        errors=[("list", lambda M, n=_name: getattr(M, n)([1j]), TypeError, "list")])
row("complex", Sample("plain", lambda M, x, y: M.complex(x, y), (A, A * 2), lambda x, y: x + 1j * y),
    Sample("broadcast", lambda M, x, y: M.complex(x, y), (A, A[:, :1]), lambda x, y: x + 1j * y),
    errors=[("dtypes", lambda M: M.complex(M.ones(2), M.ones(2, dtype=M.float64)), DTypeError, "float64"),
            ("int", lambda M: M.complex(M.tensor([1]), M.tensor([1])), DTypeError, "int64"),
            ("shapes", lambda M: M.complex(M.ones(2), M.ones(3)), ShapeError, "broadcast"),
            ("number", lambda M: M.complex(M.ones(2), 1.0), TypeError, "imag")])
row("polar", Sample("plain", lambda M, x, y: M.polar(x, y), (np.abs(A), A), lambda x, y: x * np.exp(1j * y)),
    errors=[("int", lambda M: M.polar(M.tensor([1]), M.tensor([1])), DTypeError, "int64")])
row("view_as_real", Sample("plain", lambda M, x: M.view_as_real(x), (Z,),
                           lambda x: np.stack([x.real, x.imag], -1)),
    Sample("transposed", lambda M, x: M.view_as_real(x.t()), (Z,),
           lambda x: np.stack([x.T.real, x.T.imag], -1)),
    errors=[("real", lambda M: M.view_as_real(M.ones(2)), DTypeError, "complex")])
row("view_as_complex", Sample("plain", lambda M, x: M.view_as_complex(x), (normal(3, 2),),
                              lambda x: x[:, 0] + 1j * x[:, 1], noncontiguous=False),
    Sample("0-dim", lambda M, x: M.view_as_complex(x).imag, (normal(2),), lambda x: x[1],
           noncontiguous=False),
    Sample("rows", lambda M, x: M.view_as_complex(x[1:]), (normal(3, 2),),
           lambda x: x[1:, 0] + 1j * x[1:, 1], noncontiguous=False),
    errors=[("size", lambda M: M.view_as_complex(M.ones(3)), ShapeError, "last size"),
            ("int", lambda M: M.view_as_complex(M.tensor([1, 2])), DTypeError, "int64"),
            ("apart", lambda M: M.view_as_complex(M.ones(2, 2).t()), ValueError, "contiguous()")])
row("mH", Sample("batch", lambda M, x: x.mH, (planar(2, 2, 3),), lambda x: np.conj(x.swapaxes(1, 2))),
    Sample("real", lambda M, x: x.mH, (A,), lambda x: x.T), namespace="")
row("H", Sample("matrix", lambda M, x: x.H, (Z,), lambda x: np.conj(x.T)), namespace="",
    errors=[("batch", lambda M: M.ones(2, 2, 2).H, ShapeError, "mH")])

# -- complex samples of other rows -----------------------------------------------------------------

complex_twins("""
    abs acos acosh add addbmm addcdiv addcmul addmm addmv addr all any allclose asin asinh atan atanh baddbmm
    bmm broadcast_to cat chunk clone column_stack corrcoef cos cosh count_nonzero cov cross cumprod cumsum
    cumulative_trapezoid det diag diag_embed diagonal diagonal_scatter diff dist dot einsum eq equal exp exp2
    expm1 flatten flip float_power gather ger gradient hstack index_add index_copy index_fill index_put
    index_select inner inverse isclose isfinite isinf isnan kron lerp log log10 log1p log2 logical_and
    logical_not logical_or logical_xor logsumexp masked_fill masked_scatter masked_select matmul matrix_power
    mean meshgrid mm movedim mul mv nan_to_num narrow ne neg norm outer permute pinverse positive pow prod
    ravel reciprocal repeat_interleave reshape roll rot90 rsqrt rsub scatter scatter_add select sigmoid sin
    sinh split sqrt square squeeze stack std std_mean sub sum swapaxes t take take_along_dim tan tanh
    tensor_split tensordot tile trace transpose trapezoid tril triu unbind unflatten unsqueeze var var_mean
    where""")
complex_twins("""
    cond cross det diagonal inv lu lu_factor matrix_norm matrix_power matrix_rank multi_dot norm pinv qr solve
    solve_triangular svdvals vector_norm""", "linalg")
complex_twins("linear normalize pad pairwise_distance pixel_shuffle tanhshrink unfold fold", "nn.functional")
complex_twins("T contiguous expand mT pow repeat rpow rtruediv unfold view where", "")
complex_twins("fftshift ifftshift", "fft")

S, T, R = planar(3, 3, seed=2), planar(4, 3, seed=3), normal(3, 3)
further("div", Sample("complex", lambda M, x, y: x / y, (Z, W), lambda x, y: x / y),
        Sample("complex by real", lambda M, x, y: M.div(x, y), (Z, A), lambda x, y: x / y),
        Sample("number by complex", lambda M, x: (2 - 1j) / x, (Z,), lambda x: (2 - 1j) / x))
further("mul", Sample("real by complex", lambda M, x, y: x * y, (A, W), lambda x, y: x * y),
        Sample("real by number", lambda M, x: x * (1 + 2j), (A,), lambda x: x * (1 + 2j)))
further("pow", Sample("complex exponent", lambda M, x, y: x ** y, (positive(3), W), lambda x, y: x ** y),
        Sample("cube", lambda M, x: x ** 3, (Z,), lambda x: x ** 3))
further("rpow", *[Sample(f"{label} base", lambda M, x, b=b: b ** x, (Z,), lambda x, b=b: complex(b) ** x)
                  for label, b in (("positive", 2.0), ("negative", -1), ("complex", 1 - 2j))],
        Sample("complex base, real exponent", lambda M, x: (1 - 2j) ** x, (A,), lambda x: (1 - 2j) ** x),
        namespace="")
further("silu", Sample("complex", lambda M, x: M.nn.functional.silu(x), (Z,), lambda x: x / (1 + np.exp(-x)),
                       torch=False, why="PyTorch has no gradient here"), namespace="nn.functional")
further("l1_loss", Sample("complex", lambda M, x, y: M.nn.functional.l1_loss(x, y), (Z, Z[:, ::-1] * 2),
                          lambda x, y: np.abs(x - y).mean()), namespace="nn.functional")
for _d in (1, 2):
    def _conv(M: Any, x: Any, w: Any, name: str = f"conv{_d}d") -> Any:
        return getattr(M.nn.functional, name)(x, w, groups=2, padding=1)
    further(f"conv{_d}d", Sample("complex", _conv, (planar(1, 2, *(4,) * _d), planar(2, 1, *(2,) * _d)),
                                 lambda x, w: _convolved(x[0], w[:, 0])[None]), namespace="nn.functional")
further("acosh", Sample("left half", lambda M, x: M.acosh(x), (np.array([-2 + 1j, -0.5 - 1j]),), np.arccosh,
                        torch=False, why="PyTorch's gradient has the wrong sign there"))
further("abs", Sample("zero", lambda M, x: M.abs(x), (ZERO,), np.abs, grad=False))
further("prod", Sample("zeros, complex", lambda M, x: M.prod(x, 0), (np.array([[0j, 1j], [2 + 1j, 0j]]),),
                       lambda x: x.prod(0)))
further("vdot", Sample("complex", lambda M, x, y: M.vdot(x, y), (W, planar(3, seed=5)), np.vdot))
further("logdet", Sample("complex", lambda M, x: M.logdet(x), (S,), lambda x: np.log(np.linalg.det(x))))
further("matrix_exp", Sample("complex", lambda M, x: M.matrix_exp(x), (S,), lambda x: _taylor(x), tol=10,
                             why="the reference sums fewer terms"))
further("cholesky_solve", Sample(
    "complex", lambda M, b, x: M.cholesky_solve(b, M.linalg.cholesky(_positive(M, x))), (T.T, S),
    lambda b, x: np.linalg.solve(x @ np.conj(x.T) + np.eye(3), b)))


def _positive(M: Any, x: Any) -> Any:
    return x @ x.mH + M.eye(x.shape[-1], dtype=x.dtype)


def _taylor(x: np.ndarray) -> np.ndarray:
    total = term = np.eye(len(x), dtype=complex)
    for k in range(1, 60):
        term = term @ x / k
        total = total + term
    return total


def _linalg(name: str, label: str, call: Any, reference: Any, *inputs: Any, **more: Any) -> None:
    further(name, Sample(label, lambda M, *xs: call(M.linalg, *xs), inputs, reference, **more),
            namespace="linalg")


_linalg("vecdot", "complex", lambda L, x, y: L.vecdot(x, y), lambda x, y: (np.conj(x) * y).sum(-1), Z, W)
_linalg("det", "singular, complex", lambda L, x: L.det(x), np.linalg.det,
        np.array([[1 + 1j, 2 + 2j], [1j, 2j]]), order=1, torch=False,
        why="the gradient is the matrix of cofactors, for which PyTorch gives 0 here")
_linalg("slogdet", "complex", lambda L, x: tuple(L.slogdet(x)), lambda x: tuple(np.linalg.slogdet(x)),
        planar(2, 3, 3))
for _upper in (False, True):
    def _factor(L: Any, x: Any, upper: bool = _upper) -> Any:
        return L.cholesky(x @ x.mH + x @ x.mH, upper=upper)
    _linalg("cholesky", f"complex, upper={_upper}", _factor, lambda x, upper=_upper: (
        lambda c: np.conj(c.T) if upper else c)(np.linalg.cholesky(2 * x @ np.conj(x.T))), S)
_linalg("qr", "tall, complex", lambda L, x: tuple(L.qr(x)), lambda x: tuple(np.linalg.qr(x)), T)
_linalg("qr", "wide, complex", lambda L, x: tuple(L.qr(x)), lambda x: tuple(np.linalg.qr(x)), T.T)
for _shape in ((3, 3), (4, 3), (2, 3, 4)):
    _linalg("svd", f"complex {_shape}", lambda L, x: _free(*L.svd(x, full_matrices=False)),
            lambda x: _free(*np.linalg.svd(x, full_matrices=False)), planar(*_shape, seed=4))
_linalg("eigh", "complex", lambda L, x: _of_vectors(*L.eigh(x + x.mH)),
        lambda x: _of_vectors(*np.linalg.eigh(x + np.conj(x.T))), S)
_linalg("eigvalsh", "complex", lambda L, x: L.eigvalsh(x + x.mH),
        lambda x: np.linalg.eigvalsh(x + np.conj(x.T)), S)
for _label, _x in (("real", R), ("complex", S), ("batch", planar(2, 2, 2))):
    _linalg("eig", f"sums, {_label}", lambda L, x: _symmetric(*L.eig(x)),
            lambda x: _symmetric(*np.linalg.eig(x)), _x)
    _linalg("eigvals", f"sums, {_label}", lambda L, x: (lambda v: (v.sum(-1), (v * v).sum(-1)))(L.eigvals(x)),
            lambda x: (lambda v: (v.sum(-1) + 0j, (v * v).sum(-1) + 0j))(np.linalg.eigvals(x)), _x)
for _ord in (1, 3, float("inf")):
    _linalg("vector_norm", f"complex {_ord}", lambda L, x, o=_ord: L.vector_norm(x, o, dim=1),
            lambda x, o=_ord: np.linalg.norm(x, o, 1), Z)
for _ord in ("nuc", 1, 2):
    _linalg("matrix_norm", f"complex {_ord}", lambda L, x, o=_ord: L.matrix_norm(x, o),
            lambda x, o=_ord: np.linalg.norm(x, o), T)
for _left in (True, False):
    for _adjoint in (True, False):
        def _solve(L: Any, x: Any, b: Any, left: bool = _left, turn: bool = _adjoint) -> Any:
            return L.lu_solve(*L.lu_factor(x), b, left=left, adjoint=turn)

        def _solved(x: Any, b: Any, left: bool = _left, turn: bool = _adjoint) -> Any:
            x = np.conj(x.T) if turn else x
            return np.linalg.solve(x, b) if left else np.linalg.solve(x.T, b.T).T
        _linalg("lu_solve", f"complex, left={_left}, adjoint={_adjoint}", _solve, _solved, S,
                planar(3, 3, seed=7))
_linalg("lstsq", "complex", lambda L, x, y: L.lstsq(x, y).solution, lambda x, y: np.linalg.pinv(x) @ y, T,
        planar(4, 2))


def _convolved(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Each channel with its own kernel, padded by 1."""
    x = np.pad(x, [(0, 0)] + [(1, 1)] * (x.ndim - 1))
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[1:], tuple(range(1, x.ndim)))
    return np.einsum("cpk,ck->cp", windows.reshape(len(x), -1, w[0].size), w.reshape(len(w), -1)).reshape(
        windows.shape[:x.ndim])


def _free(U: Any, S: Any, Vh: Any) -> tuple:
    """What does not depend on the phases of the singular vectors."""
    return abs(U), S, U[..., :1] @ Vh[..., :1, :], (U * S[..., None, :]) @ Vh


def _of_vectors(values: Any, V: Any) -> tuple:
    """What does not depend on the phases of eigenvectors."""
    return values, abs(V), V[:, :1] @ V[:, :1].T.conj()


def _symmetric(values: Any, V: Any) -> tuple:
    """What depends neither on the phases nor on the order of eigenvectors."""
    return values.sum(-1) + 0j, (abs(V) ** 3).sum(-1), (values * values).sum(-1) + 0j
