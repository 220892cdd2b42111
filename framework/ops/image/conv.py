"""Convolutions in 1, 2 and 3 dimensions, and their transposes.

One family of three records, each linear in both its inputs, whose derivatives are each other:

    conv(x, w)  --dx-->  conv_input_grad(y, w)  (also the transposed convolution)
                --dw-->  conv_weight_grad(x, y)

Each works through the batch in pieces small enough for the cache: it lays the windows of a piece out
as columns (``windows.py``) and multiplies. On the CPU the native kernels, where they are built, read the
windows in place.
"""

import math
from functools import partial
from typing import Any

import numpy as np

from ...errors import ShapeError
from ...memory_formats import laid_as
from ...tensor import Tensor
from ..linalg.matmul import same_dtype
from ..record.args import ntuple, tensor_arg
from ..record.batched import call, front_moved, on_tensors, spread_out, to_front
from ..record.op import Meta, Op
from ..record.placing import PlacingOp
from ..record.planned import Step, planned
from ..record.public import public
from ..record.road import NEVER
from ..reduce.sums import sum_op
from ..shape.slices import grown
from ..shape.view import take_shape
from . import cuda
from .windows import Columns, gradient_columns, inner, out_sizes, piece, result_view, strided, windows


def _for_images(kernel: Any) -> Any:
    """NumPy has no fast half-precision product: compute in float32 there. Images keep their memory format."""
    def run(xp: Any, *arrays: Any, **settings: Any) -> Any:
        if xp is np and arrays[0].dtype == np.float16:
            arrays = tuple(a if a is None else a.astype(np.float32) for a in arrays)
            return laid_as(xp, kernel(xp, *arrays, **settings).astype(np.float16), *arrays[:2])
        return laid_as(xp, kernel(xp, *arrays, **settings), *arrays[:2])
    return run


