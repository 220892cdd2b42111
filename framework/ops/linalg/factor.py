"""The factorisations behind ``linalg``: records for inverse, solution, Cholesky, QR, SVD, eigenvectors.

Derivatives: M. Giles, "An extended collection of matrix derivative results for forward and reverse
mode algorithmic differentiation", 2008; Cholesky: I. Murray, "Differentiation of the Cholesky
decomposition", 2016; QR: H.-J. Liao et al., "Differentiable programming tensor networks", 2019.
Singular and eigenvectors have no derivative where values coincide: there a gradient that needs it is
inf or nan, and any other comes out right. Complex ones are free to turn by a phase: a result that depends
on it has no derivative and is refused (M. Seeger et al., "Auto-differentiating linear algebra", 2017).
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from ...backends import array_module, cuda, device_flags
from ...dtypes import float16
from ...errors import AutogradError, DTypeError, LinAlgError, ShapeError
from ...tensor import Tensor
from ..pointwise.arithmetic import over
from ..record.args import floating, tensor_arg
from ..record.batched import leading, rowwise
from ..record.constants import like, raw
from ..record.op import Meta, Op
from ..shape.broadcast import broadcast_shape, sum_to
from ..shape.complex_parts import imag_op
from ..shape.cuda import triangle
from ..shape.diagonals import diagonal_op, tril_op, triu_op
from ..shape.slices import put_slice, slice_op
from ..shape.view import reshape_op
from . import cuda_triangular, lapack
from .contract import product
from .cuda_slopes import eigen_middle, mirrored, singular_middle
from .matmul import swap_last


def checked(text: str) -> Callable:
    """A kernel whose LinAlgError says what was wrong with the matrix."""
    def mark(kernel: Callable) -> Callable:
        def run(xp: Any, *args: Any, **settings: Any) -> Any:
            try:
                if xp is np:
                    return kernel(xp, *args, **settings)
                with cuda.linalg_raises(text.partition(":")[0]):
                    return kernel(xp, *args, **settings)
            except np.linalg.LinAlgError as error:
                raise LinAlgError(f"{text} ({error})") from None
        return run
    return mark


def converging(name: str, kernel: Callable) -> Callable:
    """A kernel of the op ``name`` that goes on until a matrix is decomposed."""
    return checked(f"{name}: no convergence; is there a nan or inf in the matrix?")(kernel)


def matrix(x: Any, op: str, square: bool = True, name: str = "A", half: bool = False) -> Tensor:
    """``x`` if it is a matrix that ``op`` can take; ``half``: also of float16."""
    if type(tensor_arg(x, op, name)) is Tensor and x._array.dtype.char in "fdFD":
        shape = x._array.shape
        if len(shape) >= 2 and (not square or shape[-1] == shape[-2]):
            return x
    floating(x, op, name)
    if x.dtype is float16 and not half:
        raise DTypeError(f"{op}: argument '{name}' is float16, for which there is no linear algebra; "
                         f"convert it: {name}.float()")
    if x.ndim < 2 or (square and x.shape[-1] != x.shape[-2]):
        kind = "square matrices (*, n, n)" if square else "matrices (*, m, n)"
        raise ShapeError(f"{op}: argument '{name}' must be {kind}, got shape {list(x.shape)}")
    return x


def eye(x: Any, n: int) -> Any:
    return like(x, lambda xp, dtype: xp.eye(n, dtype=dtype))


def lower_mask(x: Any, n: int, diagonal: float) -> Any:
    """Ones below the diagonal, ``diagonal`` on it: multiplied, it takes a lower triangle."""
    return like(x, lambda xp, dtype: xp.tri(n, k=-1, dtype=dtype) + xp.eye(n, dtype=dtype) * diagonal)


def column(s: Any) -> Any:
    return reshape_op(s, shape=(*s.shape, 1))


def row(s: Any) -> Any:
    return reshape_op(s, shape=(*s.shape[:-1], 1, s.shape[-1]))


def columns(x: Any, start: int, stop: int) -> Any:
    return slice_op(x, key=(Ellipsis, slice(start, stop)))


def use_kernel(*tensors: Tensor) -> bool:
    """Whether a record without a derivative may take them: real numbers of the host, in no graph."""
    for x in tensors:
        if x._node is not None or type(x._array) is not np.ndarray or x._array.dtype.char not in "fd" \
                or not x._array.size:
            return False
    return True


def is_complex(x: Any) -> bool:
    """Whether the array or tensor is complex."""
    return raw(x).dtype.kind == "c"


def mirror(x: Any) -> Any:
    """The conjugate of a complex array or tensor; a real one as it is."""
    return x.conj() if is_complex(x) else x


def turned(x: Any) -> Any:
    """The conjugate transpose."""
    return mirror(swap_last(x))


def imaginary_diagonal(x: Any) -> Any:
    """The imaginary parts of the diagonals of complex matrices."""
    return imag_op(diagonal_op(x, offset=0, dims=(x.ndim - 2, x.ndim - 1)))


def check_phase(turn: Any, op: str, *gradients: Any) -> None:
    """Raise where the gradients of complex vectors are not free of their phases; then ``turn`` is not 0."""
    if not raw(turn).size:
        return
    most, size = [_largest(xs) for xs in ((turn,), gradients)]
    wrong = (f"{op}: complex vectors are free to turn by a phase, and this result depends on it, so it has "
             f"no derivative; make it of their absolute values or projections")
    beyond = most - 1e-3 * size  # rounding is far below, a dependence far above
    if not device_flags.check_reals(beyond, -np.inf, 0.0, wrong, error=AutogradError) and beyond > 0:
        raise AutogradError(wrong)


def _largest(xs: tuple) -> Any:
    """The greatest absolute value in arrays or tensors, as an array where they lie."""
    arrays = [abs(raw(x)).max() for x in xs if x is not None]
    return arrays[0] if len(arrays) == 1 else array_module(arrays[0]).stack(arrays).max()


# -- inverse and solution ------------------------------------------------------------------------

inv_op = Op("inv", "A", batch=leading, native="small_inv", infer=lambda A: A,
            kernel=checked("inv: the matrix is singular; pinv takes any")(lambda xp, A: xp.linalg.inv(A)),
            vjp={"A": lambda g, out: -product(product(swap_last(out), g), swap_last(out))})


def solve_infer(A: Meta, B: Meta) -> Meta:
    if A.shape[-1] != B.shape[-2]:
        raise ShapeError(f"solve: A of shape {list(A.shape)} and B of shape {list(B.shape)}: B must have "
                         f"{A.shape[-1]} rows, not {B.shape[-2]}")
    return Meta(broadcast_shape((A.shape[:-2], B.shape[:-2]), "solve (batch dimensions)") + B.shape[-2:],
                B.dtype)


def _solve_vjp(g: Any, A: Any, out: Any, B_shape: tuple, needs: tuple) -> tuple:
    gb = solve_op(swap_last(A), g)
    ga = -product(gb, swap_last(out)) if needs[0] else None
    return (None if ga is None else sum_to(ga, size=A.shape), sum_to(gb, size=B_shape) if needs[1] else None)


def _of_one_batch(xp: Any, A: Any, B: Any) -> tuple:
    """The operands as CuPy's solve takes them: it does not broadcast."""
    if xp is np or A.shape[:-2] == B.shape[:-2]:
        return A, B
    lead = np.broadcast_shapes(A.shape[:-2], B.shape[:-2])
    return tuple([xp.broadcast_to(x, (*lead, *x.shape[-2:])) for x in (A, B)])


