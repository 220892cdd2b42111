"""Power-average pooling and unpooling: composites of the records of ``pool.py`` and of scatter."""

import math
from functools import partial
from typing import Any

from ...backends import device_flags
from ...errors import DTypeError, ShapeError
from ...tensor import Tensor
from ..index.scatter import scatter
from ..pointwise.choose import where
from ..record.args import ntuple, real_arg, tensor_arg
from ..record.planned import Step, have_kernels, planned
from ..record.public import public
from ..shape.view import take_shape
from .conv import check_images
from .places import unpool
from .pool import avg_pool1d, avg_pool2d, avg_pool3d


def _power(d: int, average: Any, x: Any, norm_type: float, kernel_size: Any, stride: Any,
           ceil: bool) -> Tensor:
    op = f"lp_pool{d}d"
    tensor_arg(x, op)
    if norm_type == 0:
        raise ValueError(f"{op}: norm_type must not be 0")
    count = math.prod(ntuple(kernel_size, d, op, "kernel_size"))
    total: Any = average(x ** float(norm_type), kernel_size, stride, 0, ceil) * count
    empty = total == 0  # where the root has no derivative, and that of the powers is 0
    return where(empty, 0.0, where(empty, 1.0, total) ** (1 / norm_type))


@public("nn.functional", deferred=True)
def lp_pool1d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None,
              ceil_mode: bool = False) -> Tensor:
    """``(sum of x**p over each window)**(1/p)`` with p = norm_type: (n, c, l) or (c, l) -> (n, c, l').

    stride: kernel_size unless given. ceil_mode: windows may reach over the end, where they are scaled to
    their full size. Of a sum of 0 the gradient is 0; integers give floats. Raises ShapeError where no
    window fits.

    >>> fw.nn.functional.lp_pool1d(fw.tensor([[3.0, 4.0, 0.0, 2.0]]), 2, 2)
    tensor([[5., 2.]])
    """
    return _power(1, avg_pool1d, input, norm_type, kernel_size, stride, ceil_mode)


@public("nn.functional", deferred=True)
def lp_pool2d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None,
              ceil_mode: bool = False) -> Tensor:
    """``(sum of x**p over each window)**(1/p)``: (n, c, h, w) or (c, h, w) -> (n, c, h', w').

    The arguments are those of ``lp_pool1d``, sizes a number or one per dimension.

    >>> fw.nn.functional.lp_pool2d(fw.ones(1, 1, 2, 2), 2, 2)
    tensor([[[[2.]]]])
    """
    return _power(2, avg_pool2d, input, norm_type, kernel_size, stride, ceil_mode)


@public("nn.functional")
def lp_pool3d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None,
              ceil_mode: bool = False) -> Tensor:
    """``(sum of x**p over each window)**(1/p)``: (n, c, d, h, w) -> (n, c, d', h', w').

    The arguments are those of ``lp_pool2d``.

    >>> fw.nn.functional.lp_pool3d(fw.ones(1, 1, 2, 2, 2), 1, 2).flatten()
    tensor([8.])
    """
    return _power(3, avg_pool3d, input, norm_type, kernel_size, stride, ceil_mode)


