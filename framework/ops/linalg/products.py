"""Products made of ``matmul``: of vectors, with a sum, over chosen dimensions; cross and Kronecker ones."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import _native
from ...dtypes import FLOATING
from ...errors import ShapeError
from ...quiet import quiet
from ...tensor import Tensor
from ..language.cuda import DeviceKernel
from ..language.program import native_kernel
from ..pointwise.arithmetic import add_op, mul_op, plus_product
from ..pointwise.complex_numbers import conj
from ..record import autocast
from ..record.args import of_one_dtype, one_dim, tensor_arg
from ..record.autocast import by_place
from ..record.batched import rowwise
from ..record.into import Call
from ..record.op import Meta, Op
from ..record.planned import Step, planned
from ..record.public import public
from ..reduce.sums import as_summed, sum_op
from ..shape.alone import as_column
from ..shape.broadcast import broadcast_shape, sum_to
from ..shape.view import take_order, take_shape
from .matmul import _product, are_alike, bmm, matmul_op, mm, of_ndim, promoted, same_dtype


@public(method=True, out=True, autocast=by_place("lower"), asks=False, deferred=True)
def mv(input: Tensor, vec: Tensor) -> Tensor:
    """A matrix times a vector: (m, n), (n) -> (m). Raises ShapeError for other shapes.

    >>> fw.mv(fw.tensor([[1.0, 2.0], [3.0, 4.0]]), fw.tensor([1.0, 1.0]))
    tensor([3., 7.])
    """
    if autocast.used:
        input, vec = autocast.on_a_gpu("lower", input, vec)
    if are_alike(input, 2, vec, 1):
        return matmul_op.run(input, vec)
    of_ndim("mv", input=(input, 2), vec=(vec, 1))
    return _product("mv", input=input, vec=vec)


def _are_vectors(x: Any, y: Any) -> bool:
    """Whether both are vectors of one dtype and one length."""
    if type(x) is not Tensor or type(y) is not Tensor:
        return False
    a, b = x._array, y._array
    return a.ndim == 1 and a.dtype is b.dtype and a.shape == b.shape


@public(method=True, out=True, autocast=by_place("widest"), asks=False)
def vdot(input: Tensor, other: Tensor) -> Tensor:
    """The inner product ``sum(conj(input) * other)`` of two vectors: (n), (n) -> ().

    Raises ShapeError for other shapes.

    >>> fw.vdot(fw.tensor([1j, 2.0]), fw.tensor([1j, 3.0]))
    tensor(7.+0.j)
    """
    if autocast.used:
        input, other = autocast.on_a_gpu("widest", input, other)
    if _are_vectors(input, other) and input._array.dtype.kind != "c":
        return matmul_op.run(input, other)
    of_ndim("vdot", input=(input, 1), other=(other, 1))
    return _product("vdot", input=conj(input), other=other)


@public(method=True, out=True, also="other=tensor", autocast=by_place("widest"), asks=False,
        deferred=True)
def dot(input: Tensor, tensor: Tensor) -> Tensor:
    """The sum of the products of two vectors' elements: (n), (n) -> (); none is conjugated, see ``vdot``.

    Raises ShapeError for other shapes.

    >>> fw.dot(fw.tensor([1.0, 2.0]), fw.tensor([3.0, 4.0]))
    tensor(11.)
    """
    if autocast.used:
        input, tensor = autocast.on_a_gpu("widest", input, tensor)
    if _are_vectors(input, tensor):
        return matmul_op.run(input, tensor)
    of_ndim("dot", input=(input, 1), tensor=(tensor, 1))
    if input.shape != tensor.shape:
        raise ShapeError(f"dot: input has {input.shape[0]} elements and tensor {tensor.shape[0]}; they must "
                         f"be equally many")
    return _product("dot", input=input, tensor=tensor)


@public(method="outer ger", alias="ger", out=True, deferred=True)
def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """All products of two vectors' elements: (m), (n) -> (m, n). Raises ShapeError for other shapes.

    >>> fw.outer(fw.tensor([1.0, 2.0]), fw.tensor([3.0, 4.0]))
    tensor([[3., 4.],
            [6., 8.]])
    """
    if not are_alike(input, 1, vec2, 1):
        of_ndim("outer", input=(input, 1), vec2=(vec2, 1))
        input, vec2 = promoted("outer", input=input, vec2=vec2)
    return mul_op.run(as_column(input), vec2)


@public(method=True, out=True, autocast=by_place("widest", "lower"), deferred=True)
def inner(input: Tensor, other: Tensor) -> Tensor:
    """Sums over the last dimension of both: (*a, n), (*b, n) -> (*a, *b); numbers multiply.

    >>> fw.inner(fw.tensor([[1.0, 2.0], [3.0, 4.0]]), fw.tensor([1.0, 10.0]))
    tensor([21., 43.])
    """
    input, other = same_dtype("inner", input=input, other=other)
    if not input.ndim or not other.ndim:
        return input * other  # type: ignore[operator]
    if input.shape[-1] != other.shape[-1]:
        raise ShapeError(f"inner: the last sizes of shapes {list(input.shape)} and {list(other.shape)} are "
                         f"{input.shape[-1]} and {other.shape[-1]}, and they must be equal")
    if input.ndim == 1 and other.ndim == 1:
        return matmul_op.run(input, other)
    return tensordot(input, other, dims=([-1], [-1]))


def _plus_product(op: str, x: Tensor, product: Tensor, beta: Any, alpha: Any) -> Tensor:
    """``beta * x + alpha * product``; with beta 0 nothing of ``x`` counts, nan included."""
    own, shape = tensor_arg(x, op)._array.shape, product._array.shape
    if own != shape and not _expands(own, shape):
        raise ShapeError(f"{op}: x of shape {list(x.shape)} does not expand to that of the product, "
                         f"{list(product.shape)}")
    if alpha != 1:
        product = product * alpha  # type: ignore[operator]
    if beta == 0:
        return product
    return add_op.run(x if beta == 1 else x * beta, product)  # type: ignore[operator]


# x + first @ second where they are of one dtype and so many dimensions each, and nothing is scaled
_added = getattr(_native.module, "product_added", lambda *args: NotImplemented)


def _expands(own: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    behind = len(shape) - len(own)
    if behind < 0:
        return False
    for n, m in zip(own, shape[behind:]):  # noqa: SIM110 - a generator would take twice as long
        if n != 1 and n != m:
            return False
    return True


def _sum_call(ndim: int, other: int) -> Callable:
    """The call that adds a product of operands of so many dimensions, which goes straight into memory."""
    def call(input: Tensor, first: Any, second: Any, *, beta: Any = 1, alpha: Any = 1) -> Call | None:
        if type(beta) is type(alpha) is int and beta == alpha == 1 and not autocast.used \
                and are_alike(first, ndim, second, other) and of_one_dtype(input, first) is True:
            return add_op, (input, matmul_op.run(first, second)), {}
        return None
    return call


@public(method=True, inplace=True, out=True, autocast="lower", deferred=True, call=_sum_call(2, 2))
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """``beta * input + alpha * mat1 @ mat2``: (m, n), (n, p) -> (m, p), to which input expands.

    >>> fw.addmm(fw.ones(1), fw.tensor([[1.0, 2.0]]), fw.tensor([[3.0], [4.0]]))
    tensor([[12.]])
    """
    if not autocast.used:
        added = _added(matmul_op, add_op, input, mat1, 2, mat2, 2, beta, alpha)
        if added is not NotImplemented:
            return added  # type: ignore[no-any-return]
    return _plus_product("addmm", input, mm(mat1, mat2), beta, alpha)


@public(method=True, inplace=True, out=True, autocast=by_place("lower"), call=_sum_call(2, 1))
def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """``beta * input + alpha * mat @ vec``: (m, n), (n) -> (m), to which input expands.

    >>> fw.addmv(fw.ones(1), fw.tensor([[1.0, 2.0]]), fw.tensor([3.0, 4.0]))
    tensor([12.])
    """
    if not autocast.used:
        added = _added(matmul_op, add_op, input, mat, 2, vec, 1, beta, alpha)
        if added is not NotImplemented:
            return added  # type: ignore[no-any-return]
    return _plus_product("addmv", input, mv(mat, vec), beta, alpha)


@public(method=True, inplace=True, out=True, autocast=by_place("lower"))
def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """``beta * input + alpha * outer(vec1, vec2)``: (m), (n) -> (m, n), to which input expands.

    >>> fw.addr(fw.ones(1, 2), fw.tensor([1.0]), fw.tensor([3.0, 4.0]))
    tensor([[4., 5.]])
    """
    if are_alike(vec1, 1, vec2, 1) and beta == 1 and type(alpha) in (int, float) and type(input) is Tensor:
        own, vector = input._array, vec1._array
        if own.dtype is vector.dtype and own.dtype.kind in FLOATING \
                and own.shape == (vector.size, vec2._array.size):
            return plus_product.run(input, as_column(vec1), vec2, value=alpha)
    return _plus_product("addr", input, outer(vec1, vec2), beta, alpha)


@public(method=True, inplace=True, out=True, autocast="lower", deferred=True)
def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """``beta * input + alpha * bmm(batch1, batch2)``: (b, m, n), (b, n, p) -> (b, m, p).

    >>> fw.baddbmm(fw.ones(1), fw.ones(2, 1, 3), fw.ones(2, 3, 1)).flatten()
    tensor([4., 4.])
    """
    if not autocast.used and are_alike(batch1, 3, batch2, 3) \
            and batch1._array.shape[0] == batch2._array.shape[0]:
        added = _added(matmul_op, add_op, input, batch1, 3, batch2, 3, beta, alpha)
        if added is not NotImplemented:
            return added  # type: ignore[no-any-return]
    return _plus_product("baddbmm", input, bmm(batch1, batch2), beta, alpha)


@public(method=True, inplace=True, out=True, autocast="lower")
def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """``beta * input + alpha * sum over b of batch1[b] @ batch2[b]``: (b, m, n), (b, n, p) -> (m, p).

    >>> fw.addbmm(fw.ones(1), fw.ones(2, 1, 3), fw.ones(2, 3, 1))
    tensor([[7.]])
    """
    product = sum_op.run(bmm(batch1, batch2), dims=(0,), keepdim=False)
    return _plus_product("addbmm", input, product, beta, alpha)


@planned
def _tensordot(a: Tensor, b: Tensor, dims: Any) -> list[Step]:
    a, b = same_dtype("tensordot", a=a, b=b)
    if isinstance(dims, (tuple, list)):
        first, second = (d if isinstance(d, (tuple, list)) else [d] for d in dims)
    else:
        if not 0 <= dims <= min(a.ndim, b.ndim):
            raise ValueError(f"tensordot: dims={dims} must be between 0 and the tensors' dimensions, "
                             f"{a.ndim} and {b.ndim}")
        first, second = list(range(a.ndim - dims, a.ndim)), list(range(dims))
    m = [one_dim(d, a.ndim, "tensordot", "dims[0]") for d in first]
    n = [one_dim(d, b.ndim, "tensordot", "dims[1]") for d in second]
    one_a = tuple(d for d, e in zip(m, n) if a.shape[d] == 1 != b.shape[e])  # repeated along the other's size
    one_b = tuple(e for d, e in zip(m, n) if b.shape[e] == 1 != a.shape[d])
    summed_a = tuple(sorted(d for d, e in zip(m, n) if e in one_b))
    summed_b = tuple(sorted(e for d, e in zip(m, n) if d in one_a))
    shape_a = [1 if d in summed_a else s for d, s in enumerate(a.shape)]
    shape_b = [1 if d in summed_b else s for d, s in enumerate(b.shape)]
    if [shape_a[d] for d in m] != [shape_b[d] for d in n]:
        raise ShapeError(f"tensordot: dims {m} of shape {shape_a} have sizes "
                         f"{[shape_a[d] for d in m]}, dims {n} of shape {shape_b} have sizes "
                         f"{[shape_b[d] for d in n]}, and they must be equal")
    rows = [d for d in range(a.ndim) if d not in m]
    columns = [d for d in range(b.ndim) if d not in n]
    size = math.prod(shape_a[d] for d in m)
    rest_a, rest_b = tuple(shape_a[d] for d in rows), tuple(shape_b[d] for d in columns)
    return [(_contracted, 2, {
        "left": (summed_a, (*rows, *m), (math.prod(rest_a), size)),
        "right": (summed_b, (*n, *columns), (size, math.prod(rest_b))), "shape": rest_a + rest_b})]


def _contracted(a: Tensor, b: Tensor, *, left: tuple, right: tuple, shape: tuple[int, ...]) -> Tensor:
    return take_shape(matmul_op.run(_as_matrix(a, *left), _as_matrix(b, *right)), shape)


def _as_matrix(x: Tensor, summed: tuple[int, ...], order: tuple[int, ...], shape: tuple[int, int]) -> Tensor:
    x = sum_op.run(x, dims=summed, keepdim=True) if summed else x
    return take_shape(x if order == _ORDERS[:len(order)] else take_order(x, order), shape)


_ORDERS = tuple(range(64))


@public(out=True, autocast=by_place("widest", "lower"), deferred=True)
def tensordot(a: Tensor, b: Tensor, dims: Any = 2) -> Tensor:
    """Sums over pairs of dimensions: the last ``dims`` of ``a`` with the first of ``b``, or two lists.

    Raises ShapeError where paired sizes differ and none is 1, which counts as repeated.

    >>> fw.tensordot(fw.ones(2, 3, 4), fw.ones(3, 4, 5), dims=2).shape
    (2, 5)
    """
    return _tensordot(a, b, dims)


def _cross_infer(x: Meta, y: Meta, *, dim: int) -> Meta:
    return Meta(broadcast_shape((x.shape, y.shape), "cross"), x.dtype)


_crossed = native_kernel("a * b - c * d", ("a", "b", "c", "d"), lambda a, b, c, d: a * b - c * d)


_crossed_on_device = DeviceKernel("a * b - c * d", ("a", "b", "c", "d"), lambda a, b, c, d: a * b - c * d)


def _cross_kernel(xp: Any, x: Any, y: Any, *, dim: int) -> Any:
    behind = -dim - 1
    keys = [(Ellipsis, i, *(slice(None),) * behind) for i in range(3)]
    (a, b, c), (d, e, f) = [x[key] for key in keys], [y[key] for key in keys]
    shape = a.shape if a.shape == d.shape else np.broadcast_shapes(a.shape, d.shape)
    at = len(shape) - behind
    out = xp.empty((*shape[:at], 3, *shape[at:]), x.dtype)
    for key, factors in zip(keys, ((b, f, c, e), (c, d, a, f), (a, e, b, d))):
        out[key] = (_crossed if xp is np else _crossed_on_device)(*factors)
    return out


cross_op = Op("cross", "x y", batch=rowwise, kernel=_cross_kernel, native="cross", whole="summed",
              infer=_cross_infer, jvp="multilinear",
              vjp={"x": lambda g, y, x_shape, dim: sum_to(cross_op(y, g, dim=dim), size=x_shape),
                   "y": lambda g, x, y_shape, dim: sum_to(cross_op(g, x, dim=dim), size=y_shape)})


@public("linalg", name="cross", out=True, deferred=True)
def _linalg_cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """The cross product of vectors of 3 elements along ``dim``; the other dimensions broadcast.

    >>> fw.linalg.cross(fw.tensor([1.0, 0.0, 0.0]), fw.tensor([0.0, 1.0, 0.0]))
    tensor([0., 0., 1.])
    """
    if of_one_dtype(input, other) is not True:
        input, other = promoted("cross", input=input, other=other)
    own = input._array
    at = one_dim(dim, own.ndim, "cross")
    if own.shape == other._array.shape and own.shape[at] == 3:
        return cross_op.run(input, other, dim=at - own.ndim)
    if input.ndim != other.ndim or input.shape[at] != 3 or other.shape[at] != 3:
        raise ShapeError(f"cross: wanted two tensors of equally many dimensions with size 3 at dim={dim}, "
                         f"got shapes {list(input.shape)} and {list(other.shape)}")
    return cross_op.run(input, other, dim=at - input.ndim)


@public(method=True, op=cross_op, out=True, deferred=True)
def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """The cross product of vectors of 3 elements along ``dim`` (default: the first of size 3).

    >>> fw.cross(fw.tensor([1.0, 0.0, 0.0]), fw.tensor([0.0, 1.0, 0.0]))
    tensor([0., 0., 1.])
    """
    if dim is None:
        sizes = tensor_arg(input, "cross")._array.shape
        dim = sizes.index(3) if 3 in sizes else -1
    return _linalg_cross(input, other, dim=dim)


@public("linalg", out=True, autocast="lower")
def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """The dot products ``sum(conj(x) * y)`` along ``dim``; shapes broadcast.

    >>> fw.linalg.vecdot(fw.tensor([1.0, 2.0]), fw.tensor([3.0, 4.0]))
    tensor(11.)
    """
    a, b = promoted("vecdot", x=x, y=y)
    product = mul_op.run(conj(a) if a._array.dtype.kind == "c" else a, b)
    at = one_dim(dim, product._array.ndim, "vecdot")
    return sum_op.run(as_summed(product, None, "vecdot"), dims=(at,), keepdim=False)


def _blocks(x: Tensor, y: Tensor, wide: tuple, tall: tuple, shape: tuple) -> Tensor:
    return take_shape(take_shape(x, wide) * take_shape(y, tall), shape)  # type: ignore[operator]


@planned
def _kron(x: Tensor, y: Tensor) -> list[Step]:
    ndim = max(tensor_arg(x, "kron").ndim, tensor_arg(y, "kron", "other").ndim)
    shapes = [(1,) * (ndim - t.ndim) + t.shape for t in (x, y)]
    wide, tall = [tuple([s for n in shape for s in ((n, 1) if shape is shapes[0] else (1, n))])
                  for shape in shapes]
    return [(_blocks, 2, {"wide": wide, "tall": tall, "shape": tuple([a * b for a, b in zip(*shapes)])})]


@public(method=True, out=True, deferred=True)
def kron(input: Tensor, other: Tensor) -> Tensor:
    """The Kronecker product: every element of ``input`` times the whole of ``other``, as blocks.

    >>> fw.kron(fw.tensor([1, 10]), fw.tensor([1, 2]))
    tensor([ 1,  2, 10, 20])
    """
    if type(input) is Tensor is type(other) and input._node is other._node is None and quiet.run is not None:
        a, b = input._array, other._array
        if type(a) is np.ndarray and a.dtype is b.dtype and (a.dtype.kind in FLOATING or a.dtype.char == "l"):
            return kron_op.run(input, other)
    return _kron(input, other)


def _kron_kernel(xp: Any, x: Any, y: Any) -> Any:
    return xp.kron(x, y)


# of numbers on the CPU, in no graph
kron_op = Op("kron", "x y", kernel=_kron_kernel, native="kron", infer=lambda x, y: Meta(tuple(
    a * b for a, b in zip(*[(1,) * (max(x.ndim, y.ndim) - t.ndim) + t.shape for t in (x, y)])), x.dtype))