solve_op = Op("solve", "A B", batch=rowwise, native="small_solve", infer=solve_infer, vjp=_solve_vjp,
              kernel=checked(
    "solve: the matrix A is singular; linalg.pinv(A) @ B gives the smallest solution of least squares")(
        lambda xp, A, B: xp.linalg.solve(*_of_one_batch(xp, A, B))))


def _triangular_kernel(xp: Any, A: Any, B: Any, *, upper: bool, unit: bool) -> Any:
    found = NotImplemented if xp is np else triangle(
        A, k=0, upper=upper, unit=unit, as_it_lies=True)
    if found is NotImplemented:
        found = xp.triu(A, int(unit)) if upper else xp.tril(A, -int(unit))
        found = found + xp.eye(A.shape[-1], dtype=A.dtype) if unit else found
    return xp.linalg.solve(*_of_one_batch(xp, found, B))


def _triangular_vjp(g: Any, A: Any, out: Any, B_shape: tuple, needs: tuple, upper: bool, unit: bool) -> tuple:
    gb, ga = triangular_op(swap_last(A), g, upper=not upper, unit=unit), None
    if needs[0]:
        ga = -product(gb, swap_last(out))
        ga = sum_to(triu_op(ga, k=int(unit)) if upper else tril_op(ga, k=-int(unit)), size=A.shape)
    return ga, sum_to(gb, size=B_shape) if needs[1] else None


# only the named triangle of A is read; unit: its diagonal counts as ones
triangular_op = Op("solve_triangular", "A B", batch=rowwise, native="solve_triangular", vjp=_triangular_vjp,
                   infer=lambda A, B, **settings: solve_infer(A, B), device=cuda_triangular.solve_triangular,
                   rules_round=False, kernel=checked(cuda_triangular.SINGULAR)(_triangular_kernel))


