"""Rows of windows."""

from typing import Any

import numpy as np

from framework.errors import DTypeError

from ..base import Sample, row

N = np.arange(7.0)


def _window(name: str, formula: Any, *more: Sample) -> None:
    def call(M: Any, *args: Any, **settings: Any) -> Any:
        return getattr(M, name)(*args, dtype=M.float64, **settings)

    row(
        name,
        Sample("periodic", lambda M: call(M, 7), (), lambda: formula(N, 7)),
        Sample("symmetric", lambda M: call(M, 7, periodic=False), (), lambda: formula(N, 6)),
        Sample("one", lambda M: call(M, 1), (), lambda: np.ones(1)),
        Sample("none", lambda M: call(M, 0), (), lambda: np.ones(0)),
        Sample("default dtype", lambda M: getattr(M, name)(7), (), lambda: formula(N, 7).astype(np.float32)),
        *more,
        errors=[
            ("negative", lambda M: getattr(M, name)(-1), ValueError, "negative"),
            ("float", lambda M: getattr(M, name)(2.5), TypeError, "float"),
            ("ints", lambda M: getattr(M, name)(2, dtype=M.int64), DTypeError, "floating"),
        ],
    )


def _cos(n: Any, m: float, k: int = 1) -> Any:
    return np.cos(2 * k * np.pi * n / m)


def _kaiser(beta: float) -> Any:
    return lambda n, m: np.i0(beta * np.sqrt(1 - (2 * n / m - 1) ** 2)) / np.i0(beta)


_window("hann_window", lambda n, m: 0.5 - 0.5 * _cos(n, m))
_window(
    "hamming_window",
    lambda n, m: 0.54 - 0.46 * _cos(n, m),
    Sample(
        "alpha, beta",
        lambda M: M.hamming_window(7, True, 0.6, 0.3, dtype=M.float64),
        (),
        lambda: 0.6 - 0.3 * _cos(N, 7),
    ),
)
_window("blackman_window", lambda n, m: np.maximum(0.42 - 0.5 * _cos(n, m) + 0.08 * _cos(n, m, 2), 0))
_window("bartlett_window", lambda n, m: 1 - np.abs(2 * n / m - 1))
_window(
    "kaiser_window",
    _kaiser(12.0),
    Sample("beta", lambda M: M.kaiser_window(7, True, 3.0, dtype=M.float64), (), lambda: _kaiser(3.0)(N, 7)),
)
