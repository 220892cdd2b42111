"""Rows of ops/image/other_names.py."""

import warnings
from typing import Any

import numpy as np

from framework.errors import ShapeError

from ..base import Sample, normal, row

SPREAD = np.random.default_rng(5)
for d in (1, 2, 3):
    shape = (2, *[4] * d)
    x = SPREAD.permutation(np.prod(shape)).reshape(shape) / 10.0

    def pooled(x: Any, d: int = d, each: int = 2) -> Any:
        parts = x.reshape(2, *[4 // each, each] * d)
        return parts.max(tuple(range(2, 2 * d + 1, 2)))
    for name, args, each in ((f"max_pool{d}d_with_indices", (2,), 2),
                             (f"adaptive_max_pool{d}d_with_indices", (1,), 4)):
        row(name, Sample("values", lambda M, x, name=name, args=args: getattr(
            M.nn.functional, name)(x, *args)[0], (x,), lambda x, f=pooled, each=each: f(x, each=each)),
            Sample("places", lambda M, x, name=name, args=args: x.reshape(2, -1).gather(
                1, getattr(M.nn.functional, name)(x, *args)[1].reshape(2, -1)), (x,),
                lambda x, f=pooled, each=each: f(x, each=each).reshape(2, -1)),
            namespace="nn.functional", errors=[("list", lambda M, name=name, args=args: getattr(
                M.nn.functional, name)([1.0], *args), TypeError, "must be a Tensor")])


def quiet(call: Any) -> Any:
    """Without the warning that the name is old."""
    def run(M: Any, *x: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return call(M, *x)
    return run


IMAGE = normal(1, 2, 2, 3)
twice = quiet(lambda M, x: M.nn.functional.upsample(x, scale_factor=2))
row("upsample", Sample("twice", twice, (IMAGE,), lambda x: x.repeat(2, 2).repeat(2, 3)),
    namespace="nn.functional", errors=[("mode", quiet(lambda M: M.nn.functional.upsample(
        M.ones(1, 1, 2), 3, mode="none")), ValueError, "mode")])
row("upsample_nearest", Sample("twice", quiet(lambda M, x: M.nn.functional.upsample_nearest(
    x, scale_factor=2)), (IMAGE,), lambda x: x.repeat(2, 2).repeat(2, 3)), namespace="nn.functional",
    errors=[("list", quiet(lambda M: M.nn.functional.upsample_nearest([1.0], 3)), TypeError,
             "must be a Tensor")])
row("upsample_bilinear", Sample("between", quiet(lambda M, x: M.nn.functional.upsample_bilinear(
    x, (2, 5))), (IMAGE,), lambda x: np.stack(
        [x[..., 0], (x[..., 0] + x[..., 1]) / 2, x[..., 1], (x[..., 1] + x[..., 2]) / 2, x[..., 2]], -1)),
    namespace="nn.functional", errors=[("dims", quiet(lambda M: M.nn.functional.upsample_bilinear(
        M.ones(1, 1, 2), 3)), ShapeError, "4 dimensions")])
row("native_channel_shuffle", Sample("two", lambda M, x: M.nn.functional.native_channel_shuffle(x, 2),
                                     (normal(1, 4, 2),), lambda x: x[:, [0, 2, 1, 3]], torch=False,
                                     why="PyTorch's has no gradient"),
    namespace="nn.functional", errors=[("groups", lambda M: M.nn.functional.native_channel_shuffle(
        M.ones(1, 3, 2), 2), ShapeError, "divisible")])


def over_time(x: Any, w: Any, b: Any, pad: int) -> Any:
    x = np.pad(x, ((pad, pad), (0, 0), (0, 0)))
    return sum(x[k:len(x) - len(w) + 1 + k] @ w[k] for k in range(len(w))) + b


row("conv_tbc", *[Sample(f"pad {pad}", lambda M, x, w, b, pad=pad: M.nn.functional.conv_tbc(x, w, b, pad),
                         (normal(5, 2, 3), normal(3, 3, 2), normal(2)),
                         lambda x, w, b, pad=pad: over_time(x, w, b, pad)) for pad in (0, 1)],
    namespace="nn.functional", errors=[("dims", lambda M: M.nn.functional.conv_tbc(
        M.ones(4, 2), M.ones(1, 2, 1), M.ones(1)), ShapeError, "(t, n, c)")])
