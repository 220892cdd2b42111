"""Rows of ops/image/interpolate.py."""

from typing import Any

import numpy as np

from framework.errors import DTypeError, ShapeError

from ..base import Sample, normal, row


def _linear_reference(x: Any, out: int, step: float, corners: bool) -> Any:
    size = x.shape[-1]
    i = np.arange(out)
    at = i * step if corners else np.clip((i + 0.5) * step - 0.5, 0, None)
    flat = [np.interp(at, np.arange(size), v) for v in x.reshape(-1, size)]
    return np.array(flat).reshape(*x.shape[:-1], out)


def _every(x: Any, out: tuple, steps: tuple, corners: bool) -> Any:
    for i, (o, s) in enumerate(zip(out, steps)):
        x = np.moveaxis(_linear_reference(np.moveaxis(x, 2 + i, -1), o, s, corners), -1, 2 + i)
    return x


def _resize(label: str, shape: tuple, reference: Any, **settings: Any) -> Sample:
    def call(M: Any, x: Any) -> Any:
        return M.nn.functional.interpolate(x, **settings)
    return Sample(label, call, (normal(*shape),), reference)


def _cubic_up(x: Any) -> Any:
    """Twice as many elements along the last dimension, by cubic convolution with a = -0.75."""
    n = x.shape[-1]
    edge = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(3, 3)], mode="edge")
    taps = np.array([-0.03515625, 0.26171875, 0.87890625, -0.10546875])
    out = np.zeros((*x.shape[:-1], 2 * n))
    for k in range(4):
        out[..., 0::2] += taps[k] * edge[..., 1 + k:1 + k + n]
        out[..., 1::2] += taps[3 - k] * edge[..., 2 + k:2 + k + n]
    return out


_HALVED = np.array([[3, 3, 1, 0], [0, 1, 3, 3]]) / 7  # tents over four elements, cut off at the edges
# cubic weights at distances 1/4, 3/4, 5/4, of what is inside, with sum 1
_NEAR, _NEXT, _FAR, _LAST = 111 / 128, 29 / 128, -9 / 128, -3 / 128
_THREE_TO_SIX = np.array([[_NEAR, _FAR, 0], [_NEAR, _NEXT, _LAST], [_NEXT, _NEAR, _FAR], [_FAR, _NEAR, _NEXT],
                          [_LAST, _NEXT, _NEAR], [0, _FAR, _NEAR]])
_THREE_TO_SIX /= _THREE_TO_SIX.sum(1, keepdims=True)
row("interpolate",
    _resize("nearest up", (1, 2, 3), lambda x: x.repeat(2, -1), scale_factor=2),
    _resize("nearest size", (1, 1, 2, 3), lambda x: x[:, :, [0, 0, 0, 1, 1]][..., [0, 1]], size=(5, 2)),
    _resize("nearest scale", (1, 1, 5), lambda x: x[..., [0, 0, 1, 2, 2, 3, 4]], scale_factor=1.5),
    _resize("nearest volume", (1, 1, 2, 2, 1), lambda x: x.repeat(2, 2).repeat(2, 3).repeat(2, 4),
            scale_factor=2),
    _resize("nearest exact", (1, 1, 5), lambda x: x[..., [0, 2, 4]], size=3, mode="nearest-exact"),
    _resize("area", (1, 1, 5), lambda x: np.stack([x[..., :3].mean(-1), x[..., 2:].mean(-1)], -1),
            size=2, mode="area"),
    _resize("linear", (1, 2, 3), lambda x: _every(x, (5,), (3 / 5,), False), size=5, mode="linear"),
    _resize("linear down", (1, 2, 5), lambda x: _every(x, (2,), (2.5,), False), size=2, mode="linear"),
    _resize("corners", (1, 2, 3), lambda x: _every(x, (5,), (2 / 4,), True), size=5, mode="linear",
            align_corners=True),
    _resize("bilinear", (1, 2, 2, 3), lambda x: _every(x, (4, 6), (0.5, 0.5), False), scale_factor=2,
            mode="bilinear"),
    _resize("bilinear scales", (1, 1, 4, 3), lambda x: _every(x, (6, 4), (1 / 1.6, 1 / 1.5), False),
            scale_factor=(1.6, 1.5), mode="bilinear"),
    _resize("bilinear corners", (1, 1, 2, 3), lambda x: _every(x, (3, 2), (0.5, 2.0), True), size=(3, 2),
            mode="bilinear", align_corners=True),
    _resize("trilinear", (1, 1, 2, 2, 2), lambda x: _every(x, (3, 3, 2), (2 / 3, 2 / 3, 1.0), False),
            size=(3, 3, 2), mode="trilinear"),
    _resize("bicubic", (1, 1, 2, 3),
            lambda x: _cubic_up(_cubic_up(x).swapaxes(2, 3)).swapaxes(2, 3), scale_factor=2, mode="bicubic"),
    _resize("bilinear antialias", (1, 2, 4, 4), lambda x: _HALVED @ x @ _HALVED.T, size=2, mode="bilinear",
            antialias=True),
    _resize("bicubic antialias up", (1, 1, 3, 3), lambda x: _THREE_TO_SIX @ x @ _THREE_TO_SIX.T, size=6,
            mode="bicubic", antialias=True),
    _resize("no batch elements", (0, 1, 2), lambda x: x.repeat(2, -1), scale_factor=2),
    namespace="nn.functional",
    errors=[("mode", lambda M: M.nn.functional.interpolate(M.ones(1, 1, 2), 4, mode="cubic"), ValueError,
             "'cubic'"),
            ("dimensions", lambda M: M.nn.functional.interpolate(M.ones(1, 1, 2), 4, mode="bilinear"),
             ShapeError, "4 dimensions"),
            ("smooth", lambda M: M.nn.functional.interpolate(M.ones(1, 1, 2), 4, antialias=True), ValueError,
             "antialias"),
            ("both", lambda M: M.nn.functional.interpolate(M.ones(1, 1, 2), 4, 2), ValueError, "either"),
            ("nothing", lambda M: M.nn.functional.interpolate(M.ones(1, 1, 2), 0), ShapeError, "at least 1"),
            ("corners", lambda M: M.nn.functional.interpolate(M.ones(1, 1, 2), 2, align_corners=True),
             ValueError, "align_corners"),
            ("ints", lambda M: M.nn.functional.interpolate(M.ones(1, 1, 2).long(), 4, mode="linear"),
             DTypeError, "floating")])