# -- Cholesky -------------------------------------------------------------------------------------


def _cholesky_vjp(g: Any, out: Any) -> Any:
    n = out.shape[-1]
    above = turned(out)
    phi = product(above, g)
    middle = mirrored(phi, None, 0.5)
    if middle is NotImplemented:
        phi = phi * lower_mask(g, n, 0.5)
        middle = 0.5 * (phi + turned(phi))
    middle = triangular_op(above, middle, upper=True, unit=False)
    return turned(triangular_op(above, turned(middle), upper=True, unit=False))


cholesky_op = Op("cholesky", "A", native="small_cholesky",
                 batch=leading, infer=lambda A: A, adjoint=True, vjp={"A": _cholesky_vjp}, kernel=checked(
    "cholesky: the matrix is not positive definite; add a little to its diagonal")(
        lambda xp, A: xp.linalg.cholesky(A)))


# -- QR -------------------------------------------------------------------------------------------


def _qr_kernel(xp: Any, A: Any, *, mode: str) -> tuple:
    if mode == "r":
        return xp.zeros((0,), A.dtype), xp.linalg.qr(A, mode="r")
    return tuple(xp.linalg.qr(A, mode=mode))


def _qr_vjp(g: list, A_shape: tuple, Q: Any, R: Any, mode: str) -> tuple:
    gq, gr = g
    m, n = A_shape[-2:]
    if mode == "r" or (mode == "complete" and m > n):
        raise AutogradError(f"qr: mode={mode!r} has no derivative here; use mode='reduced'")
    if m >= n:
        return (_qr_tall(gq, gr, Q, R),)
    # wide: A = [X Y], R = [U V] with square U; X = Q U, and V = Q.H Y also depends on Q
    gx_q = gq
    u, v = columns(R, 0, m), columns(R, m, n)
    gu = None if gr is None else columns(gr, 0, m)
    gy = None
    if gr is not None:
        gv = columns(gr, m, n)
        gy = product(Q, gv)
        through = product(product(Q, v), turned(gv))  # Y = Q V
        gx_q = through if gq is None else gq + through
    gx = _qr_tall(gx_q, gu, Q, u)
    total = put_slice(gx, key=(Ellipsis, slice(0, m)), shape=A_shape)
    if gy is not None:
        total = total + put_slice(gy, key=(Ellipsis, slice(m, n)), shape=A_shape)
    return (total,)


def _qr_tall(gq: Any, gr: Any, Q: Any, R: Any) -> Any:
    plus = None if gr is None else product(R, turned(gr))
    minus = None if gq is None else product(turned(gq), Q)
    middle = mirrored(plus, minus, 1.0)
    if middle is NotImplemented:
        difference = plus if minus is None else -minus if plus is None else plus - minus
        lower = difference * lower_mask(difference, R.shape[-1], 0.5)
        middle = lower + turned(lower)
    total = product(Q, middle)
    if gq is not None:
        total = gq + total
    return turned(triangular_op(R, turned(total), upper=True, unit=False))


def _qr_infer(A: Meta, *, mode: str) -> tuple[Meta, Meta]:
    *batch, m, n = A.shape
    k = m if mode == "complete" else min(m, n)
    q = (*batch, m, k) if mode != "r" else (0,)
    return Meta(q, A.dtype), Meta((*batch, k, n), A.dtype)


qr_op = Op("qr", "A", batch=leading, kernel=_qr_kernel, native="small_qr", outputs="Q R", vjp=_qr_vjp,
           infer=_qr_infer)


# -- singular values ------------------------------------------------------------------------------


def _svd_vjp(g: list, U: Any, S: Any, Vh: Any, full: bool) -> tuple:
    gu, gs, gvh = g
    k, m, n = S.shape[-1], U.shape[-2], Vh.shape[-1]
    if full and m != n:
        gu, gvh = _without_rest(gu, -1, k), _without_rest(gvh, -2, k)
        U, Vh = columns(U, 0, k), slice_op(Vh, key=(Ellipsis, slice(0, k), slice(None)))
    if gu is None and gvh is None:
        return (product(U * row(gs), Vh),)
    ours = None if gu is None else product(turned(U), gu)
    theirs = None if gvh is None else product(Vh, turned(gvh))
    middle = singular_middle(theirs if ours is None else ours, gs, ours, theirs, S)
    if middle is NotImplemented:
        turn = _svd_turn(ours, theirs, gu, gvh) if is_complex(U) else None
        middle = _svd_middle(gs, ours, theirs, S, turn)
    core = product(product(U, middle), Vh)
    if gu is not None and m > k:
        core = core + product(over(gu - product(U, ours), row(S)), Vh)
    if gvh is not None and n > k:
        core = core + product(U, over(gvh - product(turned(theirs), Vh), column(S)))
    return (core,)


