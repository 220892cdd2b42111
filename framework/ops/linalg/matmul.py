"""Products of matrices: matmul and linear. What is made of them stands in ``products.py``."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ... import dtypes
from ...backends.device_code import is_device_array
from ...backends.native import native_or
from ...dtypes import promote_types
from ...errors import DTypeError, LayoutError, ShapeError
from ...tensor import Tensor
from ..convert.cast import cast
from ..record import autocast
from ..record.aliases import view_maker
from ..record.args import is_foreign, tensor_arg
from ..record.batched import aligned, call, on_tensors
from ..record.op import Meta, Op
from ..record.placing import PlacingOp
from ..record.public import public, run_into
from ..record.rounded import native_or_wide
from ..shape.broadcast import broadcast_shape, sum_to, take_size
from ..shape.view import permute_op, reshape_op
from . import cuda
from .contract import matmul_kernel


def same_dtype(op: str, **tensors: Any) -> list:
    """The tensors, if their dtypes are equal; a product does not promote, so that a float64 batch does
    not turn the training of a float32 model into float64 unnoticed."""
    xs = [tensor_arg(x, op, name) for name, x in tensors.items()]
    for name, x in tensors.items():
        if x.dtype is not xs[0].dtype:
            raise DTypeError(f"{op}: '{next(iter(tensors))}' is {xs[0].dtype} but '{name}' is {x.dtype}; "
                             f"convert one with .to(dtype)")
    return xs


def promoted(op: str, **tensors: Any) -> list:
    """The tensors in their common dtype; raises TypeError by the argument's name."""
    found = None
    for x in tensors.values():
        if type(x) is not Tensor or found is not None and x._array.dtype is not found:
            break
        found = x._array.dtype
    else:
        return list(tensors.values())
    xs = [tensor_arg(x, op, name) for name, x in tensors.items()]
    dtype = xs[0].dtype
    for x in xs[1:]:
        if x.dtype is not dtype:
            dtype = promote_types(dtype, x.dtype)
    return [x if x.dtype is dtype else cast.run(x, dtype=dtype) for x in xs]


def in_one_batch(*xs: Any) -> Any:
    """Matrices whose batches broadcast, each as often as all of them together have one.

    As they are where there is no such batch, which the record will say, and on GPUs, whose functions know
    how to broadcast.
    """
    batches = tuple([x._array.shape[:-2] for x in xs])
    for x in xs:
        if type(x._array) is not np.ndarray:
            return xs
    try:
        batch = broadcast_shape(batches, "")
    except ShapeError:
        return xs
    return [x if own == batch else take_size(x, batch + x._array.shape[-2:]) for x, own in zip(xs, batches)]


_transposed = view_maker("transposed")


