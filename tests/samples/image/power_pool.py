"""Rows of ops/image/power_pool.py."""

from typing import Any

import numpy as np

from framework.errors import ShapeError

from ..base import Sample, normal, positive, row
from .pool import mean_reference


def _power(d: int, label: str, shape: tuple, p: float, kernel: Any, **settings: Any) -> Sample:
    count = np.prod(kernel) if isinstance(kernel, tuple) else kernel ** d
    return Sample(
        label, lambda M, x: getattr(M.nn.functional, f"lp_pool{d}d")(x, p, kernel, **settings),
        (positive(*shape),),
        lambda x: (mean_reference(x ** p, d, kernel, **settings) * count) ** (1 / p))


row("lp_pool1d",
    _power(1, "plain", (2, 2, 6), 2.0, 2), _power(1, "three", (1, 2, 6), 3.0, 3, stride=1),
    _power(1, "ceil", (1, 1, 6), 2.0, 4, ceil_mode=True), _power(1, "no batch", (2, 5), 1.0, 2),
    Sample("nothing", lambda M, x: M.nn.functional.lp_pool1d(x * 0.0, 2.0, 2), (normal(1, 4),),
           lambda x: np.zeros((1, 2)), torch=False, why="PyTorch's gradient of a sum of 0 is nan, ours 0"),
    namespace="nn.functional", errors=[
        ("norm", lambda M: M.nn.functional.lp_pool1d(M.ones(1, 1, 4), 0, 2), ValueError, "norm_type"),
        ("window", lambda M: M.nn.functional.lp_pool1d(M.ones(1, 1, 2), 2.0, 3), ShapeError, "does not fit")])
row("lp_pool2d", _power(2, "plain", (1, 2, 4, 2), 2.0, 2),
    _power(2, "uneven", (1, 1, 4, 5), 3.0, (2, 3), stride=(2, 1)), namespace="nn.functional",
    errors=[("list", lambda M: M.nn.functional.lp_pool2d([1.0], 2, 2), TypeError, "must be a Tensor")])
row("lp_pool3d", _power(3, "plain", (1, 1, 2, 4, 2), 2.0, 2), namespace="nn.functional",
    errors=[("dimensions", lambda M: M.nn.functional.lp_pool3d(M.ones(4), 2.0, 2), ShapeError,
             "5 dimensions")])


def _spread(x: Any, index: Any, size: tuple) -> Any:
    out = np.zeros((*x.shape[:-len(size)], np.prod(size)), x.dtype)
    flat = x.reshape(*x.shape[:-len(size)], -1), index.reshape(*x.shape[:-len(size)], -1)
    np.put_along_axis(out, flat[1], flat[0], -1)
    return out.reshape(*x.shape[:-len(size)], *size)


def _unpool(d: int, label: str, shape: tuple, index: Any, size: tuple, *args: Any, **settings: Any) -> Sample:
    return Sample(
        label, lambda M, x, i: getattr(M.nn.functional, f"max_unpool{d}d")(x, i, *args, **settings),
        (normal(*shape), np.array(index).reshape(shape)), lambda x, i: _spread(x, i, size))


row("max_unpool1d",
    _unpool(1, "plain", (2, 1, 2), [0, 3, 1, 2], (4,), 2),
    _unpool(1, "settings", (1, 1, 3), [0, 3, 4], (5,), 3, 2, padding=1),
    _unpool(1, "size", (1, 2), [1, 4], (5,), 2, output_size=(5,)),
    namespace="nn.functional", errors=[
        ("place", lambda M: M.nn.functional.max_unpool1d(M.ones(1, 1, 1), M.tensor([[[2]]]), 2), IndexError,
         "[0, 1]"),
        ("shape", lambda M: M.nn.functional.max_unpool1d(M.ones(1, 1, 1), M.tensor([[0]]), 2), ShapeError,
         "[1, 1]"),
        ("size", lambda M: M.nn.functional.max_unpool1d(M.ones(1, 1, 1), M.tensor([[[0]]]), 2,
                                                        output_size=(4,)), ShapeError, "output_size"),
        ("floats", lambda M: M.nn.functional.max_unpool1d(M.ones(1, 1, 1), M.ones(1, 1, 1), 2), TypeError,
         "return_indices")])
row("max_unpool2d", _unpool(2, "plain", (1, 2, 1, 2), [0, 7, 5, 2], (2, 4), 2),
    _unpool(2, "no batch", (1, 1, 2), [5, 2], (2, 4), 2), namespace="nn.functional",
    errors=[("dimensions", lambda M: M.nn.functional.max_unpool2d(M.ones(1), M.tensor([0]), 2), ShapeError,
             "4 dimensions")])
row("max_unpool3d", _unpool(3, "plain", (1, 1, 1, 1, 2), [9, 2], (2, 2, 4), 2), namespace="nn.functional",
    errors=[("dimensions", lambda M: M.nn.functional.max_unpool3d(M.ones(1), M.tensor([0]), 2), ShapeError,
             "5 dimensions")])
