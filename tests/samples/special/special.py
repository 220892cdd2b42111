"""Rows of ops/special/special.py."""

import math
from typing import Any

import numpy as np

from ..base import Sample, integers, normal, positive, row

A, POS = normal(2, 3), positive(2, 3)
UNIT = np.array([[0.1, -0.6, 0.85], [-0.3, 0.45, -0.9]])
N = integers(2, 3, low=1)
_erf, _erfc, _gamma = (np.vectorize(f, [float]) for f in (math.erf, math.erfc, math.lgamma))


def _solve(f: Any, low: float, high: float) -> Any:
    """The inverse of a rising function, by bisection."""
    def inverse(y: Any) -> Any:
        a, b = np.full(np.shape(y), low), np.full(np.shape(y), high)
        for _ in range(100):
            middle = 0.5 * (a + b)
            below = f(middle) < y
            a, b = np.where(below, middle, a), np.where(below, b, middle)
        return 0.5 * (a + b)
    return inverse


def _ndtr(x: Any) -> Any:
    return 0.5 * _erfc(-x / math.sqrt(2))


def _digamma(x: Any) -> Any:
    k = np.arange(200000)[(...,) + (None,) * np.ndim(x)] + 0.0
    tail = 1 / (200000 + 0.5 * x - 0.5)
    return -0.5772156649015329 + (1 / (k + 1) - 1 / (k + x)).sum(0) + (x - 1) * tail


def _trigamma(x: Any) -> Any:
    k = np.arange(2000)[(...,) + (None,) * np.ndim(x)]
    y = x + 2000
    return (1 / (k + x) ** 2).sum(0) + 1 / y + 0.5 / y ** 2 + 1 / (6 * y ** 3)


def _i0(x: Any) -> Any:
    return np.i0(x)


def _unary(name: str, ref: Any, x: Any, namespace: str, *more: Sample, tol: float = 1.0) -> None:
    def call(M: Any, x: Any) -> Any:
        return getattr(getattr(M, namespace) if namespace == "special" else M, name)(x)
    samples = [Sample("plain", call, (x,), ref, tol=tol), Sample("0-dim", call, (x[0, 0],), ref, tol=tol),
               Sample("empty", call, (x[:, :0],), lambda x: x)]
    if namespace == "framework":
        samples += [Sample("method", lambda M, x: getattr(x, name)(), (x,), ref, tol=tol),
                    Sample("in place", lambda M, x: getattr(x.clone(), f"{name}_")(), (x,), ref, tol=tol)]
    row(name, *samples, *more, namespace=namespace,
        errors=[("list", lambda M: call(M, [1.0]), TypeError, "list")])


_unary("lgamma", _gamma, A, "framework",
       Sample("poles", lambda M, x: M.lgamma(x), (np.array([0.0, -1.0, 1.0, 2.0, np.inf, 1e5]),),
              lambda x: np.array([np.inf, np.inf, 0, 0, np.inf, math.lgamma(1e5)]), grad=False),
       Sample("int", lambda M, x: M.lgamma(x), (N,), lambda x: _gamma(x).astype(np.float32)))
_unary("digamma", _digamma, POS, "framework",
       Sample("left", lambda M, x: M.digamma(x), (POS - 3,),
              lambda x: _digamma(1 - x) - np.pi / np.tan(np.pi * x), tol=10, why="a slowly converging sum"),
       Sample("poles", lambda M, x: M.digamma(x), (np.array([0.0, -0.0, -1.0, np.inf]),),
              lambda x: np.array([-np.inf, np.inf, np.nan, np.inf]), grad=False), tol=10)
row("polygamma",
    Sample("first", lambda M, x: M.polygamma(1, x), (POS,), _trigamma),
    Sample("zeroth", lambda M, x: M.polygamma(0, x), (POS,), _digamma, tol=10, why="the reference's sum"),
    errors=[("negative", lambda M: M.polygamma(-1, M.ones(1)), ValueError, "negative"),
            ("float", lambda M: M.polygamma(1.5, M.ones(1)), TypeError, "int")])
row("polygamma", Sample("method", lambda M, x: x.polygamma(1), (POS,), _trigamma), namespace="")
_unary("erfinv", _solve(_erf, -6, 6), UNIT, "framework",
       Sample("ends", lambda M, x: M.erfinv(x), (np.array([-1.0, 1.0, 1.5, 0.0]),),
              lambda x: np.array([-np.inf, np.inf, np.nan, 0]), grad=False))
_unary("i0", _i0, A * 3, "framework",
       Sample("large", lambda M, x: M.i0(x), (np.array([-24.0, 26.0, 40.0]),), _i0))
_unary("sinc", np.sinc, A, "framework",
       Sample("at 0", lambda M, x: M.sinc(x), (np.array([0.0, 1.0, -2.0, 9.3]),), np.sinc, torch=False,
              why="PyTorch's second derivative at 0 is 0, it is -pi**2 / 3"))
_unary("logit", lambda x: np.log(x / (1 - x)), np.abs(UNIT), "framework",
       Sample("eps", lambda M, x: M.logit(x, eps=0.2), (np.abs(UNIT),),
              lambda x: np.log(np.clip(x, .2, .8) / (1 - np.clip(x, .2, .8)))))
_unary("erfcx", lambda x: np.exp(x * x) * _erfc(x), A, "special",
       Sample("large", lambda M, x: M.special.erfcx(x), (np.array([30.0, 1e3]),),
              lambda x: 1 / (np.sqrt(np.pi) * x) * (1 - 0.5 / x ** 2 + 0.75 / x ** 4), grad=False))
_unary("ndtr", _ndtr, A, "special")
_unary("ndtri", _solve(_ndtr, -9, 9), np.abs(UNIT), "special",
       Sample("ends", lambda M, x: M.special.ndtri(x), (np.array([0.0, 1.0, -1.0, 0.5]),),
              lambda x: np.array([-np.inf, np.inf, np.nan, 0]), grad=False))
_unary("log_ndtr", lambda x: np.log(_ndtr(x)), A * 2, "special")
_unary("entr", lambda x: -x * np.log(x), POS, "special",
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
