"""Rows of the conv room."""

from itertools import product
from typing import Any

import numpy as np

from framework.errors import ShapeError

from ..base import Sample, normal, row


def convolution(x: Any, w: Any, b: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
                groups: int = 1) -> Any:
    """The definition, one output position at a time."""
    d = w.ndim - 2
    stride, padding, dilation = (np.broadcast_to(v, (d,)) for v in (stride, padding, dilation))
    x = np.pad(x, [(0, 0), (0, 0), *((p, p) for p in padding)])
    size = [(s - t * (k - 1) - 1) // st + 1
            for s, k, st, t in zip(x.shape[2:], w.shape[2:], stride, dilation)]
    out = np.zeros((x.shape[0], w.shape[0], *size))
    for o in range(w.shape[0]):
        first = o // (w.shape[0] // groups) * w.shape[1]
        for at in product(*map(range, size)):
            window = tuple(slice(i * s, i * s + t * (k - 1) + 1, t)
                           for i, s, t, k in zip(at, stride, dilation, w.shape[2:]))
            part = x[(slice(None), slice(first, first + w.shape[1]), *window)]
            out[(slice(None), o, *at)] = (part * w[o]).sum(tuple(range(1, w.ndim)))
    return out if b is None else out + b.reshape(-1, *(1,) * d)


def transposed(x: Any, w: Any, b: Any = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
               groups: int = 1, dilation: Any = 1) -> Any:
    """The definition: every input element adds a copy of its kernel."""
    d = w.ndim - 2
    stride, padding, extra, dilation = (
        np.broadcast_to(v, (d,)) for v in (stride, padding, output_padding, dilation))
    size = [(i - 1) * s + t * (k - 1) + 1 + e
            for i, s, t, k, e in zip(x.shape[2:], stride, dilation, w.shape[2:], extra)]
    each = w.shape[1]
    out = np.zeros((x.shape[0], each * groups, *size))
    for c in range(w.shape[0]):
        first = c // (w.shape[0] // groups) * each
        for at in product(*map(range, x.shape[2:])):
            window = tuple(slice(i * s, i * s + t * (k - 1) + 1, t)
                           for i, s, t, k in zip(at, stride, dilation, w.shape[2:]))
            value = x[(slice(None), c, *at)].reshape(-1, *(1,) * (d + 1))
            out[(slice(None), slice(first, first + each), *window)] += value * w[c]
    crop = tuple(slice(p, s - p) for p, s in zip(padding, size))
    out = out[(slice(None), slice(None), *crop)]
    return out if b is None else out + b.reshape(-1, *(1,) * d)


def _sample(op: str, label: str, *shapes: tuple, **settings: Any) -> Sample:
    def call(M: Any, *xs: Any) -> Any:
        return getattr(M.nn.functional, op)(*xs, **settings)

    def reference(*xs: Any) -> Any:
        return (transposed if "transpose" in op else convolution)(*xs, **settings)
    return Sample(label, call, tuple(normal(*s, seed=i) for i, s in enumerate(shapes)), reference)


def _alone(op: str, x: tuple, w: tuple) -> Sample:
    def call(M: Any, *xs: Any) -> Any:
        return getattr(M.nn.functional, op)(*xs)

    def reference(x: Any, w: Any) -> Any:
        return (transposed if "transpose" in op else convolution)(x[None], w)[0]
    return Sample("no batch", call, (normal(*x), normal(*w, seed=1)), reference)


def _named(op: str, label: str, name: str, x: tuple, w: tuple, dilation: int, pads: list) -> Sample:
    def call(M: Any, *xs: Any) -> Any:
        return getattr(M.nn.functional, op)(*xs, padding=name, dilation=dilation)

    def reference(x: Any, w: Any) -> Any:
        return convolution(np.pad(x, [(0, 0), (0, 0), *pads]), w, dilation=dilation)
    return Sample(label, call, (normal(*x), normal(*w, seed=1)), reference)


