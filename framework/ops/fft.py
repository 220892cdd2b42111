"""Discrete Fourier transforms, by the array module's own FFT.

This release has no gradients of complex tensors, so the transforms carry none either: a tensor that
requires grad is refused instead of losing its gradient without a word. The shifts are plain rolls and
differentiable.
"""

from typing import Any

from .. import dtypes
from ..autograd.mode import state
from ..errors import AutogradError, DTypeError, ShapeError
from ..tensor import Tensor
from .args import many_dims, one_dim, tensor_arg
from .arrange import roll
from .cast import cast
from .op import Meta, Op
from .public import public

_NORMS = (None, "backward", "ortho", "forward")
_COMPLEX = {dtypes.float32: dtypes.complex64, dtypes.float64: dtypes.complex128}
_REAL = {c: r for r, c in _COMPLEX.items()}


def _kernel(xp: Any, x: Any, *, kind: str, sizes: tuple[int, ...], dims: tuple[int, ...],
            norm: str | None) -> Any:
    if not dims:
        return x.astype(xp.result_type(x.dtype, xp.complex64))
    out = getattr(xp.fft, f"{kind}n")(x, s=sizes, axes=dims, norm=norm)
    single = x.dtype in (xp.float32, xp.complex64)
    return out.astype({"f": "float32", "c": "complex64"}[out.dtype.kind], copy=False) if single else out


def _infer(x: Meta, *, kind: str, sizes: tuple[int, ...], dims: tuple[int, ...], norm: Any) -> Meta:
    shape = list(x.shape)
    for d, n in zip(dims, sizes):
        shape[d] = n
    if kind == "rfft":
        shape[dims[-1]] = sizes[-1] // 2 + 1
    to = _REAL.get(x.dtype, x.dtype) if kind == "irfft" else _COMPLEX.get(x.dtype, x.dtype)
    return Meta(tuple(shape), to)


fft_op = Op("fft", "x", kernel=_kernel, infer=_infer)


def _transform(x: Any, kind: str, name: str, s: Any, dim: Any, norm: Any) -> Tensor:
    """Check and normalise the arguments, then run. ``s`` and ``dim`` are sequences or None."""
    x = tensor_arg(x, name)
    if x._node is not None and state.enabled:
        raise AutogradError(f"{name}: transforms have no gradient in this release (there are none of "
                            f"complex tensors); pass input.detach(), or compute under no_grad()")
    if norm not in _NORMS:
        raise ValueError(f"{name}: norm must be 'backward', 'ortho' or 'forward', got {norm!r}")
    if x.dtype.is_complex and kind == "rfft":
        raise DTypeError(f"{name}: input must be real, got {x.dtype}; use {name.replace('rfft', 'fft')}")
    if x.dtype is dtypes.float16:
        raise DTypeError(f"{name}: float16 is not supported; convert it with input.float()")
    if x.dtype.category < dtypes.FLOAT:
        x = cast.run(x, dtype=dtypes.get_default_dtype())
    if kind == "irfft" and not x.dtype.is_complex:
        x = cast.run(x, dtype=_COMPLEX[x.dtype])
    dims = _dims(x, s, dim, name)
    if not dims and kind != "fft" and kind != "ifft":
        raise ShapeError(f"{name}: at least one dimension must be transformed")
    sizes = _sizes(x, kind, s, dims, name)
    return fft_op.run(x, kind=kind, sizes=sizes, dims=dims, norm=norm)


def _dims(x: Tensor, s: Any, dim: Any, name: str) -> tuple[int, ...]:
    if dim is None:
        first = 0 if s is None else x.ndim - len(s)
        if first < 0:
            raise ShapeError(f"{name}: s has {len(s)} sizes but input only {x.ndim} dimensions")
        return tuple(range(first, x.ndim))
    if not x.ndim and dim:
        raise ShapeError(f"{name}: input must have at least 1 dimension, got a 0-dim tensor")
    given = dim if isinstance(dim, (tuple, list)) else (dim,)
    dims = tuple([one_dim(d, x.ndim, name) for d in given])
    if len(set(dims)) != len(dims):
        raise ShapeError(f"{name}: dim={tuple(given)} names a dimension twice")
    if s is not None and len(s) != len(dims):
        raise ShapeError(f"{name}: s has {len(s)} sizes but dim names {len(dims)} dimensions")
    return dims


def _sizes(x: Tensor, kind: str, s: Any, dims: tuple[int, ...], name: str) -> tuple[int, ...]:
    sizes = [x.shape[d] for d in dims]
    if kind == "irfft" and dims:
        sizes[-1] = 2 * (sizes[-1] - 1)
    for i, n in enumerate(s or ()):
        if n is not None and (isinstance(n, bool) or not hasattr(n, "__index__")):
            raise TypeError(f"{name}: a size must be an int, got {type(n).__name__}")
        if n is not None and n != -1:
            sizes[i] = n.__index__()
    if any(n < 1 for n in sizes):
        raise ShapeError(f"{name}: every transformed size must be at least 1, got {sizes}")
    return tuple(sizes)


@public("fft", op=fft_op, out=True)
def fft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The discrete Fourier transform along one dimension: (*, n) -> complex (*, n).

    Formula: ``out[k] = sum_j input[j] * exp(-2 pi i j k / n)``. n: cut or pad with 0 to this size first.
    norm "backward" (default): no factor here and 1/n in the inverse, "forward": the other way round,
    "ortho": 1/sqrt(n) in both. No gradient: raises AutogradError for an input that requires grad.

    >>> fw.fft.fft(fw.tensor([1.0, 0.0, 0.0, 0.0])).numpy().real.tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    return _transform(input, "fft", "fft", None if n is None else (n,), (dim,), norm)


