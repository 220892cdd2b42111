"""The Fourier transform extension: ``framework.array_api.fft``."""

from collections.abc import Callable
from typing import Any

from ..config.listing import own as _own
from ..dtypes import DType
from ..ops.signal import fft as transforms
from ..tensor import Tensor
from .array import Array, array_arg, give, named


def _one(name: str, op: Callable, line: str) -> Callable[..., Array]:
    def function(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
        return give(op(array_arg(x, name), n, axis, norm))
    return named(function, name, __name__, line)


def _many(name: str, op: Callable, line: str) -> Callable[..., Array]:
    def function(x: Tensor, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Array:
        sizes, places = (None if v is None else tuple(v) for v in (s, axes))
        return give(op(array_arg(x, name), sizes, places, norm))
    return named(function, name, __name__, line)


def _shift(name: str, op: Callable, line: str) -> Callable[..., Array]:
    def function(x: Tensor, /, *, axes: Any = None) -> Array:
        return give(op(array_arg(x, name), axes), x)
    return named(function, name, __name__, line)


fft = _one("fft", transforms.fft, "The discrete Fourier transform along an axis.")
ifft = _one("ifft", transforms.ifft, "The inverse of ``fft``.")
rfft = _one("rfft", transforms.rfft, "The transform of real elements: its first half.")
irfft = _one("irfft", transforms.irfft, "The inverse of ``rfft``, real.")
hfft = _one("hfft", transforms.hfft, "The real transform of a signal given by its first half.")
ihfft = _one("ihfft", transforms.ihfft, "The inverse of ``hfft``.")
fftn = _many("fftn", transforms.fftn, "The discrete Fourier transform over axes.")
ifftn = _many("ifftn", transforms.ifftn, "The inverse of ``fftn``.")
rfftn = _many("rfftn", transforms.rfftn, "The transform of real elements over axes: half of the last.")
irfftn = _many("irfftn", transforms.irfftn, "The inverse of ``rfftn``, real.")
fftshift = _shift("fftshift", transforms.fftshift, "Frequency 0 moved to the middle.")
ifftshift = _shift("ifftshift", transforms.ifftshift, "The inverse of ``fftshift``.")


def fftfreq(n: int, /, *, d: float = 1.0, dtype: DType | None = None, device: Any = None) -> Array:
    """The frequencies of ``fft``'s output for samples ``d`` apart: 0 and up, then the negative ones.

    >>> fw.array_api.fft.fftfreq(4)
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    return give(transforms.fftfreq(n, d, dtype=dtype, device=device))


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: DType | None = None, device: Any = None) -> Array:
    """The frequencies of ``rfft``'s output for samples ``d`` apart."""
    return give(transforms.rfftfreq(n, d, dtype=dtype, device=device))


__dir__ = _own(globals())
