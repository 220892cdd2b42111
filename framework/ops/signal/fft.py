"""Discrete Fourier transforms: natively, or by the array module's own FFT.

The record transforms all of its dimensions as they are; cutting and padding to the sizes asked for comes
before it. A transform is linear, so its gradient is its adjoint, which is the opposite transform with the
factor of ``norm`` on the other side. Of a half spectrum every element but the first, and the middle one of
an even size, stands for itself and its mirror: it counts twice in ``irfft``, and half as much the other way.
"""

from functools import lru_cache
from typing import Any

import numpy as np

from ... import dtypes
from ...backends import array_module, move
from ...device import as_device
from ...errors import DTypeError, ShapeError
from ...seam import Maker
from ...tensor import Tensor, made
from ..convert.cast import cast
from ..pointwise.complex_numbers import conj
from ..record.args import many_dims, number_arg, one_dim, tensor_arg
from ..record.batched import along
from ..record.constants import alike, raw
from ..record.op import Meta, Op
from ..record.planned import Step, planned
from ..record.public import public
from ..shape.arrange import roll
from ..shape.complex_parts import real_op
from ..shape.slices import put_slice, slice_along

_OTHER_NORM = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}
_OPPOSITE = {"fft": "ifft", "ifft": "fft", "rfft": "irfft", "irfft": "rfft"}


def _kernel(xp: Any, x: Any, *, kind: str, dims: tuple[int, ...], size: int, norm: str | None) -> Any:
    if not dims:
        return x.astype(xp.result_type(x.dtype, xp.complex64))
    sizes = [x.shape[d] for d in dims[:-1]] + [size]
    out = getattr(xp.fft, f"{kind}n")(x, s=sizes, axes=dims, norm=norm)
    single = x.dtype in (xp.float32, xp.complex64)
    return out.astype({"f": "float32", "c": "complex64"}[out.dtype.kind], copy=False) if single else out


def _infer(x: Meta, *, kind: str, dims: tuple[int, ...], size: int, norm: Any) -> Meta:
    shape = list(x.shape)
    if kind in ("rfft", "irfft"):
        shape[dims[-1]] = size if kind == "irfft" else size // 2 + 1
    return Meta(tuple(shape), x.dtype.to_real() if kind == "irfft" else x.dtype.to_complex())


