"""The short-time Fourier transform and its inverse: spectra of overlapping windowed frames.

D. Griffin and J. Lim, "Signal estimation from modified short-time Fourier transform", 1984.
"""

import math
from typing import Any

from ...backends import device_flags
from ...dtypes import FLOAT
from ...errors import DTypeError, ShapeError
from ...tensor import Tensor
from ..image.pad import pad
from ..pointwise.complex_numbers import view_as_real
from ..record.args import floating, number_arg, tensor_arg
from ..record.public import public
from ..shape.windows import fold_windows
from .fft import fft, ifft, irfft, rfft


def _framing(op: str, n_fft: int, hop: int | None, win: int | None, window: Any, like: Any) -> tuple:
    """Hop, and the window with zeros around it to n_fft."""
    hop = n_fft // 4 if hop is None else number_arg(hop, op, "hop_length")
    win = n_fft if win is None else win
    if n_fft < 1 or hop < 1 or not 0 < win <= n_fft:
        raise ValueError(f"{op}: n_fft={n_fft} and hop_length={hop} must be positive, and win_length={win} "
                         f"in [1, n_fft]")
    if window is None:
        window = like.new_ones((win,), dtype=like.dtype.to_real())
    elif tensor_arg(window, op, "window").shape != (win,):
        raise ShapeError(f"{op}: window must have shape [{win}], the win_length, got {list(window.shape)}")
    if window.dtype.category < FLOAT:
        window = window.to(like.dtype.to_real())
    if win < n_fft:
        left = (n_fft - win) // 2
        window = pad(window, (left, n_fft - win - left))
    return hop, window


def _half(op: str, onesided: bool | None, turned: bool) -> bool:
    if onesided and turned:
        raise ValueError(f"{op}: onesided=True needs a real signal and window; give onesided=False")
    return not turned if onesided is None else onesided


