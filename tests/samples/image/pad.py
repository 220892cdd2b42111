"""Rows of the pad room: padding, resizing, windows as columns, channels to pixels."""

from typing import Any

import numpy as np

from framework.errors import DTypeError, ShapeError

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


def _columns(x: Any, kernel: tuple, stride: tuple = (1, 1), padding: tuple = (0, 0),
             dilation: tuple = (1, 1)) -> Any:
    x = np.pad(x, [(0, 0), (0, 0), *((p, p) for p in padding)])
    spans = [d * (k - 1) + 1 for d, k in zip(dilation, kernel)]
    starts = [range(0, s - span + 1, st) for s, span, st in zip(x.shape[2:], spans, stride)]
    columns = [x[:, :, i:i + spans[0]:dilation[0], j:j + spans[1]:dilation[1]].reshape(x.shape[0], -1)
               for i in starts[0] for j in starts[1]]
    return np.stack(columns, -1)


def _image(y: Any, size: tuple, kernel: tuple, **settings: Any) -> Any:
    """The transpose of ``_columns``, from its matrix."""
    c = y.shape[1] // (kernel[0] * kernel[1])
    basis = np.eye(c * size[0] * size[1]).reshape(-1, c, *size)
    matrix = _columns(basis, kernel, **settings).reshape(len(basis), -1)
    return (y.reshape(y.shape[0], -1) @ matrix.T).reshape(-1, c, *size)


row("unfold",
    Sample("plain", lambda M, x: M.nn.functional.unfold(x, 2), (normal(2, 2, 3, 3),),
           lambda x: _columns(x, (2, 2))),
    Sample("settings", lambda M, x: M.nn.functional.unfold(x, (2, 1), (2, 1), (1, 0), (1, 2)),
           (normal(1, 2, 3, 4),), lambda x: _columns(x, (2, 1), (1, 2), (1, 0), (2, 1))),
    Sample("no batch", lambda M, x: M.nn.functional.unfold(x, 2), (normal(1, 3, 3),),
           lambda x: _columns(x[None], (2, 2))[0]),
    namespace="nn.functional",
    errors=[("too large", lambda M: M.nn.functional.unfold(M.ones(1, 1, 2, 2), 3), ShapeError,
             "does not fit"),
            ("dimensions", lambda M: M.nn.functional.unfold(M.ones(2), 3), ShapeError, "4 dimensions")])
row("fold",
    Sample("plain", lambda M, y: M.nn.functional.fold(y, (3, 3), 2), (normal(1, 8, 4),),
           lambda y: _image(y, (3, 3), (2, 2))),
    Sample("settings", lambda M, y: M.nn.functional.fold(y, (3, 4), (2, 1), (2, 1), (1, 0), (1, 2)),
           (normal(1, 4, 6),), lambda y: _image(y, (3, 4), (2, 1), stride=(1, 2), padding=(1, 0),
                                                dilation=(2, 1))),
    Sample("no batch", lambda M, y: M.nn.functional.fold(y, (3, 3), 2), (normal(4, 4),),
           lambda y: _image(y[None], (3, 3), (2, 2))[0]),
    namespace="nn.functional",
    errors=[("sizes", lambda M: M.nn.functional.fold(M.ones(1, 4, 5), (3, 3), 2), ShapeError,
             "(n, c * 4, 4)")])
row("pixel_shuffle",
    Sample("plain", lambda M, x: M.nn.functional.pixel_shuffle(x, 2), (normal(2, 4, 1, 3),),
           lambda x: x.reshape(2, 1, 2, 2, 1, 3).transpose(0, 1, 4, 2, 5, 3).reshape(2, 1, 2, 6)),
    Sample("no batch", lambda M, x: M.nn.functional.pixel_shuffle(x, 1), (normal(4, 1, 3),), lambda x: x),
    namespace="nn.functional",
    errors=[("channels", lambda M: M.nn.functional.pixel_shuffle(M.ones(1, 3, 2, 2), 2), ShapeError, "c * 4"),
            ("factor", lambda M: M.nn.functional.pixel_shuffle(M.ones(1, 3, 2, 2), 0), ValueError,
             "positive")])
row("pixel_unshuffle",
    Sample("plain", lambda M, x: M.nn.functional.pixel_unshuffle(x, 2), (normal(2, 1, 2, 4),),
           lambda x: x.reshape(2, 1, 1, 2, 2, 2).transpose(0, 1, 3, 5, 2, 4).reshape(2, 4, 1, 2)),
    namespace="nn.functional",
    errors=[("size", lambda M: M.nn.functional.pixel_unshuffle(M.ones(1, 1, 3, 2), 2), ShapeError, "h * 2")])
row("channel_shuffle",
    Sample("plain", lambda M, x: M.nn.functional.channel_shuffle(x, 3), (normal(2, 6, 2),),
           lambda x: x[:, [0, 2, 4, 1, 3, 5]]),
    Sample("one", lambda M, x: M.nn.functional.channel_shuffle(x, 1), (normal(1, 2, 2, 2),), lambda x: x),
    namespace="nn.functional", errors=[
        ("groups", lambda M: M.nn.functional.channel_shuffle(M.ones(1, 3, 1), 2), ValueError,
         "divisible by 2"),
        ("none", lambda M: M.nn.functional.channel_shuffle(M.ones(1, 3, 1), 0), ValueError, "groups")])