def _svd_middle(gs: Any, ours: Any, theirs: Any, S: Any, turn: Any) -> Any:
    """``singular_middle`` as a formula; turn: of complex vectors, by which their phases turn."""
    k, like = S.shape[-1], theirs if ours is None else ours
    gaps = (row(S) - column(S)) * (row(S) + column(S)) + eye(S, k)
    parts = [] if gs is None else [row(gs) * eye(like, k)]
    if turn is not None:
        parts.append(eye(like, k) * over(turn, column(S)))
    parts += [over((x - turned(x)) * (1 - eye(like, k)), gaps) * values
              for x, values in ((ours, row(S)), (theirs, column(S))) if x is not None]
    middle = parts[0]
    for part in parts[1:]:
        middle = middle + part
    return middle


def _svd_turn(ours: Any, theirs: Any, gu: Any, gvh: Any) -> Any:
    """The part of diag(U.H gu) that turns the phases of U's vectors; Vh's must turn back by as much."""
    ours, theirs = (None if x is None else imaginary_diagonal(x) for x in (ours, theirs))
    total = theirs if ours is None else ours if theirs is None else ours + theirs
    check_phase(total, "svd", gu, gvh)
    return None if ours is None else column(ours) * 1j


def _without_rest(g: Any, dim: int, k: int) -> Any:
    """The gradient of the first k singular vectors; the others are free to turn and can have none."""
    if g is None or g.shape[dim] == k:
        return g
    after = (slice(None),) * (-1 - dim)
    if bool((slice_op(g, key=(Ellipsis, slice(k, None), *after)) != 0).any()):
        raise AutogradError("svd: the vectors that full_matrices=True adds to U or Vh have no derivative; "
                            "use full_matrices=False")
    return slice_op(g, key=(Ellipsis, slice(0, k), *after))


def _svd_infer(A: Meta, *, full: bool) -> tuple[Meta, Meta, Meta]:
    *batch, m, n = A.shape
    k = min(m, n)
    return (Meta((*batch, m, m if full else k), A.dtype), Meta((*batch, k), A.dtype.to_real()),
            Meta((*batch, n if full else k, n), A.dtype))


svd_op = Op("svd", "A", batch=leading, native="small_svd", outputs="U S Vh", vjp=_svd_vjp, infer=_svd_infer,
            kernel=converging("svd", lapack.svd))


def _svdvals_vjp(g: Any, A: Any) -> Any:
    U, _, Vh = svd_op(A, full=False)
    return product(U * row(g), Vh)


# the values alone, a third of the work; with a gradient the vectors are wanted, too
svdvals_op = Op("svdvals", "A", batch=leading, adjoint=True, native="small_svdvals",
                infer=lambda A: Meta((*A.shape[:-2], min(A.shape[-2:])), A.dtype.to_real()),
                vjp={"A": _svdvals_vjp},
                kernel=converging("svdvals", lapack.svdvals))


# -- eigenvalues ----------------------------------------------------------------------------------


def _eigh_vjp(g: list, eigenvalues: Any, V: Any) -> tuple:
    gl, gv = g
    n = V.shape[-1]
    if gv is None:
        return (product(V * row(gl), turned(V)),)
    inner = product(turned(V), gv)
    if is_complex(V):
        check_phase(imaginary_diagonal(inner), "eigh", gv)
    middle = eigen_middle(gl, inner, eigenvalues)
    if middle is NotImplemented:
        gaps = row(eigenvalues) - column(eigenvalues) + eye(eigenvalues, n)
        middle = over(inner * (1 - eye(V, n)), gaps)
        middle = middle if gl is None else row(gl) * eye(V, n) + middle
    g = product(product(V, middle), turned(V))  # what is not Hermitian says nothing of Hermitian matrices
    return ((g + turned(g)) * 0.5,)


eigh_op = Op("eigh", "A", batch=leading, native="small_eigh", outputs="eigenvalues V", vjp=_eigh_vjp,
             infer=lambda A, *, uplo: (Meta(A.shape[:-1], A.dtype.to_real()), A),
             kernel=converging("eigh", lapack.eigh))


def _eigvalsh_vjp(g: Any, A: Any, uplo: str) -> Any:
    V = eigh_op(A, uplo=uplo)[1]
    return product(V * row(g), turned(V))


eigvalsh_op = Op("eigvalsh", "A", batch=leading, native="small_eigvalsh", adjoint=True,
                 infer=lambda A, *, uplo: Meta(A.shape[:-1], A.dtype.to_real()),
                 vjp={"A": _eigvalsh_vjp},
                 kernel=converging("eigvalsh", lapack.eigvalsh))