row("conv1d",
    _sample("conv1d", "plain", (2, 2, 5), (3, 2, 3)),
    _sample("conv1d", "bias, stride, padding", (2, 1, 6), (2, 1, 3), (2,), stride=2, padding=1),
    _sample("conv1d", "dilation", (1, 2, 7), (1, 2, 3), dilation=2),
    _sample("conv1d", "dilation, stride, padding", (1, 1, 8), (2, 1, 2), dilation=3, stride=2, padding=2),
    _sample("conv1d", "groups", (1, 4, 4), (4, 2, 2), (4,), groups=2),
    _sample("conv1d", "depthwise", (2, 3, 4), (6, 1, 2), groups=3, padding=1),
    _sample("conv1d", "kernel 1", (2, 3, 4), (2, 3, 1)),
    _sample("conv1d", "no batch elements", (0, 2, 5), (3, 2, 3), (3,)),
    _alone("conv1d", (2, 5), (3, 2, 2)),
    _named("conv1d", "same, odd", "same", (1, 2, 5), (2, 2, 3), 1, [(1, 1)]),
    _named("conv1d", "same, even", "same", (1, 1, 5), (1, 1, 4), 1, [(1, 2)]),
    _named("conv1d", "valid", "valid", (1, 1, 5), (1, 1, 2), 1, [(0, 0)]),
    namespace="nn.functional",
    errors=[("channels", lambda M: M.nn.functional.conv1d(M.ones(1, 2, 5), M.ones(1, 3, 2)), ShapeError,
             "3 channels"),
            ("too large", lambda M: M.nn.functional.conv1d(M.ones(1, 1, 2), M.ones(1, 1, 3)), ShapeError,
             "does not fit into"),
            ("dimensions", lambda M: M.nn.functional.conv1d(M.ones(2), M.ones(1, 1, 2)), ShapeError,
             "3 dimensions"),
            ("bias", lambda M: M.nn.functional.conv1d(M.ones(1, 1, 2), M.ones(1, 1, 2), M.ones(2)),
             ShapeError, "wanted [1]"),
            ("stride", lambda M: M.nn.functional.conv1d(M.ones(1, 1, 2), M.ones(1, 1, 2), stride=0),
             ValueError, "stride must be at least 1"),
            ("name", lambda M: M.nn.functional.conv1d(M.ones(1, 1, 2), M.ones(1, 1, 2), padding="full"),
             ValueError, "'same'"),
            ("same with stride", lambda M: M.nn.functional.conv1d(
                M.ones(1, 1, 2), M.ones(1, 1, 2), padding="same", stride=2), ValueError, "stride 1"),
            ("groups", lambda M: M.nn.functional.conv1d(M.ones(1, 1, 2), M.ones(1, 1, 2), groups=0),
             ValueError, "groups")])
row("conv2d",
    _sample("conv2d", "plain", (2, 2, 3, 4), (2, 2, 2, 3)),
    _sample("conv2d", "bias, padding", (1, 1, 3, 4), (2, 1, 3, 3), (2,), padding=1),
    _sample("conv2d", "uneven settings", (1, 2, 5, 4), (1, 2, 2, 2), stride=(2, 1), padding=(0, 1),
            dilation=(1, 2)),
    _sample("conv2d", "stride over the edge", (1, 1, 5, 6), (1, 1, 2, 2), stride=(2, 4)),
    _sample("conv2d", "groups", (1, 4, 3, 3), (2, 2, 2, 2), (2,), groups=2),
    _sample("conv2d", "depthwise", (1, 3, 3, 3), (3, 1, 2, 2), groups=3, stride=2, padding=1),
    _sample("conv2d", "wide kernel", (1, 1, 4, 4), (1, 1, 4, 4)),
    _sample("conv2d", "no batch elements", (0, 1, 3, 3), (1, 1, 2, 2)),
    _alone("conv2d", (1, 3, 3), (2, 1, 2, 2)),
    _named("conv2d", "same", "same", (1, 1, 3, 4), (1, 1, 2, 3), 1, [(0, 1), (1, 1)]),
    Sample("channels last", lambda M, x, w: M.nn.functional.conv2d(
        x.contiguous(memory_format=M.channels_last), w.contiguous(memory_format=M.channels_last), padding=1),
           (normal(1, 2, 3, 4), normal(2, 2, 2, 2, seed=1)), lambda x, w: convolution(x, w, padding=1)),
    namespace="nn.functional",
    errors=[("channels", lambda M: M.nn.functional.conv2d(M.ones(1, 2, 5, 5), M.ones(1, 3, 2, 2)),
             ShapeError, "[1, 2, 5, 5]"),
            ("array", lambda M: M.nn.functional.conv2d(np.ones((1, 1, 2, 2)), M.ones(1, 1, 2, 2)), TypeError,
             "Tensor")])
