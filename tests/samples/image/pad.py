"""Rows of ops/image/pad.py."""

from typing import Any

import numpy as np

from framework.errors import ShapeError

from ..base import Sample, integers, normal, row


def _pad(label: str, shape: tuple, pads: tuple, mode: str = "constant", value: Any = None,
         **more: Any) -> Sample:
    def call(M: Any, x: Any) -> Any:
        return M.nn.functional.pad(x, pads, mode=mode, value=value)

    def reference(x: Any) -> Any:
        sides = [(0, 0)] * (x.ndim - len(pads) // 2)
        sides += [pads[i:i + 2] for i in range(0, len(pads), 2)][::-1]
        crop = tuple(slice(max(-lo, 0), s - max(-hi, 0)) for s, (lo, hi) in zip(x.shape, sides))
        grow = [(max(lo, 0), max(hi, 0)) for lo, hi in sides]
        name = {"replicate": "edge", "circular": "wrap"}.get(mode, mode)
        if mode == "constant":
            return np.pad(x[crop], grow, constant_values=0 if value is None else value)
        return np.pad(x[crop], grow, mode=name)
    return Sample(label, call, (normal(*shape),), reference, **more)


row("pad",
    _pad("last", (2, 3), (1, 2)), _pad("two", (2, 3), (1, 0, 0, 2)), _pad("value", (2, 3), (1, 2), value=1.5),
    _pad("negative", (3, 4), (-1, 2, 1, -2)), _pad("nothing", (2, 3), (0, 0)), _pad("empty", (0, 3), (1, 1)),
    _pad("empty grows", (2, 0), (1, 1)),
    Sample("ints", lambda M, x: M.nn.functional.pad(x, (1, 1), value=7), (integers(3),),
           lambda x: np.pad(x, 1, constant_values=7), grad=False),
    *[_pad(f"{m} {len(p) // 2}", s, p, m) for m in ("reflect", "replicate", "circular")
      for s, p in (((1, 2, 3), (2, 1)), ((1, 1, 3, 2), (1, 1, 2, 0)), ((1, 1, 2, 2, 2), (1, 0, 0, 1, 1, 1)))],
    _pad("circular negative", (1, 1, 4, 4), (-1, 1, -2, 1), "circular"),
    _pad("reflect empty", (0, 3, 3), (1, 2), "reflect"),
    _pad("replicate far", (1, 2, 2), (3, 4), "replicate"),
    namespace="nn.functional",
    errors=[("odd", lambda M: M.nn.functional.pad(M.ones(2), (1,)), ValueError, "pairs"),
            ("too many", lambda M: M.nn.functional.pad(M.ones(2), (1, 1, 1, 1)), ValueError, "at most 1"),
            ("mode", lambda M: M.nn.functional.pad(M.ones(2), (1, 1), mode="edge"), ValueError, "'edge'"),
            ("reflect", lambda M: M.nn.functional.pad(M.ones(1, 2), (2, 0), mode="reflect"), ShapeError,
             "at most 1 on a side"),
            ("crop", lambda M: M.nn.functional.pad(M.ones(2), (-3, 0)), ShapeError, "size 2")])
