"""Windows of an image as columns, and back: unfold and fold."""

import math
from typing import Any

from ...errors import ShapeError
from ...tensor import Tensor
from ..record.args import ntuple, tensor_arg
from ..record.batched import merged
from ..record.op import Meta, Op
from ..record.planned import Step, planned
from ..record.public import public
from . import cuda
from .conv import at_least, check_images, for_batch
from .windows import column_view, inner, out_sizes, strided, windows


def _unfold_kernel(xp: Any, x: Any, *, kernel: tuple, stride: tuple, padding: tuple,
                   dilation: tuple) -> Any:
    n, c = x.shape[:2]
    at = windows(x.shape[2:], kernel, stride, padding, dilation)._replace(flat=False)
    if any(padding):
        image = xp.zeros((n, c, *at.padded), x.dtype)
        image[(slice(None), slice(None), *inner(at))] = x
        x = image
    view = column_view(xp, xp.ascontiguousarray(x).reshape(-1), n, c, at)
    d = len(kernel)
    columns = view.transpose(d + 1, *range(d + 1), *range(d + 2, 2 * d + 2))
    return xp.ascontiguousarray(columns).reshape(n, c * math.prod(kernel), math.prod(at.out))


def _fold_kernel(xp: Any, y: Any, *, x_shape: tuple, kernel: tuple, stride: tuple, padding: tuple,
                 dilation: tuple) -> Any:
    n, c = x_shape[:2]
    at = windows(x_shape[2:], kernel, stride, padding, dilation)
    columns = y.reshape(n, c, math.prod(kernel), *at.out)
    image = xp.zeros(n * c * at.row, y.dtype)
    for i, offset in enumerate(at.positions):
        target = strided(xp, image, (n, c, *at.out), (c * at.row, at.row, *at.steps), offset)
        target += columns[:, :, i]
    image = image.reshape(n, c, *at.padded)[(slice(None), slice(None), *inner(at))]
    return xp.ascontiguousarray(image)


def _unfold_infer(x: Meta, *, kernel: tuple, stride: tuple, padding: tuple, dilation: tuple) -> Meta:
    out = out_sizes(x.shape[2:], kernel, stride, padding, dilation)
    if min(out) < 1:
        raise ShapeError(f"unfold: a kernel of size {list(kernel)} with dilation {list(dilation)} does not "
                         f"fit into an image of size {list(x.shape[2:])} with padding {list(padding)}")
    return Meta((x.shape[0], x.shape[1] * math.prod(kernel), math.prod(out)), x.dtype)


unfold_op = Op("nn_unfold", "x", onnx="columns(x, kernel, stride, padding, dilation)",
               runtime="columns(x, kernel, stride, padding, dilation)",
               batch=merged(), kernel=_unfold_kernel, native="unfold", infer=_unfold_infer, jvp="linear",
               vjp={"x": lambda g, x_shape, kernel, stride, padding, dilation: fold_op(
                   g, x_shape=x_shape, kernel=kernel, stride=stride, padding=padding, dilation=dilation)})
fold_op = Op("nn_fold", "y", onnx="folded(y, x_shape, kernel, stride, padding, dilation)",
             batch=merged(), kernel=_fold_kernel, native="fold", jvp="linear", device=cuda.fold,
             infer=lambda y, *, x_shape, **settings: Meta(x_shape, y.dtype),
             vjp={"y": lambda g, kernel, stride, padding, dilation: unfold_op(
                 g, kernel=kernel, stride=stride, padding=padding, dilation=dilation)})


def _window_settings(op: str, kernel: Any, dilation: Any, padding: Any, stride: Any) -> dict[str, Any]:
    return {"kernel": at_least(ntuple(kernel, 2, op, "kernel_size"), 1, op, "kernel_size"),
            "stride": at_least(ntuple(stride, 2, op, "stride"), 1, op, "stride"),
            "padding": at_least(ntuple(padding, 2, op, "padding"), 0, op, "padding"),
            "dilation": at_least(ntuple(dilation, 2, op, "dilation"), 1, op, "dilation")}


@public("nn.functional", op=unfold_op, deferred=True)
def unfold(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """The windows of an image as columns: (n, c, h, w) -> (n, c * kh * kw, windows).

    Raises ShapeError where no window fits.

    >>> fw.nn.functional.unfold(fw.arange(9.0).reshape(1, 1, 3, 3), 2)[0, :, 0]
    tensor([0., 1., 3., 4.])
    """
    return _unfold(input, kernel_size, dilation, padding, stride)


@planned
def _unfold(input: Tensor, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> list[Step]:
    alone = check_images(input, 2, "unfold")
    settings = _window_settings("unfold", kernel_size, dilation, padding, stride)
    _unfold_infer(Meta((1, *input.shape) if alone else input.shape, input.dtype), **settings)
    return for_batch(input, alone, (unfold_op.run, 1, settings))


@public("nn.functional", op=fold_op, deferred=True)
def fold(input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0,
         stride: Any = 1) -> Tensor:
    """The sum of windows laid back into an image: (n, c * kh * kw, windows) -> (n, c, h, w).

    The transpose of ``unfold``. Raises ShapeError where the sizes do not belong together.

    >>> fw.nn.functional.fold(fw.ones(1, 4, 4), (3, 3), 2)[0, 0, 1]
    tensor([2., 4., 2.])
    """
    return _fold(input, output_size, kernel_size, dilation, padding, stride)


@planned
def _fold(input: Tensor, output_size: Any, kernel_size: Any, dilation: Any, padding: Any,
          stride: Any) -> list[Step]:
    size = ntuple(output_size, 2, "fold", "output_size")
    settings = _window_settings("fold", kernel_size, dilation, padding, stride)
    alone = tensor_arg(input, "fold").ndim == 2
    shape = (1, *input.shape) if alone else input.shape
    each = math.prod(settings["kernel"])
    out = out_sizes(size, settings["kernel"], settings["stride"], settings["padding"],
                    settings["dilation"])
    if len(shape) != 3 or shape[1] % each or min(out) < 1 or shape[2] != math.prod(out):
        raise ShapeError(f"fold: input of shape {list(shape)} does not fit: wanted (n, c * {each}, "
                         f"{math.prod(out)}) for output_size {list(size)}, {list(out)} windows")
    return for_batch(input, alone, (fold_op.run, 1, {"x_shape": (shape[0], shape[1] // each, *size),
                                                     **settings}))