@public("fft", op=fft_op, out=True)
def ifft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of ``fft``: (*, n) -> complex (*, n). Arguments as there; no gradient.

    >>> fw.fft.ifft(fw.tensor([4.0, 0.0, 0.0, 0.0])).numpy().real.tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    return _transform(input, "ifft", "ifft", None if n is None else (n,), (dim,), norm)


@public("fft", op=fft_op, out=True)
def rfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The first half of ``fft`` of a real tensor, the rest being its mirror: (*, n) -> (*, n // 2 + 1).

    No gradient. Raises DTypeError for a complex input.

    >>> fw.fft.rfft(fw.tensor([1.0, 0.0, 0.0, 0.0])).numpy().real.tolist()
    [1.0, 1.0, 1.0]
    """
    return _transform(input, "rfft", "rfft", None if n is None else (n,), (dim,), norm)


@public("fft", op=fft_op, out=True)
def irfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of ``rfft``: (*, m) -> real (*, n), n = 2 (m - 1) unless given. No gradient.

    >>> fw.fft.irfft(fw.tensor([4.0, 0.0, 0.0]))
    tensor([1., 1., 1., 1.])
    """
    return _transform(input, "irfft", "irfft", None if n is None else (n,), (dim,), norm)


@public("fft", op=fft_op, out=True)
def fft2(input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Tensor:
    """``fft`` along two dimensions; s: their sizes. No gradient.

    >>> fw.fft.fft2(fw.ones(2, 2)).numpy().real.tolist()
    [[4.0, 0.0], [0.0, 0.0]]
    """
    return _transform(input, "fft", "fft2", s, dim, norm)


@public("fft", op=fft_op, out=True)
def ifft2(input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Tensor:
    """The inverse of ``fft2``. No gradient.

    >>> fw.fft.ifft2(fw.ones(2, 2)).numpy().real.tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """
    return _transform(input, "ifft", "ifft2", s, dim, norm)


@public("fft", op=fft_op, out=True)
def rfft2(input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Tensor:
    """``fft2`` of a real tensor, only the first half of the last of ``dim``. No gradient.

    >>> fw.fft.rfft2(fw.ones(2, 4)).shape
    (2, 3)
    """
    return _transform(input, "rfft", "rfft2", s, dim, norm)


@public("fft", op=fft_op, out=True)
def irfft2(input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Tensor:
    """The inverse of ``rfft2``: a real tensor. No gradient.

    >>> fw.fft.irfft2(fw.ones(2, 3)).shape
    (2, 4)
    """
    return _transform(input, "irfft", "irfft2", s, dim, norm)


@public("fft", op=fft_op, out=True)
def fftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None) -> Tensor:
    """``fft`` along the dimensions ``dim``: all of them, or with ``s`` alone the last ones. No gradient.

    >>> fw.fft.fftn(fw.ones(2, 2)).numpy().real.tolist()
    [[4.0, 0.0], [0.0, 0.0]]
    """
    return _transform(input, "fft", "fftn", s, dim, norm)


@public("fft", op=fft_op, out=True)
def ifftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None) -> Tensor:
    """The inverse of ``fftn``. No gradient.

    >>> fw.fft.ifftn(fw.ones(2, 2)).numpy().real.tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """
    return _transform(input, "ifft", "ifftn", s, dim, norm)


@public("fft", op=fft_op, out=True)
def rfftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None) -> Tensor:
    """``fftn`` of a real tensor, only the first half of the last of ``dim``. No gradient.

    >>> fw.fft.rfftn(fw.ones(2, 4)).shape
    (2, 3)
    """
    return _transform(input, "rfft", "rfftn", s, dim, norm)


@public("fft", op=fft_op, out=True)
def irfftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None) -> Tensor:
    """The inverse of ``rfftn``: a real tensor. No gradient.

    >>> fw.fft.irfftn(fw.ones(2, 3)).shape
    (2, 4)
    """
    return _transform(input, "irfft", "irfftn", s, dim, norm)


def _shift(x: Tensor, dim: Any, name: str, back: bool) -> Tensor:
    dims = many_dims(dim, tensor_arg(x, name).ndim, name)
    if not dims:
        return x.clone()  # type: ignore[attr-defined]
    by = [(x.shape[d] + 1) // 2 if back else x.shape[d] // 2 for d in dims]
    return roll(x, by, list(dims))


@public("fft")
def fftshift(input: Tensor, dim: Any = None) -> Tensor:
    """The frequency 0 moved from the front to the middle of ``dim`` (default: all). Differentiable.

    >>> fw.fft.fftshift(fw.tensor([0, 1, 2, -2, -1]))
    tensor([-2, -1,  0,  1,  2])
    """
    return _shift(input, dim, "fftshift", False)


@public("fft")
def ifftshift(input: Tensor, dim: Any = None) -> Tensor:
    """The inverse of ``fftshift``.

    >>> fw.fft.ifftshift(fw.tensor([-2, -1, 0, 1, 2]))
    tensor([ 0,  1,  2, -2, -1])
    """
    return _shift(input, dim, "ifftshift", True)
