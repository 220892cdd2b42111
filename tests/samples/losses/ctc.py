"""Rows of ops/losses/ctc.py."""

import itertools
from typing import Any

import numpy as np

from ..base import Sample, normal, row

_X = normal(4, 2, 3)
X = _X - np.log(np.exp(_X).sum(-1, keepdims=True))
TARGETS = np.array([[1, 2], [2, 2]])


def _by_paths(x: Any, target: list) -> float:
    """-log of the summed probability of every path that collapses to the target."""
    total = 0.0
    for path in itertools.product(range(x.shape[1]), repeat=len(x)):
        if [k for k, _ in itertools.groupby(path) if k] == target:
            total += np.exp(sum(x[t, k] for t, k in enumerate(path)))
    return -np.log(total) if total else np.inf


def _losses(x: Any, times: tuple, sizes: tuple) -> Any:
    return np.array([_by_paths(x[:t, i], TARGETS[i, :s].tolist())
                     for i, (t, s) in enumerate(zip(times, sizes))], x.dtype)


def _call(M: Any, x: Any, t: Any, times: tuple = (4, 4), sizes: tuple = (2, 2), **more: Any) -> Any:
    return M.nn.functional.ctc_loss(x.log_softmax(-1), t, times, sizes, **more)


row("ctc_loss",
    Sample("mean", _call, (X, TARGETS), lambda x, t: (_losses(x, (4, 4), (2, 2)) / 2).mean()),
    Sample("none", lambda M, x, t: _call(M, x, t, (4, 3), (1, 2), reduction="none"), (X, TARGETS),
           lambda x, t: _losses(x, (4, 3), (1, 2))),
    Sample("sum", lambda M, x, t: _call(M, x, t, (3, 4), (2, 1), reduction="sum"), (X, TARGETS),
           lambda x, t: _losses(x, (3, 4), (2, 1)).sum()),
    Sample("impossible", lambda M, x, t: _call(M, x, t, (4, 2), reduction="none", zero_infinity=True),
           (X, TARGETS), lambda x, t: np.array([_losses(x, (4, 2), (2, 2))[0], 0.0])),
    namespace="nn.functional",
    errors=[("lengths", lambda M: M.nn.functional.ctc_loss(M.zeros(2, 1, 2), M.tensor([[1]]), [3], [1]),
             ValueError, "input_lengths"),
            ("labels", lambda M: M.nn.functional.ctc_loss(M.zeros(2, 1, 2), M.tensor([[5]]), [2], [1]),
             ValueError, "targets")])
