"""Rows of framework.signal.windows."""

from typing import Any

import numpy as np

from ..base import Sample, row

N = np.arange(7.0)


def _cosines(*a: float) -> Any:
    return lambda n, m: sum(w * (-1) ** i * np.cos(2 * np.pi * i * n / m) for i, w in enumerate(a))


def _window(name: str, formula: Any, more: dict[str, Any] | None = None, *errors: Any) -> None:
    def call(M: Any, *args: Any, **settings: Any) -> Any:
        return getattr(M.signal.windows, name)(*args, dtype=M.float64, **settings, **(more or {}))
    row(name, Sample("symmetric", lambda M: call(M, 7), (), lambda: formula(N, 6)),
        Sample("periodic", lambda M: call(M, 7, sym=False), (), lambda: formula(N, 7)),
        Sample("one", lambda M: call(M, 1), (), lambda: np.ones(1)),
        Sample("none", lambda M: call(M, 0), (), lambda: np.ones(0)), namespace="signal.windows",
        errors=[("negative", lambda M: call(M, -1), ValueError, "negative"),
                ("float", lambda M: call(M, 2.5), TypeError, "float"), *errors])


_window("hann", _cosines(0.5, 0.5))
_window("hamming", _cosines(0.54, 0.46))
_window("blackman", _cosines(0.42, 0.5, 0.08))
_window("nuttall", _cosines(0.3635819, 0.4891775, 0.1365995, 0.0106411))
_window("general_cosine", _cosines(0.4, 0.3, 0.3), {"a": [0.4, 0.3, 0.3]},
        ("nothing", lambda M: M.signal.windows.general_cosine(3, a=[]), ValueError, "one weight"))
_window("general_hamming", _cosines(0.7, 0.3), {"alpha": 0.7})
_window("bartlett", lambda n, m: 1 - np.abs(2 * n / m - 1))
_window("cosine", lambda n, m: np.sin(np.pi * (n + 0.5) / (m + 1)))
_window("exponential", lambda n, m: np.exp(-np.abs(n - m / 2) / 1.7), {"tau": 1.7},
        ("tau", lambda M: M.signal.windows.exponential(3, tau=0.0), ValueError, "tau"),
        ("center", lambda M: M.signal.windows.exponential(3, center=1.0), ValueError, "sym=False"))
_window("gaussian", lambda n, m: np.exp(-((n - m / 2) / 1.3) ** 2 / 2), {"std": 1.3},
        ("std", lambda M: M.signal.windows.gaussian(3, std=0.0), ValueError, "std"))
_window("kaiser", lambda n, m: np.i0(3 * np.sqrt(1 - (2 * n / m - 1) ** 2)) / np.i0(3.0), {"beta": 3.0},
        ("beta", lambda M: M.signal.windows.kaiser(3, beta=-1.0), ValueError, "beta"))