def _unpool(d: int, input: Tensor, indices: Tensor, kernel_size: Any, stride: Any, padding: Any,
            output_size: Any) -> list[Step]:
    op = f"max_unpool{d}d"
    kernel = ntuple(kernel_size, d, op, "kernel_size")
    step = kernel if stride is None or stride in ((), []) else ntuple(stride, d, op, "stride")
    border = ntuple(padding, d, op, "padding")
    if tensor_arg(indices, op, "indices")._array.dtype.kind not in "iu":
        raise DTypeError(f"{op}: indices must hold integers, as max_pool{d}d(return_indices=True) gives "
                         f"them, got {indices.dtype}")
    if tensor_arg(input, op).shape != indices.shape:
        raise ShapeError(f"{op}: input has shape {list(input.shape)} but indices {list(indices.shape)}")
    check_images(real_arg(input, op), d, op)
    usual = [(s - 1) * t - 2 * p + k for s, k, t, p in zip(input.shape[-d:], kernel, step, border)]
    size = usual if output_size is None else list(output_size)[-d:]
    if len(size) != d or any(abs(s - u) >= t for s, u, t in zip(size, usual, step)):
        raise ShapeError(f"{op}: output_size {list(size)} must be less than the stride {list(step)} away "
                         f"from {usual}")
    if have_kernels(input, indices):
        return [(unpool.run, 2, {"d": d, "x_shape": (*input.shape[:-d], *size)})]
    return [(_scattered, 2, {"size": tuple(size), "op": op})]


def _scattered(x: Tensor, indices: Tensor, size: tuple, op: str) -> Tensor:
    lead, total = x.shape[:-len(size)], math.prod(size)
    rows = (*lead, math.prod(x.shape[-len(size):]))
    index: Any = take_shape(indices, rows)
    found = index._array
    told = device_flags.check(found, 0, total, f"{op}: indices must lie in [0, {{last}}], the places of an "
                              f"image of size {list(size)}; found {{value}}")
    if not told and found.size and not 0 <= int(found.min()) <= int(found.max()) < total:
        raise IndexError(f"{op}: indices must lie in [0, {total - 1}], the places of an image of size "
                         f"{list(size)}; they go from {int(found.min())} to {int(found.max())}")
    zeros: Any = x.new_zeros((*lead, total))  # type: ignore[attr-defined]
    return take_shape(scatter(zeros, len(lead), index.long(), take_shape(x, rows)), (*lead, *size))


_unpool1, _unpool2, _unpool3 = [planned(partial(_unpool, d)) for d in (1, 2, 3)]


@public("nn.functional", autocast="float32")
def max_unpool1d(input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0,
                 output_size: Any = None) -> Tensor:
    """Zeros with ``input`` at ``indices``, undoing ``max_pool1d``: (n, c, l) or (c, l) -> (n, c, l').

    indices: those of the pooling. l' = (l - 1) stride - 2 padding + kernel_size unless output_size is given,
    which may end in the size or be all of the shape. Raises IndexError for places outside, ShapeError.

    >>> y, where = fw.nn.functional.max_pool1d(fw.tensor([[1.0, 3.0, 4.0, 2.0]]), 2, return_indices=True)
    >>> fw.nn.functional.max_unpool1d(y, where, 2)
    tensor([[0., 3., 4., 0.]])
    """
    return _unpool1(input, indices, kernel_size, stride, padding, output_size)


@public("nn.functional", autocast="float32")
def max_unpool2d(input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0,
                 output_size: Any = None) -> Tensor:
    """Zeros with ``input`` at ``indices``, undoing ``max_pool2d``: (n, c, h, w) -> (n, c, h', w').

    The arguments are those of ``max_unpool1d``; an index counts along the flattened image.

    >>> fw.nn.functional.max_unpool2d(fw.tensor([[[5.0]]]), fw.tensor([[[3]]]), 2)
    tensor([[[0., 0.],
             [0., 5.]]])
    """
    return _unpool2(input, indices, kernel_size, stride, padding, output_size)


@public("nn.functional", autocast="float32")
def max_unpool3d(input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0,
                 output_size: Any = None) -> Tensor:
    """Zeros with ``input`` at ``indices``, undoing ``max_pool3d``: (n, c, d, h, w) -> (n, c, d', h', w').

    The arguments are those of ``max_unpool1d``.

    >>> fw.nn.functional.max_unpool3d(fw.ones(1, 1, 1, 1), fw.tensor([[[[7]]]]), 2).flatten()
    tensor([0., 0., 0., 0., 0., 0., 0., 1.])
    """
    return _unpool3(input, indices, kernel_size, stride, padding, output_size)