def _mirror(like: Any, dim: int, size: int, weight: float) -> Any:
    """``weight`` for what stands for two, 1 for the rest, of a half spectrum along ``dim``."""
    array = raw(like)
    weights = array_module(array).ones(size // 2 + 1, array.real.dtype)
    weights[1:(size + 1) // 2] = weight
    return alike(weights.reshape((-1,) + (1,) * (array.ndim - dim - 1)), like)


def _vjp(g: Any, x_dtype: Any, kind: str, dims: tuple[int, ...], size: int, norm: Any) -> Any:
    if kind == "rfft":
        g = g * _mirror(g, dims[-1], size, 0.5)
    out = fft_op(g, kind=_OPPOSITE[kind], dims=dims, size=size, norm=_OTHER_NORM[norm])
    if kind == "irfft":
        return out * _mirror(out, dims[-1], size, 2.0)
    return real_op(out) if kind != "rfft" and x_dtype.kind != "c" else out


# size: that of the last of dims, which a half spectrum does not tell
fft_op = Op("fft", "x", batch=along("dims"), native="fft", kernel=_kernel, infer=_infer, jvp="linear",
            vjp={"x": _vjp})


@planned
def _transform(x: Any, kind: str, name: str, s: Any, dim: Any, norm: Any) -> list[Step]:
    """Check and normalise the arguments, then run. ``s`` and ``dim`` are sequences or None."""
    steps: list[Step] = []
    x = tensor_arg(x, name)
    if norm not in _OTHER_NORM:
        raise ValueError(f"{name}: norm must be 'backward', 'ortho' or 'forward', got {norm!r}")
    own = x.dtype
    if own.category == dtypes.COMPLEX and kind == "rfft":
        raise DTypeError(f"{name}: input must be real, got {own}; use {name.replace('rf', 'f')}")
    if own.category < dtypes.FLOAT:
        steps.append((_as_floating, 1, {}))
    elif x.itemsize < 4:
        raise DTypeError(f"{name}: {own} is not supported; convert it with input.float()")
    if kind == "irfft" and own.category != dtypes.COMPLEX:
        steps.append((_as_complex, 1, {}))
    dims = _dims(x, s, dim, name)
    if not dims and kind != "fft" and kind != "ifft":
        raise ShapeError(f"{name}: at least one dimension must be transformed")
    sizes = _sizes(x, kind, s, dims, name)
    halved = kind == "irfft"
    for i, (d, n) in enumerate(zip(dims, sizes) if s is not None else ()):
        wanted = n // 2 + 1 if halved and i == len(dims) - 1 else n
        if wanted != x.shape[d]:
            steps.append((_resized, 1, {"dim": d, "n": wanted}))
    settings = {"kind": kind, "dims": dims, "size": sizes[-1] if sizes else 0, "norm": norm}
    return [*steps, (fft_op.run, 1, settings)]


def _as_floating(x: Tensor) -> Tensor:
    return cast.run(x, dtype=dtypes.get_default_dtype())


def _as_complex(x: Tensor) -> Tensor:
    return cast.run(x, dtype=x.dtype.to_complex())


def _resized(x: Tensor, dim: int, n: int) -> Tensor:
    """The first n along ``dim``, zeros where there are not so many."""
    size = x.shape[dim]
    if n < size:
        return slice_along(x, dim, slice(0, n))
    if n > size:
        key = (slice(None),) * dim + (slice(0, size),)
        return put_slice.run(x, key=key, shape=(*x.shape[:dim], n, *x.shape[dim + 1:]))
    return x


def _mirrored(x: Any, kind: str, name: str, s: Any, dim: Any, norm: Any) -> Tensor:
    """``hfft`` and its kin: ``irfft`` and ``rfft`` with the sign of the frequencies, and the norm, turned."""
    if norm not in _OTHER_NORM:
        raise ValueError(f"{name}: norm must be 'backward', 'ortho' or 'forward', got {norm!r}")
    if kind == "irfft":
        return _transform(conj(tensor_arg(x, name)), kind, name, s, dim, _OTHER_NORM[norm])
    return conj(_transform(x, kind, name, s, dim, _OTHER_NORM[norm]))


def _dims(x: Tensor, s: Any, dim: Any, name: str) -> tuple[int, ...]:
    if dim is None:
        first = 0 if s is None else x.ndim - len(s)
        if first < 0:
            raise ShapeError(f"{name}: s has {len(s)} sizes but input only {x.ndim} dimensions")
        return tuple(range(first, x.ndim))
    if not x.ndim and dim:
        raise ShapeError(f"{name}: input must have at least 1 dimension, got a 0-dim tensor")
    given = dim if isinstance(dim, (tuple, list)) else (dim,)
    ndim = x.ndim
    dims = tuple([one_dim(d, ndim, name) for d in given])
    if len(set(dims)) != len(dims):
        raise ShapeError(f"{name}: dim={tuple(given)} names a dimension twice")
    if s is not None and len(s) != len(dims):
        raise ShapeError(f"{name}: s has {len(s)} sizes but dim names {len(dims)} dimensions")
    return dims


def _sizes(x: Tensor, kind: str, s: Any, dims: tuple[int, ...], name: str) -> tuple[int, ...]:
    shape = x.shape
    sizes = [shape[d] for d in dims]
    if kind == "irfft" and dims:
        sizes[-1] = 2 * (sizes[-1] - 1)
    for i, n in enumerate(s or ()):
        if n is not None and (isinstance(n, bool) or not hasattr(n, "__index__")):
            raise TypeError(f"{name}: a size must be an int, got {type(n).__name__}")
        if n is not None and n != -1:
            sizes[i] = n.__index__()
    if sizes and min(sizes) < 1:
        raise ShapeError(f"{name}: every transformed size must be at least 1, got {sizes}")
    return tuple(sizes)


@public("fft", op=fft_op, out=True, autocast="float32")
def fft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The discrete Fourier transform along one dimension: (*, n) -> complex (*, n).

    Formula: ``out[k] = sum_j input[j] * exp(-2 pi i j k / n)``. n: cut or pad with 0 to this size first.
    norm "backward" (default): no factor here and 1/n in the inverse, "forward": the other way round,
    "ortho": 1/sqrt(n) in both.

    >>> fw.fft.fft(fw.tensor([1.0, 0.0, 0.0, 0.0])).numpy().real.tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    return _transform(input, "fft", "fft", None if n is None else (n,), (dim,), norm)


@public("fft", op=fft_op, out=True, autocast="float32")
def ifft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of ``fft``: (*, n) -> complex (*, n). Arguments as there.

    >>> fw.fft.ifft(fw.tensor([4.0, 0.0, 0.0, 0.0])).numpy().real.tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    return _transform(input, "ifft", "ifft", None if n is None else (n,), (dim,), norm)


@public("fft", op=fft_op, out=True, autocast="float32")
def rfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The first half of ``fft`` of a real tensor, the rest being its mirror: (*, n) -> (*, n // 2 + 1).

    Raises DTypeError for a complex input.

    >>> fw.fft.rfft(fw.tensor([1.0, 0.0, 0.0, 0.0])).numpy().real.tolist()
    [1.0, 1.0, 1.0]
    """
    return _transform(input, "rfft", "rfft", None if n is None else (n,), (dim,), norm)


@public("fft", op=fft_op, out=True, autocast="float32")
def irfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of ``rfft``: (*, m) -> real (*, n), n = 2 (m - 1) unless given.

    >>> fw.fft.irfft(fw.tensor([4.0, 0.0, 0.0]))
    tensor([1., 1., 1., 1.])
    """
    return _transform(input, "irfft", "irfft", None if n is None else (n,), (dim,), norm)


@public("fft", op=fft_op, out=True, autocast="float32")
def fft2(input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Tensor:
    """``fft`` along two dimensions; s: their sizes.

    >>> fw.fft.fft2(fw.ones(2, 2)).numpy().real.tolist()
    [[4.0, 0.0], [0.0, 0.0]]
    """
    return _transform(input, "fft", "fft2", s, dim, norm)


@public("fft", op=fft_op, out=True, autocast="float32")
def ifft2(input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Tensor:
    """The inverse of ``fft2``.

    >>> fw.fft.ifft2(fw.ones(2, 2)).numpy().real.tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """
    return _transform(input, "ifft", "ifft2", s, dim, norm)


@public("fft", op=fft_op, out=True, autocast="float32")
def rfft2(input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Tensor:
    """``fft2`` of a real tensor, only the first half of the last of ``dim``.

    >>> fw.fft.rfft2(fw.ones(2, 4)).shape
    (2, 3)
    """
    return _transform(input, "rfft", "rfft2", s, dim, norm)


@public("fft", op=fft_op, out=True, autocast="float32")
def irfft2(input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Tensor:
    """The inverse of ``rfft2``: a real tensor.

    >>> fw.fft.irfft2(fw.ones(2, 3)).shape
    (2, 4)
    """
    return _transform(input, "irfft", "irfft2", s, dim, norm)


@public("fft", op=fft_op, out=True, autocast="float32")
def fftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None) -> Tensor:
    """``fft`` along the dimensions ``dim``: all of them, or with ``s`` alone the last ones.

    >>> fw.fft.fftn(fw.ones(2, 2)).numpy().real.tolist()
    [[4.0, 0.0], [0.0, 0.0]]
    """
    return _transform(input, "fft", "fftn", s, dim, norm)


@public("fft", op=fft_op, out=True, autocast="float32")
def ifftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None) -> Tensor:
    """The inverse of ``fftn``.

    >>> fw.fft.ifftn(fw.ones(2, 2)).numpy().real.tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """
    return _transform(input, "ifft", "ifftn", s, dim, norm)


@public("fft", op=fft_op, out=True, autocast="float32")
def rfftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None) -> Tensor:
    """``fftn`` of a real tensor, only the first half of the last of ``dim``.

    >>> fw.fft.rfftn(fw.ones(2, 4)).shape
    (2, 3)
    """
    return _transform(input, "rfft", "rfftn", s, dim, norm)


@public("fft", op=fft_op, out=True, autocast="float32")
def irfftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None) -> Tensor:
    """The inverse of ``rfftn``: a real tensor.

    >>> fw.fft.irfftn(fw.ones(2, 3)).shape
    (2, 4)
    """
    return _transform(input, "irfft", "irfftn", s, dim, norm)


@public("fft", op=fft_op, out=True, autocast="float32")
def hfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The transform of a signal given by half of it, the rest its conjugate: (*, m) -> real (*, n).

    Formula: ``irfft(conj(input), n)`` without its factor 1/n; n = 2 (m - 1) unless given.

    >>> fw.fft.hfft(fw.tensor([1.0, 1.0, 1.0]))
    tensor([4., 0., 0., 0.])
    """
    return _mirrored(input, "irfft", "hfft", None if n is None else (n,), (dim,), norm)


@public("fft", op=fft_op, out=True, autocast="float32")
def ihfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of ``hfft``: real (*, n) -> (*, n // 2 + 1).

    Formula: ``conj(rfft(input, n)) / n``. Raises DTypeError for a complex input.

    >>> fw.fft.ihfft(fw.tensor([4.0, 0.0, 0.0, 0.0])).real
    tensor([1., 1., 1.])
    """
    return _mirrored(input, "rfft", "ihfft", None if n is None else (n,), (dim,), norm)


@public("fft", op=fft_op, out=True, autocast="float32")
def hfft2(input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Tensor:
    """``hfft`` along the last of two dimensions after ``fft`` along the other: a real tensor.

    Raises ShapeError for a wrong s or dim.

    >>> fw.fft.hfft2(fw.ones(2, 3)).shape
    (2, 4)
    """
    return _mirrored(input, "irfft", "hfft2", s, dim, norm)


@public("fft", op=fft_op, out=True, autocast="float32")
def ihfft2(input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Tensor:
    """The inverse of ``hfft2``, of a real tensor.

    Raises DTypeError for a complex input.

    >>> fw.fft.ihfft2(fw.ones(2, 4)).shape
    (2, 3)
    """
    return _mirrored(input, "rfft", "ihfft2", s, dim, norm)


@public("fft", op=fft_op, out=True, autocast="float32")
def hfftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None) -> Tensor:
    """``hfft`` along the last of ``dim`` after ``fft`` along the others: a real tensor.

    dim: all dimensions, or with ``s`` alone the last ones.

    >>> fw.fft.hfftn(fw.ones(2, 3)).shape
    (2, 4)
    """
    return _mirrored(input, "irfft", "hfftn", s, dim, norm)


@public("fft", op=fft_op, out=True, autocast="float32")
def ihfftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None) -> Tensor:
    """The inverse of ``hfftn``, of a real tensor.

    Raises DTypeError for a complex input.

    >>> fw.fft.ihfftn(fw.ones(2, 4)).shape
    (2, 3)
    """
    return _mirrored(input, "rfft", "ihfftn", s, dim, norm)


def _shift(x: Tensor, dim: Any, name: str, back: bool) -> Tensor:
    dims = many_dims(dim, tensor_arg(x, name).ndim, name)
    if not dims:
        return x.clone()  # type: ignore[attr-defined]
    by = [(x.shape[d] + 1) // 2 if back else x.shape[d] // 2 for d in dims]
    return roll(x, by, list(dims))


@public("fft")
def fftshift(input: Tensor, dim: Any = None) -> Tensor:
    """The frequency 0 moved from the front to the middle of ``dim`` (default: all).

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


@public("fft", out=True)
def fftfreq(n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies of ``fft``'s n results for samples d apart: (n).

    Formula: ``[0, 1, ..., (n-1)//2, -(n//2), ..., -1] / (d * n)``. Raises ValueError for n below 1 or d of 0.

    >>> fw.fft.fftfreq(4)
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    return _frequencies("fftfreq", n, d, dtype, device)


@public("fft", out=True)
def rfftfreq(n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies of ``rfft``'s results for n samples d apart: (n // 2 + 1).

    Formula: ``[0, 1, ..., n//2] / (d * n)``. Raises ValueError for n below 1 or d of 0.

    >>> fw.fft.rfftfreq(4)
    tensor([0.0000, 0.2500, 0.5000])
    """
    return _frequencies("rfftfreq", n, d, dtype, device)


def _frequencies(name: str, n: int, d: float, dtype: Any, device: Any) -> Tensor:
    n, d = number_arg(n, name, "n"), number_arg(d, name, "d")
    if n < 1 or d == 0:
        raise ValueError(f"{name}: n must be at least 1 and d not 0, got n={n}, d={d}")
    kind = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
    few = type(n) is int and n <= _FEW and type(d) in (int, float)
    values = (_few_frequencies if few else _all_frequencies)(name, n, d, kind.numpy)
    values = values.copy() if few else values
    return made(_MAKERS[name], move(values, as_device(device)), n, d)


_MAKERS = {name: Maker(name, ("n", "d")) for name in ("fftfreq", "rfftfreq")}
_FEW = 1024  # frequencies that are remembered


def _all_frequencies(name: str, n: int, d: float, dtype: np.dtype) -> np.ndarray:
    values: np.ndarray = getattr(np.fft, name)(n, d).astype(dtype)
    return values


_few_frequencies = lru_cache(32)(_all_frequencies)