def swap_last(x: Any) -> Any:
    """The last two dimensions swapped, for arrays and tensors."""
    seen = _transposed(x, -2, -1, permute_op) if type(x) is Tensor else NotImplemented
    if seen is not NotImplemented:
        return seen
    return permute_op(x, dims=(*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


# -- matmul --------------------------------------------------------------------------------------


def _matmul_infer(x: Meta, y: Meta) -> Meta:
    shapes = f"shapes {list(x.shape)} and {list(y.shape)}"
    if not x.ndim or not y.ndim:
        raise ShapeError(f"matmul: wanted at least 1 dimension on both sides, got {shapes}; use * for "
                         f"numbers")
    inner = y.shape[-2] if y.ndim > 1 else y.shape[0]
    if x.shape[-1] != inner:
        raise ShapeError(
            f"matmul: {shapes} do not fit: the last size of the first is {x.shape[-1]}, the "
            f"{'second last' if y.ndim > 1 else 'only'} size of the second is {inner}, and they must be "
            f"equal; transpose or reshape one")
    batch = broadcast_shape((x.shape[:-2], y.shape[:-2]), "matmul (batch dimensions)")
    return Meta(batch + x.shape[:-1][-1:] + (y.shape[-1:] if y.ndim > 1 else ()), x.dtype)


def _matmul_x(g: Any, y: Any, x_shape: tuple[int, ...]) -> Any:
    if y.ndim == 1:
        return reshape_op(g, shape=(*g.shape, 1)) * y
    if len(x_shape) == 1:
        if y.ndim == 2:
            return matmul_op(y, g)
        column = matmul_op(y, reshape_op(g, shape=(*g.shape, 1)))
        return reshape_op(sum_to(column, size=(x_shape[0], 1)), shape=x_shape)
    gx = matmul_op(g, swap_last(y))
    return gx if gx.shape == x_shape else sum_to(gx, size=x_shape)


def _matmul_y(g: Any, x: Any, y_shape: tuple[int, ...]) -> Any:
    if len(y_shape) == 1:
        if x.ndim == 1:
            return reshape_op(g, shape=(1,)) * x
        return matmul_op(_rows(x, x.shape[-1], vector=True), reshape_op(g, shape=(math.prod(g.shape),)))
    if x.ndim == 1:
        column = reshape_op(x, shape=(x.shape[0], 1))
        gy = column * reshape_op(g, shape=(*g.shape[:-1], 1, g.shape[-1]))
    elif len(y_shape) == 2:
        return matmul_op(swap_last(_rows(x, x.shape[-1])), _rows(g, g.shape[-1]))
    else:
        gy = matmul_op(swap_last(x), g)
    return gy if gy.shape == y_shape else sum_to(gy, size=y_shape)


def _rows(x: Any, width: int, vector: bool = False) -> Any:
    """``x`` as a matrix of rows of ``width``; ``vector``: transposed, so that it meets a vector."""
    if x.ndim != 2:
        x = reshape_op(x, shape=(math.prod(x.shape[:-1]), width))
    return swap_last(x) if vector else x


@on_tensors()
def batch_matmul(op: Op, size: int, arrays: list, batched: tuple, settings: dict) -> Any:
    """The rule for batches: one product where a side is shared, and that of batches of matrices otherwise."""
    (x, y), (own, other) = arrays, batched
    if own and not other and y.ndim < 3:
        return call(op, x, y)
    if other and not own and x.ndim < 3 and (y.ndim == 2 or x.ndim == 1):
        if y.ndim == 2:
            return call(op, y, x if x.ndim == 1 else swap_last(x))
        if y.ndim == 3:
            return call(op, x, y)
    row, column = x.ndim - own == 1, y.ndim - other == 1
    x = x.reshape((*x.shape[:-1], 1, x.shape[-1])) if row else x
    y = y.reshape((*y.shape, 1)) if column else y
    out = call(op, *aligned([x, y], batched))
    if row or column:
        shape = out.shape[:-2] + (() if row else out.shape[-2:-1]) + (() if column else out.shape[-1:])
        out = out.reshape(shape)
    return out


def product_flops(x: tuple, *others: Any, out_shape: tuple) -> int:
    """Two for each product and sum; the last dimension of ``x`` is summed over."""
    return 2 * math.prod(out_shape) * x[-1]


matmul_op = Op("matmul", "x y", onnx="MatMul(x, y)", runtime="matmul(x, y)",
               native="matmul", whole="summed", rounds="matmul", kernel=matmul_kernel, device=cuda.matmul,
               infer=_matmul_infer, jvp="multilinear", vjp={"x": _matmul_x, "y": _matmul_y}, loose_from=3,
               batch=batch_matmul, flops=product_flops)


@public("linalg", op=matmul_op)
@public(method=True, op=matmul_op, autocast="lower", asks=False, deferred=True)
def matmul(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The matrix product ``input @ other``.

    Shapes: (n) @ (n) -> (); (m, n) @ (n) -> (m); (n) @ (n, p) -> (p); (*b, m, n) @ (*b, n, p) ->
    (*b, m, p), where the batch dimensions broadcast. Raises ShapeError where the inner sizes differ,
    DTypeError where the dtypes do.

    >>> fw.matmul(fw.tensor([[1.0, 2.0], [3.0, 4.0]]), fw.tensor([1.0, 10.0]))
    tensor([21., 43.])
    """
    if autocast.used and out is None and (choose := autocast.thread.choose) is not None:
        return choose("lower", matmul, (input, other), {})
    try:
        if not (isinstance(input, Tensor) and isinstance(other, Tensor)
                and input._array.dtype is other._array.dtype):
            if isinstance(other, np.ndarray):
                return np.matmul(input, other)  # by the NumPy protocol, as other @ input is
            input, other = same_dtype("matmul", input=input, other=other)
    except LayoutError:  # a sparse matrix, which has no array
        pass
    if out is None:
        return matmul_op.run(input, other)
    return run_into(matmul_op.run, (input, other), {}, out, "matmul", False, matmul_op)


@public("", method="__matmul__", name="__matmul__", op=matmul_op, autocast="lower", asks=False, deferred=True)
def _matmul(input: Tensor, other: Tensor) -> Tensor:
    """``input @ other``, left to ``other`` if that is no tensor.

    >>> fw.tensor([[1.0, 2.0]]) @ fw.tensor([3.0, 4.0])
    tensor([11.])
    """
    if isinstance(other, Tensor):
        try:
            if input._array.dtype is other._array.dtype and not autocast.used:
                return matmul_op.run(input, other)
        except LayoutError:  # a sparse matrix, which has no array
            pass
    elif is_foreign(other):
        return NotImplemented
    return matmul(input, other)


@public("", method="__rmatmul__", name="rmatmul", deferred=True)
def _rmatmul(input: Tensor, other: Tensor) -> Tensor:
    """``other @ input``.

    >>> fw.tensor([[1.0, 2.0]]).__rmatmul__(fw.tensor([[3.0]]))
    tensor([[3., 6.]])
    """
    return NotImplemented if is_foreign(other) else matmul(other, input)


def _product(op: str, **pair: Any) -> Tensor:
    """``matmul`` of operands of one dtype, under the name of another function."""
    a, b = pair.values()
    if type(a) is type(b) is Tensor and a._array.dtype is b._array.dtype:
        return matmul_op.run(a, b)
    return matmul_op.run(*same_dtype(op, **pair))


def _are_alike(x: Any, ndim: int, y: Any, other: int) -> bool:
    if type(x) is not Tensor or type(y) is not Tensor:
        return False
    a, b = x._array, y._array
    return a.dtype is b.dtype and a.ndim == ndim and b.ndim == other


# whether both are plain tensors of one dtype with so many dimensions
are_alike: Callable = native_or("are_alike", _are_alike)

def of_ndim(op: str, **wanted: tuple[Any, int]) -> None:
    for name, (x, ndim) in wanted.items():
        if type(x) is Tensor and x._array.ndim == ndim:
            continue
        if tensor_arg(x, op, name).ndim != ndim:
            kind = {1: "a vector (1 dimension)", 2: "a matrix (2 dimensions)",
                    3: "a batch of matrices (3 dimensions)"}[ndim]
            raise ShapeError(f"{op}: argument '{name}' must be {kind}, got shape {list(x.shape)}; "
                             f"matmul takes any")


@public(method=True, autocast="lower", asks=False, deferred=True)
def mm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The product of two matrices: (m, n), (n, p) -> (m, p). Raises ShapeError for other shapes.

    >>> fw.mm(fw.tensor([[1.0, 2.0]]), fw.tensor([[3.0], [4.0]]))
    tensor([[11.]])
    """
    if not autocast.used and are_alike(input, 2, mat2, 2):
        return matmul_op.run(input, mat2) if out is None else \
            run_into(matmul_op.run, (input, mat2), {}, out, "mm", False, matmul_op)
    of_ndim("mm", input=(input, 2), mat2=(mat2, 2))
    return matmul(input, mat2, out=out)


@public(method=True, autocast="lower", asks=False, deferred=True)
def bmm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The products of two batches of matrices: (b, m, n), (b, n, p) -> (b, m, p).

    Raises ShapeError for other shapes; batches do not broadcast (matmul does that).

    >>> fw.bmm(fw.ones(2, 1, 3), fw.ones(2, 3, 1)).flatten()
    tensor([3., 3.])
    """
    if not autocast.used and are_alike(input, 3, mat2, 3) and input._array.shape[0] == mat2._array.shape[0]:
        return matmul_op.run(input, mat2) if out is None else \
            run_into(matmul_op.run, (input, mat2), {}, out, "bmm", False, matmul_op)
    of_ndim("bmm", input=(input, 3), mat2=(mat2, 3))
    if input.shape[0] != mat2.shape[0]:
        raise ShapeError(f"bmm: shapes {list(input.shape)} and {list(mat2.shape)} hold {input.shape[0]} and "
                         f"{mat2.shape[0]} matrices, and the numbers must be equal; matmul broadcasts")
    return matmul(input, mat2, out=out)


# -- linear --------------------------------------------------------------------------------------


def _linear_kernel(xp: Any, x: Any, w: Any, b: Any) -> Any:
    if xp is np and x.dtype == np.float16:  # summed up in float32, rounded once
        return _cpu_linear(*[None if a is None else a.astype(np.float32) for a in (x, w, b)]).astype(x.dtype)
    out = xp.matmul(x, w.T) if x.ndim == 2 else matmul_kernel(xp, x, w.T)
    if b is not None:
        out += b
    return out


_cpu_linear = native_or_wide("linear", partial(_linear_kernel, np), "summed")


def _linear_infer(x: Meta, w: Meta, b: Meta | None) -> Meta:
    if not x.ndim or w.ndim != 2 or x.shape[-1] != w.shape[1]:
        raise ShapeError(f"linear: input of shape {list(x.shape)} does not fit a weight of shape "
                         f"{list(w.shape)}: wanted input (*, in) and weight (out, in), with equal 'in'"
                         + (f", got {x.shape[-1]} and {w.shape[1]}" if x.ndim and w.ndim == 2 else ""))
    if b is not None and b.shape not in ((w.shape[0],), (1,), ()):
        raise ShapeError(f"linear: bias of shape {list(b.shape)} does not fit a weight of shape "
                         f"{list(w.shape)}; wanted [{w.shape[0]}]")
    return Meta((*x.shape[:-1], w.shape[0]), x.dtype)


def _linear_w(g: Any, x: Any) -> Any:
    if g.ndim == 1:
        return reshape_op(g, shape=(g.shape[0], 1)) * x
    return matmul_op(swap_last(_rows(g, g.shape[-1])), _rows(x, x.shape[-1]))


@on_tensors()
def batch_linear(op: Op, size: int, arrays: list, batched: tuple, settings: dict) -> Any:
    """The rule for batches: itself where the layer is shared, otherwise a product and a sum."""
    (x, w, b), (own, weights, bias) = arrays, batched
    if not weights and not bias:
        return call(op, x, w, b)
    if not weights:
        x, b = aligned([call(op, x, w, None), b], (own, True))
        return x + b
    lead = x.shape[own:-1]
    x = x.reshape((*x.shape[:own], math.prod(lead), x.shape[-1]))
    out = call(matmul_op, x, swap_last(w))
    if b is not None:
        out = out + (b.reshape((size, 1, b.shape[-1])) if bias else b)
    return out.reshape((size, *lead, out.shape[-1]))


class LinearOp(PlacingOp):
    """On GPUs the gradients of weight and bias are one product, where cuBLASLt takes it."""

    __slots__ = ()

    def pull(self, node: Any, g: Any, edges: tuple, live: bool) -> Any:
        if dtypes.plain or edges[1] is None or edges[2] is None or not is_device_array(g) \
                or node.kept is None or node.kept["b_shape"] != g.shape[-1:]:
            return PlacingOp.pull(self, node, g, edges, live)
        x = node.kept["x"]
        grads = list(PlacingOp.pull(self, node, g, (edges[0], None, None), live))
        both = cuda.linear_gradients(g, x)
        if both is NotImplemented:
            both = PlacingOp.pull(self, node, g, (None, *edges[1:]), live)[1:]
        return [grads[0], *both]


linear_op = LinearOp("linear", "x w b", onnx="linear(x, w, b)", runtime="linear(x, w, b)",
                     native="linear", whole="summed", rounds="linear", kernel=_linear_kernel,
                     device=cuda.linear,
                     infer=_linear_infer, batch=batch_linear,
                     vjp={"x": lambda g, w: matmul_op(g, w), "w": _linear_w,
                          "b": lambda g, b_shape: sum_to(g, size=b_shape)},
                     loose_from=3, flops=product_flops)


@public("nn.functional", op=linear_op, autocast="lower", asks=False, deferred=True)
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``input @ weight.T + bias``: input (*, in), weight (out, in) or (in), bias (out) -> (*, out) or (*).

    Raises ShapeError where the sizes differ, DTypeError where the dtypes do.

    >>> fw.nn.functional.linear(fw.tensor([[1.0, 2.0]]), fw.tensor([[3.0, 4.0], [5.0, 6.0]]))
    tensor([[11., 17.]])
    """
    if autocast.used and (choose := autocast.thread.choose) is not None:
        return choose("lower", linear, (input, weight, bias), {})
    tensor_arg(input, "linear"), tensor_arg(weight, "linear", "weight")
    try:
        dtype = input._array.dtype
        weight._array  # noqa: B018
    except LayoutError:  # a sparse tensor, which has no array
        out = matmul_op.run(input, weight.t() if weight.ndim == 2 else weight)  # type: ignore[attr-defined]
        return out if bias is None else out + bias
    if bias is not None:
        if dtype is not weight._array.dtype or tensor_arg(bias, "linear", "bias")._array.dtype != dtype:
            input, weight, bias = same_dtype("linear", input=input, weight=weight, bias=bias)
    elif dtype is not weight._array.dtype:
        input, weight = same_dtype("linear", input=input, weight=weight)
    if weight.ndim == 1:
        out = matmul_op.run(input, weight)
        return out if bias is None else out + bias  # type: ignore[operator]
    return linear_op.run(input, weight, bias)
