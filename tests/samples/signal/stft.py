"""Rows of the short-time Fourier transform and its inverse."""

from typing import Any

import numpy as np

from framework.errors import DTypeError, ShapeError

from ..base import Sample, normal, planar, row

X, B, Z = normal(20), normal(2, 13), planar(14)
W = 0.5 - 0.4 * np.cos(2 * np.pi * np.arange(6) / 6)


def _frames(x: Any, w: Any, hop: int) -> Any:
    return np.stack([x[..., i : i + len(w)] * w for i in range(0, x.shape[-1] - len(w) + 1, hop)], -1)


def _half(x: Any, w: Any, hop: int) -> Any:
    return np.fft.rfft(_frames(x, w, hop), axis=-2)


def _around(x: Any, n: int, mode: str = "reflect") -> Any:
    return np.pad(x, [(0, 0)] * (x.ndim - 1) + [(n, n)], mode)


row(
    "stft",
    Sample(
        "plain",
        lambda M, x: M.stft(x, 8, return_complex=True),
        (X,),
        lambda x: _half(_around(x, 4), np.ones(8), 2),
    ),
    Sample(
        "window",
        lambda M, x, w: M.stft(x, 6, 3, window=w, return_complex=True),
        (B, W),
        lambda x, w: _half(_around(x, 3), w, 3),
    ),
    Sample(
        "method",
        lambda M, x, w: x.stft(6, window=w, return_complex=True, pad_mode="constant"),
        (X, W),
        lambda x, w: _half(_around(x, 3, "constant"), w, 1),
    ),
    Sample(
        "not centred",
        lambda M, x: M.stft(x, 4, 3, center=False, normalized=True, return_complex=True),
        (B,),
        lambda x: _half(x, np.ones(4), 3) / 2,
    ),
    Sample(
        "short window",
        lambda M, x, w: M.stft(x, 9, 2, 6, w, center=False, return_complex=True),
        (X, W),
        lambda x, w: _half(x, np.pad(w, (1, 2)), 2),
    ),
    Sample(
        "aligned",
        lambda M, x, w: M.stft(x, 9, 2, 6, w, center=False, return_complex=True, align_to_window=True),
        (X, W),
        lambda x, w: _half(np.pad(x, (1, 2)), np.pad(w, (1, 2)), 2),
        torch=False,
        why="PyTorch reads beyond the end where n_fft - win_length is odd",
    ),
    Sample(
        "both sides",
        lambda M, x: M.stft(x, 5, onesided=False, return_complex=True),
        (X,),
        lambda x: np.fft.fft(_frames(_around(x, 2), np.ones(5), 1), axis=-2),
    ),
    Sample(
        "complex",
        lambda M, x: M.stft(x, 5, 2),
        (Z,),
        lambda x: np.fft.fft(_frames(_around(x, 2), np.ones(5), 2), axis=-2),
    ),
    Sample(
        "as reals",
        lambda M, x: M.stft(x, 4, center=False, return_complex=False),
        (X,),
        lambda x: np.stack([(y := _half(x, np.ones(4), 1)).real, y.imag], -1),
    ),
    errors=[
        ("no return_complex", lambda M: M.stft(M.ones(9), 4), ValueError, "return_complex"),
        ("short", lambda M: M.stft(M.ones(3), 4, center=False, return_complex=True), ShapeError, "shorter"),
        ("window", lambda M: M.stft(M.ones(9), 4, window=M.ones(5), return_complex=True), ShapeError, "[4]"),
        ("hop", lambda M: M.stft(M.ones(9), 3, return_complex=True), ValueError, "hop_length=0"),
        ("onesided", lambda M: M.stft(M.ones(9) * 1j, 4, onesided=True), ValueError, "onesided"),
        ("ndim", lambda M: M.stft(M.ones(1, 2, 9), 4), ShapeError, "[1, 2, 9]"),
    ],
)


def _added(frames: Any, hop: int) -> Any:
    out = np.zeros((*frames.shape[:-2], frames.shape[-1] + hop * (frames.shape[-2] - 1)), frames.dtype)
    for i in range(frames.shape[-2]):
        out[..., i * hop : i * hop + frames.shape[-1]] += frames[..., i, :]
    return out


def _inverse(y: Any, w: Any, hop: int, start: int, stop: int | None, half: bool = True) -> Any:
    frames = (np.fft.irfft(y, len(w), axis=-2) if half else np.fft.ifft(y, axis=-2)).swapaxes(-1, -2)
    squares = _added(np.broadcast_to(w * w, frames.shape[-2:]), hop)
    return _added(frames * w, hop)[..., start:stop] / squares[start:stop]


S, T = planar(4, 6), planar(2, 4, 5)
S[[0, -1]], T[:, [0, -1]] = S[[0, -1]].real, T[:, [0, -1]].real
row(
    "istft",
    Sample(
        "window", lambda M, y, w: M.istft(y, 6, 2, window=w), (S, W), lambda y, w: _inverse(y, w, 2, 3, -3)
    ),
    Sample(
        "batch",
        lambda M, y: y.istft(6, 3, center=False, normalized=True),
        (T,),
        lambda y: _inverse(y, np.ones(6), 3, 0, None) * 6**0.5,
    ),
    Sample(
        "length",
        lambda M, y, w: M.istft(y, 6, 2, window=w, length=8),
        (S, W),
        lambda y, w: _inverse(y, w, 2, 3, 11),
    ),
    Sample(
        "longer",
        lambda M, y, w: M.istft(y, 6, 2, window=w, length=16),
        (S, W),
        lambda y, w: np.pad(_inverse(y, w, 2, 3, 16), (0, 3)),
    ),
    Sample(
        "complex",
        lambda M, y: M.istft(y, 4, 2, onesided=False, return_complex=True),
        (planar(4, 5),),
        lambda y: _inverse(y, np.ones(4), 2, 2, -2, half=False),
    ),
    errors=[
        ("real", lambda M: M.istft(M.ones(3, 4), 4), DTypeError, "complex"),
        ("frequencies", lambda M: M.istft(M.ones(5, 4) * 1j, 4), ShapeError, "5 frequencies"),
        ("gap", lambda M: M.istft(M.ones(3, 4) * 1j, 4, 4, window=M.hann_window(4)), ValueError, "hop"),
    ],
)