@public(method=True, autocast="float32")
def stft(input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
         window: Tensor | None = None, center: bool = True, pad_mode: str = "reflect",
         normalized: bool = False, onesided: bool | None = None, return_complex: bool | None = None,
         align_to_window: bool | None = None) -> Tensor:
    """Spectra of frames ``hop_length`` apart: (*, n) -> complex (*, frequencies, frames); * is empty or (b).

    Formula: ``out[k, t] = sum_j window[j] * x[t * hop_length + j] * exp(-2 pi i j k / n_fft)``. hop_length:
    n_fft // 4 unless given. win_length: the window's size (default n_fft); around it are zeros. window: ones
    unless given. center: frame t is centred at t * hop_length; the ends are padded as ``pad_mode`` says,
    else frames start there, or with ``align_to_window`` the window of a
    frame does. normalized: times ``n_fft ** -0.5``. onesided: only the
    n_fft // 2 + 1 frequencies that a real signal needs (default where it is real). return_complex=False:
    real and imaginary parts as a last dimension; for real signals it must be given. Raises ShapeError where
    the signal is too short, ValueError for arguments that do not fit.

    >>> fw.stft(fw.ones(8), 4, return_complex=True).abs()[0]
    tensor([4., 4., 4., 4., 4., 4., 4., 4., 4.])
    """
    x: Any = tensor_arg(input, "stft")
    floating(x, "stft")
    if x.ndim not in (1, 2):
        raise ShapeError(f"stft: input must be (n) or (b, n), got shape {list(x.shape)}")
    if return_complex is None:
        if not (x.is_complex() or (window is not None and window.is_complex())):
            raise ValueError("stft: return_complex must be given for a real signal; True gives a complex "
                             "tensor")
        return_complex = True
    if center and align_to_window is not None:
        raise ValueError("stft: align_to_window is for center=False")
    hop, weights = _framing("stft", n_fft, hop_length, win_length, window, x)
    if center:
        ends = (n_fft // 2, n_fft // 2)
        x = pad(x.reshape(1, -1, x.shape[-1]), ends, pad_mode).reshape(*x.shape[:-1], -1)
    elif align_to_window and win_length is not None:
        left = (n_fft - win_length) // 2
        x = pad(x, (left, n_fft - win_length - left))
    if x.shape[-1] < n_fft:
        raise ShapeError(f"stft: a signal of {x.shape[-1]} elements is shorter than a frame, n_fft={n_fft}")
    frames = x.unfold(-1, n_fft, hop) * weights
    out: Any = (rfft if _half("stft", onesided, frames.is_complex()) else fft)(frames).mT
    if normalized:
        out = out * n_fft ** -0.5
    return out if return_complex else view_as_real(out.contiguous())


@public(method=True, autocast="float32")
def istft(input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
          window: Tensor | None = None, center: bool = True, normalized: bool = False,
          onesided: bool | None = None, length: int | None = None, return_complex: bool = False) -> Tensor:
    """The signal whose ``stft`` is nearest to ``input``: complex (*, frequencies, frames) -> (*, n).

    Formula: the inverse transforms of all frames times the window, added where they overlap, over the sum of
    the squared windows there. The arguments are those ``stft`` was given; length: cut, or with zeros
    extended, to this size. return_complex: a complex signal, for onesided=False. Raises ShapeError for a
    wrong number of frequencies, ValueError where the windows leave a gap, DTypeError for a real input.

    >>> x, window = fw.arange(8.0), fw.hann_window(4)
    >>> fw.istft(fw.stft(x, 4, window=window, return_complex=True), 4, window=window)
    tensor([0., 1., 2., 3., 4., 5., 6., 7.])
    """
    x: Any = tensor_arg(input, "istft")
    if not x.is_complex():
        raise DTypeError(f"istft: input must be complex, got {x.dtype}; view_as_complex makes it of pairs")
    if x.ndim not in (2, 3) or not x.shape[-1]:
        raise ShapeError(f"istft: input must be (f, t) or (b, f, t) with a frame, got shape {list(x.shape)}")
    half = x.shape[-2] != n_fft if onesided is None else _half("istft", onesided, return_complex)
    if x.shape[-2] != (n_fft // 2 + 1 if half else n_fft):
        raise ShapeError(f"istft: input has {x.shape[-2]} frequencies, n_fft={n_fft} and onesided={half} "
                         f"make {n_fft // 2 + 1 if half else n_fft}")
    hop, weights = _framing("istft", n_fft, hop_length, win_length, window, x)
    if normalized:
        x = x * n_fft ** 0.5
    if not return_complex and weights.is_complex():
        raise DTypeError("istft: a complex window gives a complex signal; pass return_complex=True")
    if not return_complex:  # the first half of the spectrum says all of a real signal
        x = x[..., :n_fft // 2 + 1, :]
    frames: Any = irfft(x.mT, n_fft) if half or not return_complex else ifft(x.mT)
    start = n_fft // 2 if center else 0
    total = n_fft + hop * (x.shape[-1] - 1)
    stop = total - start if length is None else min(start + length, total)
    signal = _overlapped(frames * weights, hop)[..., start:stop]
    squares = _overlapped((weights * weights).expand(x.shape[-1], n_fft), hop)[start:stop]
    wrong = (f"istft: the windows, {hop} apart, are 0 at some element of the signal, which they do not tell "
             f"then; take a smaller hop_length or another window")
    told = not squares.is_complex() and device_flags.check_reals(squares._array, 1e-11, math.inf, wrong)
    if not told and stop > start and bool((squares.abs() < 1e-11).any()):
        raise ValueError(wrong)
    signal = signal / squares
    missing = 0 if length is None else length - signal.shape[-1]
    return pad(signal, (0, missing)) if missing else signal


def _overlapped(frames: Any, hop: int) -> Any:
    """The sum of frames ``hop`` apart: (*, t, n) -> (*, n + hop * (t - 1))."""
    *lead, t, n = frames.shape
    return fold_windows.run(frames, shape=(*lead, n + hop * (t - 1)), dim=len(lead), step=hop)