row("conv3d",
    _sample("conv3d", "plain", (1, 2, 3, 2, 3), (2, 2, 2, 2, 2)),
    _sample("conv3d", "settings", (1, 1, 3, 3, 3), (1, 1, 2, 1, 2), (1,), stride=(1, 2, 1),
            padding=(1, 0, 1), dilation=(2, 1, 1)),
    _alone("conv3d", (1, 2, 2, 3), (1, 1, 2, 2, 2)),
    namespace="nn.functional",
    errors=[("dimensions", lambda M: M.nn.functional.conv3d(M.ones(1, 2, 2), M.ones(1, 1, 1, 1, 1)),
             ShapeError, "5 dimensions")])
row("conv_transpose1d",
    _sample("conv_transpose1d", "plain", (2, 2, 3), (2, 3, 2)),
    _sample("conv_transpose1d", "settings", (1, 2, 3), (2, 1, 3), (1,), stride=2, padding=1,
            output_padding=1),
    _sample("conv_transpose1d", "groups, dilation", (1, 4, 3), (4, 1, 2), (2,), groups=2, dilation=2),
    _sample("conv_transpose1d", "no batch elements", (0, 1, 3), (1, 1, 2)),
    _sample("conv_transpose1d", "output padding beyond the stride", (1, 2, 3), (2, 1, 2), dilation=4,
            output_padding=3),
    _alone("conv_transpose1d", (2, 3), (2, 1, 2)),
    namespace="nn.functional",
    errors=[("channels", lambda M: M.nn.functional.conv_transpose1d(M.ones(1, 2, 3), M.ones(3, 1, 2)),
             ShapeError, "channels 2"),
            ("output padding", lambda M: M.nn.functional.conv_transpose1d(
                M.ones(1, 1, 3), M.ones(1, 1, 2), output_padding=1), ValueError, "smaller than stride"),
            ("no output", lambda M: M.nn.functional.conv_transpose1d(
                M.ones(1, 1, 1), M.ones(1, 1, 2), padding=1), ShapeError, "no output"),
            ("bias", lambda M: M.nn.functional.conv_transpose1d(
                M.ones(1, 1, 1), M.ones(1, 1, 2), M.ones(3)), ShapeError, "wanted [1]")])
row("conv_transpose2d",
    _sample("conv_transpose2d", "plain", (1, 2, 2, 3), (2, 2, 2, 2), (2,)),
    _sample("conv_transpose2d", "settings", (1, 1, 2, 2), (1, 1, 3, 2), stride=(2, 1), padding=(1, 0),
            output_padding=(1, 0)),
    _alone("conv_transpose2d", (1, 2, 2), (1, 2, 2, 2)),
    namespace="nn.functional",
    errors=[("dimensions", lambda M: M.nn.functional.conv_transpose2d(M.ones(1, 2), M.ones(1, 1, 1, 1)),
             ShapeError, "4 dimensions")])
row("conv_transpose3d",
    _sample("conv_transpose3d", "plain", (1, 1, 2, 2, 2), (1, 2, 2, 1, 2), (2,), stride=(1, 2, 1)),
    namespace="nn.functional",
    errors=[("dimensions", lambda M: M.nn.functional.conv_transpose3d(M.ones(1, 2), M.ones(1, 1, 1, 1, 1)),
             ShapeError, "5 dimensions")])