@_for_images
def _conv_kernel(xp: Any, x: Any, w: Any, b: Any, *, stride: tuple, padding: tuple, dilation: tuple,
                 groups: int) -> Any:
    n, o = x.shape[0], w.shape[0]
    at = windows(x.shape[2:], w.shape[2:], stride, padding, dilation)
    out = xp.empty((n, o, *at.out), x.dtype)
    if b is not None:
        b = b.reshape(-1, *(1,) * len(at.out))
    if not n:
        return out
    columns = Columns(xp, x, at, groups)
    matrix = xp.ascontiguousarray(w).reshape(groups, o // groups, columns.rows)
    memory = xp.empty(o * columns.size * at.length, x.dtype)
    for start, stop in columns.pieces():
        y = memory[:o * (stop - start) * at.length]
        xp.matmul(matrix, columns(start, stop), out=y.reshape(groups, o // groups, -1))
        y = result_view(xp, y, stop - start, o, at)
        if b is None:
            out[start:stop] = y
        else:
            xp.add(y, b, out=out[start:stop])
    return out


@_for_images
def _input_grad_kernel(xp: Any, y: Any, w: Any, *, x_shape: tuple, stride: tuple, padding: tuple,
                       dilation: tuple, groups: int) -> Any:
    n, c = x_shape[:2]
    o, each = w.shape[0], w.shape[1]
    at = windows(x_shape[2:], w.shape[2:], stride, padding, dilation)
    positions = at.positions
    rows = each * len(positions)
    size = piece(xp, n, c * len(positions), at, y.dtype.itemsize)
    columns = gradient_columns(xp, y, at, size)
    matrix = xp.ascontiguousarray(w).reshape(groups, o // groups, rows).transpose(0, 2, 1)
    matrix = xp.ascontiguousarray(  # kernel positions first: each adds one block of channels
        matrix.reshape(groups, each, len(positions), o // groups).transpose(0, 2, 1, 3))
    matrix = matrix.reshape(groups, rows, o // groups)
    spatial, steps = ((at.length,), (1,)) if at.flat else (at.out, at.steps)
    out = xp.empty(x_shape, y.dtype)
    products = xp.empty(groups * rows * size * at.length, y.dtype)
    images = xp.empty(c * size * at.row, y.dtype)
    for start in range(0, n, size):
        count = min(size, n - start)
        product = products[:groups * rows * count * at.length].reshape(groups, rows, -1)
        xp.matmul(matrix, columns(start, start + count).reshape(groups, o // groups, -1), out=product)
        product = product.reshape(groups, len(positions), each, count, *spatial)
        image = images[:c * count * at.row]  # (groups, channels, images, padded...)
        image[...] = 0
        for i, offset in enumerate(positions):
            target = strided(xp, image, (groups, each, count, *spatial),
                           (each * count * at.row, count * at.row, at.row, *steps), offset)
            target += product[:, i]
        image = image.reshape(c, count, *at.padded)[(slice(None),) * 2 + inner(at)]
        out[start:start + count] = image.swapaxes(0, 1)
    return out


@_for_images
def _weight_grad_kernel(xp: Any, x: Any, y: Any, *, w_shape: tuple, stride: tuple, padding: tuple,
                        dilation: tuple, groups: int) -> Any:
    o = w_shape[0]
    at = windows(x.shape[2:], w_shape[2:], stride, padding, dilation)
    if not x.shape[0]:
        return xp.zeros(w_shape, x.dtype)
    columns = Columns(xp, x, at, groups)
    gradients = gradient_columns(xp, y, at, columns.size)
    total: Any = None
    for start, stop in columns.pieces():
        part = gradients(start, stop).reshape(groups, o // groups, -1)
        product = xp.matmul(part, columns(start, stop).swapaxes(1, 2))
        total = product if total is None else total + product
    return total.reshape(w_shape)


# -- the records ---------------------------------------------------------------------------------


def _conv_infer(x: Meta, w: Meta, b: Meta | None = None, *, stride: tuple, padding: tuple,
                dilation: tuple, groups: int) -> Meta:
    d = len(stride)
    name = f"conv{d}d"
    if w.ndim != d + 2 or x.ndim != d + 2:
        raise ShapeError(f"{name}: input of shape {list(x.shape)} and weight of shape {list(w.shape)}: "
                         f"wanted input (batch, channels, {d} sizes), the batch optional, and weight (out, "
                         f"channels/groups, {d} kernel sizes)")
    if x.shape[1] != w.shape[1] * groups or w.shape[0] % groups:
        raise ShapeError(
            f"{name}: weight of shape {list(w.shape)} with groups={groups} takes an input of "
            f"{w.shape[1] * groups} channels and an out size divisible by groups; input has shape "
            f"{list(x.shape)}, {x.shape[1]} channels")
    if b is not None and b.shape != (w.shape[0],):
        raise ShapeError(f"{name}: bias of shape {list(b.shape)} does not fit a weight of shape "
                         f"{list(w.shape)}; wanted [{w.shape[0]}]")
    out = out_sizes(x.shape[2:], w.shape[2:], stride, padding, dilation)
    if min(out) < 1 or min(w.shape[2:]) < 1:
        raise ShapeError(f"{name}: a kernel of size {list(w.shape[2:])} with dilation {list(dilation)} does "
                         f"not fit into an image of size {list(x.shape[2:])} with padding "
                         f"{list(padding)}; enlarge the image or the padding")
    return Meta((x.shape[0], w.shape[0], *out), x.dtype)


def _settings(stride: tuple, padding: tuple, dilation: tuple, groups: int) -> dict[str, Any]:
    return {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}


def _conv_x(g: Any, w: Any, x_shape: tuple, stride: tuple, padding: tuple, dilation: tuple,
            groups: int) -> Any:
    return conv_input_grad(g, w, x_shape=x_shape, **_settings(stride, padding, dilation, groups))


def _conv_w(g: Any, x: Any, w_shape: tuple, stride: tuple, padding: tuple, dilation: tuple,
            groups: int) -> Any:
    return conv_weight_grad(x, g, w_shape=w_shape, **_settings(stride, padding, dilation, groups))


def _conv_b(g: Any) -> Any:
    return sum_op(g, dims=(0, *range(2, g.ndim)), keepdim=False)


def _input_grad_y(g: Any, w: Any, stride: tuple, padding: tuple, dilation: tuple, groups: int) -> Any:
    return conv(g, w, None, **_settings(stride, padding, dilation, groups))


def _input_grad_w(g: Any, y: Any, w_shape: tuple, stride: tuple, padding: tuple, dilation: tuple,
                  groups: int) -> Any:
    return conv_weight_grad(g, y, w_shape=w_shape, **_settings(stride, padding, dilation, groups))


def _weight_grad_x(g: Any, y: Any, x_shape: tuple, stride: tuple, padding: tuple, dilation: tuple,
                   groups: int) -> Any:
    return conv_input_grad(y, g, x_shape=x_shape, **_settings(stride, padding, dilation, groups))


def _weight_grad_y(g: Any, x: Any, stride: tuple, padding: tuple, dilation: tuple, groups: int) -> Any:
    return conv(x, g, None, **_settings(stride, padding, dilation, groups))


# The rules for batches. Where the weights are shared, the batch goes into the images; where each example has
# its own, it goes into the groups (images that all share stay one group with all weights, if it is one).


def _in_images(x: Any) -> Any:
    """(batch, n, c, ...) as (batch * n, c, ...)."""
    return x.reshape((x.shape[0] * x.shape[1], *x.shape[2:]))


def _in_channels(x: Any) -> Any:
    """(batch, n, c, ...) as (n, batch * c, ...)."""
    size, n, c = x.shape[:3]
    return front_moved(x, 1).reshape((n, size * c, *x.shape[3:]))


def _of_channels(x: Any, size: int) -> Any:
    """(n, batch * c, ...) as (batch, n, c, ...)."""
    return to_front(x.reshape((x.shape[0], size, x.shape[1] // size, *x.shape[2:])), 1)


def _of_images(x: Any, size: int) -> Any:
    return x.reshape((size, x.shape[0] // size, *x.shape[1:]))


@on_tensors(lambda batched, settings: not any(batched[1:]))
def batch_conv(op: Op, size: int, arrays: list, batched: tuple, settings: dict) -> Any:
    (x, w, b), (images, weights, bias) = arrays, batched
    if bias and not weights:
        out = call(op, _in_images(x) if images else x, w, None, **settings)
        out = _of_images(out, size) if images else out
        return out + b.reshape((size, 1, b.shape[1], *(1,) * (w.ndim - 2)))
    if not weights:
        return _of_images(call(op, _in_images(x), w, b, **settings), size)
    groups = settings["groups"]
    if not images and groups == 1:
        moved = settings
    else:
        x = _in_channels(x if images else spread_out(x, size))
        moved = {**settings, "groups": size * groups}
    if b is not None:
        b = (b if bias else spread_out(b, size)).reshape((size * w.shape[1],))
    return _of_channels(call(op, x, w.reshape((size * w.shape[1], *w.shape[2:])), b, **moved), size)


def batch_conv_input_grad(op: Op, size: int, arrays: list, batched: tuple, settings: dict) -> Any:
    (y, w), (images, weights) = arrays, batched
    n, c, *rest = settings["x_shape"]
    if not weights:
        return _of_images(call(op, _in_images(y), w, **{**settings, "x_shape": (size * n, c, *rest)}), size)
    y = _in_channels(y if images else spread_out(y, size))
    moved = {**settings, "x_shape": (n, size * c, *rest), "groups": size * settings["groups"]}
    return _of_channels(call(op, y, w.reshape((size * w.shape[1], *w.shape[2:])), **moved), size)


def batch_conv_weight_grad(op: Op, size: int, arrays: list, batched: tuple, settings: dict) -> Any:
    (x, y), (images, results) = arrays, batched
    o, *rest = settings["w_shape"]
    moved = {**settings, "w_shape": (size * o, *rest)}
    if images or settings["groups"] != 1:
        x = _in_channels(x if images else spread_out(x, size))
        moved["groups"] = size * settings["groups"]
    y = _in_channels(y if results else spread_out(y, size))
    return _of_images(call(op, x, y, **moved), size)


def _flops(x: tuple, w: tuple, b: Any, out_shape: tuple) -> int:
    return 2 * math.prod(out_shape) * math.prod(w[1:])


conv = PlacingOp("conv", "x w b", onnx="convolved(x, w, b, stride, padding, dilation, groups)",
                 runtime="conv(x, w, b, stride, padding, dilation, groups)",
                 kernel=_conv_kernel, native="conv", whole="summed", rounds="conv_bf16", infer=_conv_infer,
                 device=cuda.conv,
                 batch=batch_conv,
                 vjp={"x": _conv_x, "w": _conv_w, "b": _conv_b}, loose_from=NEVER, flops=_flops)
conv_input_grad = Op("conv_input_grad", "y w",
                     onnx="transposed(y, w, x_shape, stride, padding, dilation, groups)",
                     runtime="transposed(y, w, x_shape, stride, padding, dilation, groups)",
                     kernel=_input_grad_kernel, native="conv_input_grad", whole="summed",
                     device=cuda.conv_input_grad,
                     batch=batch_conv_input_grad,
                     rounds="conv_input_grad_bf16",
                     jvp="multilinear", infer=lambda y, w, *, x_shape, **settings: Meta(x_shape, y.dtype),
                     vjp={"y": _input_grad_y, "w": _input_grad_w}, loose_from=NEVER)
conv_weight_grad = Op("conv_weight_grad", "x y", kernel=_weight_grad_kernel, native="conv_weight_grad",
                      device=cuda.conv_weight_grad,
                      batch=batch_conv_weight_grad,
                      rounds="conv_weight_grad_bf16",
                      jvp="multilinear", infer=lambda x, y, *, w_shape, **settings: Meta(w_shape, x.dtype),
                      vjp={"x": _weight_grad_x, "y": _weight_grad_y}, loose_from=NEVER)


# -- the public functions ------------------------------------------------------------------------


def at_least(values: tuple[int, ...], low: int, op: str, name: str) -> tuple[int, ...]:
    """The values if none is below ``low``, else a ValueError."""
    if min(values) < low:
        raise ValueError(f"{op}: {name} must be at least {low}, got {list(values)}")
    return values


def _groups(groups: Any, op: str) -> int:
    if isinstance(groups, bool) or not hasattr(groups, "__index__") or groups < 1:
        raise ValueError(f"{op}: groups must be a positive int, got {groups!r}")
    return int(groups)


def batched(x: Tensor, d: int, op: str) -> tuple[Tensor, bool]:
    """``x`` with a batch dimension, and whether it was added; x has ``d`` spatial dimensions."""
    alone = check_images(x, d, op)
    return take_shape(x, (1, *x.shape)) if alone else x, alone


def check_images(x: Tensor, d: int, op: str) -> bool:
    """Whether ``x`` is one image of ``d`` sizes, and no batch of them; ShapeError if it is neither."""
    ndim = tensor_arg(x, op).ndim
    if ndim not in (d + 1, d + 2):
        raise ShapeError(f"{op}: wanted input of {d + 2} dimensions (batch, channels, {d} sizes), or {d + 1} "
                         f"without the batch, got shape {list(x.shape)}")
    return ndim == d + 1


def for_batch(x: Tensor, alone: bool, *steps: Step) -> list[Step]:
    """The steps, made for images in batches, for ``x``, which may be one without a batch."""
    return [(take_shape, 1, {"shape": (1, *x.shape)}), *steps, (_only, 1, {})] if alone else list(steps)


def _only(x: Tensor) -> Tensor:
    """The image of a batch of one."""
    return take_shape(x, x.shape[1:])


def _same_padding(w: Tensor, padding: str, stride: tuple, dilation: tuple,
                  op: str) -> tuple[list[int], tuple[int, ...]]:
    """Padding by name, and what x gets first where a side needs one more than the other."""
    if padding == "valid":
        return [], (0,) * len(stride)
    if padding != "same":
        raise ValueError(f"{op}: padding must be an int, ints, 'valid' or 'same', got {padding!r}")
    if any(s != 1 for s in stride):
        raise ValueError(f"{op}: padding='same' needs stride 1, got {list(stride)}")
    total = [d * (k - 1) for d, k in zip(dilation, w.shape[2:])]
    return [t % 2 for t in total], tuple(t // 2 for t in total)


def _convolve(d: int, x: Tensor, w: Tensor, b: Tensor | None, stride: Any, padding: Any, dilation: Any,
              groups: Any) -> list[Step]:
    op = f"conv{d}d"
    x, w, b = _operands(op, x, w, b)
    alone = check_images(x, d, op)
    shape = (1, *x.shape) if alone else x.shape
    before: list[Step] = []
    stride = at_least(ntuple(stride, d, op, "stride"), 1, op, "stride")
    dilation = at_least(ntuple(dilation, d, op, "dilation"), 1, op, "dilation")
    if isinstance(padding, str):
        more, padding = _same_padding(w, padding, stride, dilation, op)
        if any(more):
            shape = (*shape[:2], *[s + m for s, m in zip(shape[2:], more)])
            before.append((grown, 1, {"more": more}))
    padding = at_least(ntuple(padding, d, op, "padding"), 0, op, "padding")
    settings = _settings(stride, padding, dilation, _groups(groups, op))
    _conv_infer(Meta(shape, x.dtype), Meta(w.shape, w.dtype),
                None if b is None else Meta(b.shape, b.dtype), **settings)
    return for_batch(x, alone, *before, (conv.run, 3, settings))


_conv1, _conv2, _conv3 = [planned(partial(_convolve, d)) for d in (1, 2, 3)]


def _operands(op: str, x: Tensor, w: Tensor, b: Tensor | None) -> tuple:
    dtype = tensor_arg(x, op)._array.dtype
    if tensor_arg(w, op, "weight")._array.dtype is dtype and (
            b is None or tensor_arg(b, op, "bias")._array.dtype is dtype):
        return x, w, b
    if b is None:
        return (*same_dtype(op, input=x, weight=w), None)
    return tuple(same_dtype(op, input=x, weight=w, bias=b))


@public("nn.functional", op=conv, autocast="lower", deferred=True)
def conv1d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
           dilation: Any = 1, groups: int = 1) -> Tensor:
    """Convolution (as in neural networks: without flipping the kernel) over one dimension.

    ``y[n, o, i] = bias[o] + sum over c, k of weight[o, c, k] * input[n, c, i * stride + k * dilation]``.
    Shapes: input (n, c, l) or (c, l), weight (o, c/groups, k), bias (o) -> (n, o, l'), l' =
    (l + 2 padding - dilation (k - 1) - 1) // stride + 1. padding: a number, "valid" or "same".
    Raises ShapeError where sizes do not fit.

    >>> fw.nn.functional.conv1d(fw.tensor([[[1.0, 2.0, 4.0]]]), fw.tensor([[[-1.0, 1.0]]]))
    tensor([[[1., 2.]]])
    """
    return _conv1(input, weight, bias, stride, padding, dilation, groups)


@public("nn.functional", autocast="lower", deferred=True)
def conv2d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
           dilation: Any = 1, groups: int = 1) -> Tensor:
    """Convolution over images: input (n, c, h, w) or (c, h, w), weight (o, c/groups, kh, kw), bias (o).

    The formula is that of ``conv1d``, over two dimensions; stride, padding and dilation are a number or
    one per dimension. Gives (n, o, h', w'). Raises ShapeError where sizes do not fit.

    >>> fw.nn.functional.conv2d(fw.ones(1, 1, 3, 3), fw.ones(1, 1, 2, 2), padding=1).shape
    (1, 1, 4, 4)
    """
    return _conv2(input, weight, bias, stride, padding, dilation, groups)


@public("nn.functional", autocast="lower", deferred=True)
def conv3d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
           dilation: Any = 1, groups: int = 1) -> Tensor:
    """Convolution over volumes: input (n, c, d, h, w) or (c, d, h, w), weight (o, c/groups, kd, kh, kw).

    The formula is that of ``conv1d``, over three dimensions. Raises ShapeError where sizes do not fit.

    >>> fw.nn.functional.conv3d(fw.ones(1, 1, 3, 3, 3), fw.ones(2, 1, 2, 2, 2)).shape
    (1, 2, 2, 2, 2)
    """
    return _conv3(input, weight, bias, stride, padding, dilation, groups)


def _transposed(d: int, x: Tensor, w: Tensor, b: Tensor | None, stride: Any, padding: Any,
                output_padding: Any, groups: Any, dilation: Any) -> list[Step]:
    op = f"conv_transpose{d}d"
    x, w, b = _operands(op, x, w, b)
    alone = check_images(x, d, op)
    shape = (1, *x.shape) if alone else x.shape
    stride = at_least(ntuple(stride, d, op, "stride"), 1, op, "stride")
    dilation = at_least(ntuple(dilation, d, op, "dilation"), 1, op, "dilation")
    padding = at_least(ntuple(padding, d, op, "padding"), 0, op, "padding")
    extra = at_least(ntuple(output_padding, d, op, "output_padding"), 0, op, "output_padding")
    groups = _groups(groups, op)
    if any(e >= max(s, i) for e, s, i in zip(extra, stride, dilation)):
        raise ValueError(f"{op}: output_padding {list(extra)} must be smaller than stride {list(stride)} or "
                         f"dilation {list(dilation)}")
    if w.ndim != d + 2 or w.shape[0] != shape[1] or w.shape[0] % groups:
        raise ShapeError(f"{op}: weight of shape {list(w.shape)} with groups={groups} does not fit x of "
                         f"shape {list(shape)}: wanted weight (channels, out/groups, {d} kernel sizes), "
                         f"channels {shape[1]}, divisible by groups")
    channels = w.shape[1] * groups
    if b is not None and b.shape != (channels,):
        raise ShapeError(f"{op}: bias of shape {list(b.shape)} does not fit {channels} output channels; "
                         f"wanted [{channels}]")
    size = tuple((i - 1) * s - 2 * p + t * (k - 1) + e + 1 for i, s, p, t, k, e in
                 zip(shape[2:], stride, padding, dilation, w.shape[2:], extra))
    if min(size) < 1:
        raise ShapeError(f"{op}: input of shape {list(shape)} with padding {list(padding)} gives no output "
                         f"(sizes {list(size)}); lower the padding")
    before: list[Step] = []
    if any(more := [e // s for e, s in zip(extra, stride)]):  # whole steps are windows of zeros
        before.append((grown, 1, {"more": more}))
    after: list[Step] = [] if b is None else [(_with_bias, 3, {})]
    settings = _settings(stride, padding, dilation, groups)
    return for_batch(x, alone, *before,
                     (conv_input_grad.run, 2, {"x_shape": (shape[0], channels, *size), **settings}), *after)


def _with_bias(y: Any, w: Tensor, b: Tensor) -> Tensor:
    return y + take_shape(b, (*b.shape, *(1,) * (y.ndim - 2)))


_transposed1, _transposed2, _transposed3 = [planned(partial(_transposed, d)) for d in (1, 2, 3)]


@public("nn.functional", op=conv_input_grad, autocast="lower", deferred=True)
def conv_transpose1d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1,
                     padding: Any = 0, output_padding: Any = 0, groups: int = 1,
                     dilation: Any = 1) -> Tensor:
    """Transposed convolution: the gradient of ``conv1d`` with respect to its input, as a map.

    Every element of input adds a copy of the kernel, times itself, to the output. Shapes: input (n, c, l) or
    (c, l), weight (c, o/groups, k), bias (o) -> (n, o, l'), l' = (l - 1) stride - 2 padding +
    dilation (k - 1) + output_padding + 1. Raises ShapeError where sizes do not fit.

    >>> fw.nn.functional.conv_transpose1d(fw.tensor([[[1.0, 2.0]]]), fw.tensor([[[1.0, 10.0]]]))
    tensor([[[ 1., 12., 20.]]])
    """
    return _transposed1(input, weight, bias, stride, padding, output_padding, groups, dilation)


@public("nn.functional", autocast="lower", deferred=True)
def conv_transpose2d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1,
                     padding: Any = 0, output_padding: Any = 0, groups: int = 1,
                     dilation: Any = 1) -> Tensor:
    """Transposed convolution over images: input (n, c, h, w), weight (c, o/groups, kh, kw), bias (o).

    See ``conv_transpose1d``.

    >>> fw.nn.functional.conv_transpose2d(fw.ones(1, 1, 2, 2), fw.ones(1, 1, 2, 2), stride=2).shape
    (1, 1, 4, 4)
    """
    return _transposed2(input, weight, bias, stride, padding, output_padding, groups, dilation)


@public("nn.functional", autocast="lower", deferred=True)
def conv_transpose3d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1,
                     padding: Any = 0, output_padding: Any = 0, groups: int = 1,
                     dilation: Any = 1) -> Tensor:
    """Transposed convolution over volumes: input (n, c, d, h, w), weight (c, o/groups, kd, kh, kw).

    See ``conv_transpose1d``.

    >>> fw.nn.functional.conv_transpose3d(fw.ones(1, 1, 1, 2, 2), fw.ones(1, 1, 2, 2, 2)).shape
    (1, 1, 2, 3, 3)
    """
    return _transposed3(input, weight, bias, stride, padding, output_padding, groups, dilation)
