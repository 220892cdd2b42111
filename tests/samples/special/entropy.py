"""Rows of ops/special/entropy.py."""

from typing import Any

import numpy as np

from ..base import Sample, normal, positive, row
from . import unary

A, POS = normal(2, 3), positive(2, 3)
UNIT = np.array([[0.1, -0.6, 0.85], [-0.3, 0.45, -0.9]])
unary("logit", lambda x: np.log(x / (1 - x)), np.abs(UNIT), "framework",
      Sample("eps", lambda M, x: M.logit(x, eps=0.2), (np.abs(UNIT),),
             lambda x: np.log(np.clip(x, .2, .8) / (1 - np.clip(x, .2, .8)))))
unary("entr", lambda x: -x * np.log(x), POS, "special",
      Sample("ends", lambda M, x: M.special.entr(x), (np.array([0.0, -1.0, np.nan]),),
             lambda x: np.array([0.0, -np.inf, np.nan]), grad=False))


def _xlog(name: str, log: Any, namespace: str, y: Any) -> None:
    def call(M: Any, x: Any, y: Any) -> Any:
        return getattr(getattr(M, namespace) if namespace == "special" else M, name)(x, y)

    def ref(x: Any, y: Any) -> Any:
        return x * log(y)
    row(name, Sample("plain", call, (A, y), ref), Sample("broadcast", call, (A, y[:, :1]), ref),
        Sample("zero", call, (np.zeros(3), np.array([-1.0, 0.0, np.nan])),
               lambda x, y: np.array([0.0, 0.0, np.nan]), grad=False),
        Sample("zero first", call, (np.zeros(3), y[0]), ref), namespace=namespace,
        errors=[("strings", lambda M: call(M, M.ones(1), "a"), TypeError, "str")])


_xlog("xlogy", np.log, "framework", POS)
_xlog("xlog1py", np.log1p, "special", POS - 0.4)
