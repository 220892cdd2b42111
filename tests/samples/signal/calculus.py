"""Rows of ops/signal/calculus.py."""

from typing import Any

import numpy as np

from ..base import Sample, integers, normal, row

Y, X, N = normal(3, 4), np.array([0.0, 0.5, 1.5, 3.0]), integers(3, 4)
ROWS = np.array([0.0, 1.0, 4.0])


def _cumulative(y: Any, x: Any = None, dx: float = 1.0, axis: int = -1) -> Any:
    y = np.moveaxis(y, axis, -1)
    steps = dx if x is None else np.diff(x)
    return np.moveaxis(np.cumsum((y[..., 1:] + y[..., :-1]) / 2 * steps, -1), -1, axis)


for _name, _ref in (("trapezoid", np.trapezoid), ("cumulative_trapezoid", _cumulative)):
    def _call(M: Any, *args: Any, name: str = _name, **more: Any) -> Any:
        return getattr(M, name)(*args, **more)
    row(_name,
        Sample("plain", lambda M, y, f=_call: f(M, y), (Y,), _ref),
        Sample("dx", lambda M, y, f=_call: f(M, y, dx=0.5, dim=0), (Y,),
               lambda y, f=_ref: f(y, dx=0.5, axis=0)),
        Sample("points", lambda M, y, x, f=_call: f(M, y, x), (Y, X), _ref),
        Sample("points along 0", lambda M, y, x, f=_call: f(M, y, x, dim=0), (Y, ROWS),
               lambda y, x, f=_ref: f(y, x, axis=0)),
        Sample("full points", lambda M, y, x, f=_call: f(M, y, x), (Y, np.cumsum(np.abs(Y) + 0.1, 1)), _ref),
        errors=[("both", lambda M, f=_call: f(M, M.ones(2), M.ones(2), dx=1.0), TypeError, "only one"),
                ("points", lambda M, f=_call: f(M, M.ones(2), M.ones(3)), ValueError, "points")])

row("gradient",
    Sample("plain", lambda M, x: M.gradient(x), (Y,), lambda x: tuple(np.gradient(x))),
    Sample("dim", lambda M, x: M.gradient(x, dim=1, spacing=0.5), (Y,),
           lambda x: np.gradient(x, 0.5, axis=1)),
    Sample("none given", lambda M, x: M.gradient(x, spacing=None, dim=None), (Y,),
           lambda x: tuple(np.gradient(x))),
    Sample("second", lambda M, x: M.gradient(x, edge_order=2), (Y,),
           lambda x: tuple(np.gradient(x, edge_order=2))),
    Sample("spacings", lambda M, x: M.gradient(x, spacing=(2.0, 0.5)), (Y,),
           lambda x: tuple(np.gradient(x, 2.0, 0.5))),
    Sample("points", lambda M, x, a, b: M.gradient(x, spacing=(a, b), edge_order=2), (Y, ROWS, X),
           lambda x, a, b: tuple(np.gradient(x, a, b, edge_order=2)), torch=False,
           why="its result carries no gradient to the points"),
    Sample("two", lambda M, x: M.gradient(x, dim=0), (Y[:2],), lambda x: np.gradient(x, axis=0)),
    errors=[("short", lambda M: M.gradient(M.ones(1)), ValueError, "at least 2"),
            ("order", lambda M: M.gradient(M.ones(3), edge_order=3), ValueError, "edge_order")])
