"""Distances between vectors, and vectors scaled to length 1."""

import math
from typing import Any

import numpy as np

from ... import _native
from ...backends import device_code
from ...backends.sums import add_at
from ...dtypes import float16, float32
from ...errors import ShapeError
from ...tensor import Tensor
from ..convert.cast import cast, from_array
from ..language.elementwise import Elementwise
from ..language.program import SLICES, in_slices, native_kernel
from ..pointwise.arithmetic import sub_op
from ..pointwise.choose import clamp_min, clamp_min_op, where_op
from ..pointwise.elementary import sqrt
from ..record import autocast
from ..record.args import floating, of_one_dtype, one_dim, real_arg, tensor_arg
from ..record.batched import along
from ..record.op import Meta, Op
from ..record.planned import Step, have_kernels, planned
from ..record.public import public
from ..record.road import NEVER
from ..reduce.extremes import amax
from ..reduce.sums import sum_op
from ..reduce.vector_norm import norm_op, p_norm, vector_norm
from ..shape.broadcast import broadcast_shape, expand
from ..shape.diagonals import triangle_places
from ..shape.view import take_shape
from ..write.twice import twice
from . import cuda
from .matmul import promoted


def _p_norm(x: Any, p: float, dim: int, keepdim: bool) -> Any:
    """``(sum |x|**p)**(1/p)`` along one dimension; the gradient at 0 is 0. float16 is summed in float32."""
    if x.dtype is float16:
        return cast.run(_p_norm(cast.run(x, dtype=float32), p, dim, keepdim), dtype=float16)
    if p == 2:
        x = x.abs() if x.is_complex() else x
        return sqrt(sum_op.run(x * x, dims=(dim,), keepdim=keepdim))
    size = x.abs()
    if p == 1:
        return sum_op.run(size, dims=(dim,), keepdim=keepdim)
    if p == math.inf:
        return amax(size, dim, keepdim)
    if p == 0:
        return sum_op.run(cast.run(size != 0, dtype=size.dtype), dims=(dim,), keepdim=keepdim)
    return sum_op.run(size ** p, dims=(dim,), keepdim=keepdim) ** (1 / p)


@public("nn.functional", numpy=True, deferred=True)
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """``x1 . x2 / (max(|x1|, eps) * max(|x2|, eps))`` along ``dim``; shapes broadcast.

    >>> fw.nn.functional.cosine_similarity(fw.tensor([[1.0, 1.0]]), fw.tensor([[1.0, 0.0]]))
    tensor([0.7071])
    """
    if autocast.used:
        x1, x2 = map(autocast.in_float32_on_a_gpu, (x1, x2))
    op = "cosine_similarity"
    floating(real_arg(x1, op, "x1"), op, "x1")
    floating(real_arg(x2, op, "x2"), op, "x2")
    shape = broadcast_shape((x1.shape, x2.shape), op)
    at = one_dim(dim, len(shape), op)
    if not shape:
        return cosine_similarity(*(take_shape(x, (1,)) for x in (x1, x2)), 0, eps).squeeze(0)
    a, b = x1, x2
    if x1.shape != x2.shape:
        a, b = (take_shape(x, (1,) * (len(shape) - x.ndim) + x.shape) for x in (x1, x2))
        # expanded first: a dimension of size 1 counts as many times as the other's is long
        a, b = (expand.run(x, size=x.shape[:at] + shape[at:at + 1] + x.shape[at + 1:]) for x in (a, b))
    unit_a, unit_b = (_unit.run(x, dim=at, eps=float(eps)) for x in (a, b))
    return sum_op.run(unit_a * unit_b, dims=(at,), keepdim=False)


_away = Elementwise("pairwise_difference", "x y", "x - y + eps", settings="eps", complex=True, adjoint=True,
                    vjp={"x": "g", "y": "-g"})


@public("nn.functional", numpy=True, deferred=True)
def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6,
                      keepdim: bool = False) -> Tensor:
    """The p-norm of ``x1 - x2 + eps`` along the last dimension; shapes broadcast.

    >>> fw.nn.functional.pairwise_distance(fw.tensor([[3.0, 4.0]]), fw.tensor([[0.0, 0.0]]))
    tensor([5.0000])
    """
    op = "pairwise_distance"
    floating(tensor_arg(x1, op, "x1"), op, "x1")
    floating(tensor_arg(x2, op, "x2"), op, "x2")
    difference: Any = _away.run(x1, x2, eps=float(eps))
    if not difference.ndim:
        raise ShapeError(f"{op}: wanted at least 1 dimension, got two 0-dim tensors")
    return vector_norm(difference, p, difference.ndim - 1, keepdim)


def _least(x: Any, eps: float) -> float:
    """``eps``, or what is left of it in the dtype of ``x``: rounded to 0 it would make nan of zeros."""
    return max(eps, 2.0 ** -24) if x.dtype == "float16" and eps > 0 else eps


def _unit_kernel(xp: Any, x: Any, *, dim: int, eps: float) -> Any:
    size = norm_op.kernel(xp, x, ord=2.0, dims=(dim,), keepdim=True)
    return x / xp.maximum(size, _least(x, eps))


def _unit_vjp(g: Any, x: Any, dim: int, eps: float) -> Any:
    found = cuda.unit_grad(g, x, dim, eps) if device_code.is_device_array(g) else NotImplemented
    if found is not NotImplemented:
        return found
    size, eps = norm_op(x, ord=2.0, dims=(dim,), keepdim=True), _least(x, eps)
    divisor = clamp_min_op(size, low=eps)
    unit = x / divisor
    turned = sum_op(g * unit, dims=(dim,), keepdim=True) * unit
    return (g - where_op(size < eps, 0.0, turned)) / divisor


_divide = native_kernel("x / size", ("x", "size"), np.divide)


def _unit_cpu(x: Any, *, dim: int, eps: float) -> Any:
    """The kernel, in one pass over the memory of large arrays."""
    def size(x: Any, dim: int) -> Any:
        return np.maximum(norm_op.cpu(x, ord=2.0, dims=(dim,), keepdim=True), _least(x, eps))
    dense = dim == x.ndim - 1 and x.flags.c_contiguous and x.dtype.char in "fd"
    if _native.module is None or not dense or x.size <= SLICES:
        return _divide(x, size(x, dim))
    return in_slices(lambda rows: size(rows, 1), _divide, x)


_unit = Op("normalize", "x", onnx="unit(x, dim, eps)",
           kernel=_unit_kernel, cpu=_unit_cpu, infer=lambda x, *, dim, eps: x, batch=along("dim"),
           device=cuda.unit, loose_from=NEVER,
           vjp={"x": _unit_vjp})


@public("nn.functional", op=_unit, out=True, deferred=True)
def normalize(input: Tensor, p: float = 2.0, dim: Any = 1, eps: float = 1e-12) -> Tensor:
    """``input / max(|input|_p, eps)`` with the p-norm along ``dim``, or over several dimensions together.

    >>> fw.nn.functional.normalize(fw.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """
    if autocast.used:
        input = autocast.in_float32_on_a_gpu(input)
    floating(tensor_arg(input, "normalize", "input"), "normalize", "input")
    if isinstance(dim, (tuple, list)):
        size, eps = vector_norm(input, p, dim, True), _least(input._array, eps)
        return input / clamp_min(size, eps)  # type: ignore[operator]
    at = one_dim(dim, input.ndim, "normalize")
    if not input.ndim:
        return take_shape(normalize(take_shape(input, (1,)), p, 0, eps), ())
    if p == 2 and not input.is_complex():
        return _unit.run(input, dim=at, eps=float(eps))
    size, eps = _p_norm(input, p, at, True), _least(input._array, eps)
    return input / clamp_min(size, eps)  # type: ignore[operator]


@public(method=True, deferred=True)
def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """The p-norm of ``input - other``, a number; shapes broadcast.

    >>> fw.dist(fw.tensor([1.0, 2.0]), fw.tensor([4.0, 6.0]))
    tensor(5.)
    """
    if autocast.used:
        input, other = map(autocast.in_float32_on_a_gpu, (input, other))
    x, y = input, other
    if of_one_dtype(x, y) is not True:
        x, y = promoted("dist", input=input, other=other)
    floating(x, "dist")
    return p_norm(sub_op.run(x, y), float(p), None, False, None, "dist")


def _distances(x: Any, y: Any, *, p: float) -> Tensor:
    """The formula of cdist, by a table of all differences."""
    return vector_norm(x.unsqueeze(-2) - y.unsqueeze(-3), ord=p, dim=-1)


def _cdist_kernel(xp: Any, x: Any, y: Any, *, p: float) -> Any:
    size = xp.abs(x[..., :, None, :] - y[..., None, :, :])
    return size.sum(-1) if p == 1 else xp.sqrt((size * size).sum(-1))


def _cdist_grad_kernel(xp: Any, g: Any, x: Any, y: Any, out: Any, *, p: float, wanted: tuple) -> tuple:
    way = x[..., :, None, :] - y[..., None, :, :]
    if p == 1:
        way = xp.sign(way)
    else:
        g = g / xp.where(out == 0, xp.ones_like(out), out)
    way = way * xp.where(out == 0, xp.zeros_like(g), g)[..., None]
    none = xp.empty(0, x.dtype)
    return way.sum(-2) if wanted[0] else none, -way.sum(-3) if wanted[1] else none


def _cdist_vjp(g: Any, x: Any, y: Any, out: Any, p: float, needs: tuple) -> list:
    found = cdist_grad(g, x, y, out, p=p, wanted=needs)
    return [part if need else None for part, need in zip(found, needs)]


def _cdist_twice(k: list, g: Any, x: Any, y: Any, p: float, wanted: tuple, needs: tuple) -> list:
    return [*twice(lambda *given: (_distances(*given, p=p),), k, (g,), (x, y), wanted, needs[:3]), None]


cdist_grad = Op("cdist_grad", "g x y out", outputs="gx gy", kernel=_cdist_grad_kernel, native="cdist_grad",
                vjp=_cdist_twice, infer=lambda g, x, y, out, *, p, wanted: tuple([
                    a if want else Meta((0,), x.dtype) for a, want in zip((x, y), wanted)]))
cdist_op = Op("cdist", "x y", kernel=_cdist_kernel, native="cdist", vjp=_cdist_vjp, arguments="x1 x2",
              onnx="distances(x, y, p)", infer=lambda x, y, *, p: Meta((*x.shape[:-1], y.shape[-2]), x.dtype))


@public(autocast="float32", deferred=True)
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0,
          compute_mode: str = "use_mm_for_euclid_dist_if_necessary") -> Tensor:
    """The p-norm distances of every row of x1 to every row of x2: (*, m, k), (*, n, k) -> (*, m, n).

    Batches broadcast. All differences are formed, so no digits are lost to a shortcut; ``compute_mode`` is
    accepted and changes nothing. Memory grows as m * n, for p other than 1 and 2, in derivatives of
    derivatives and on a GPU as m * n * k. At distance 0 the gradient is 0.
    What ``vmap`` runs adds in another order: the last bit may be another.

    >>> fw.cdist(fw.tensor([[0.0, 0.0]]), fw.tensor([[3.0, 4.0], [0.0, 1.0]]))
    tensor([[5., 1.]])
    """
    a, b = promoted("cdist", x1=x1, x2=x2)
    floating(real_arg(a, "cdist", "x1"), "cdist", "x1")
    if a.ndim < 2 or b.ndim < 2 or a.shape[-1] != b.shape[-1]:
        raise ShapeError(f"cdist: x1 and x2 must be (*, m, k) and (*, n, k), got shapes {list(a.shape)} and "
                         f"{list(b.shape)}")
    if p < 0:
        raise ValueError(f"cdist: p must not be negative, got {p}")
    if not a.shape[-1]:
        return (a.unsqueeze(-2) - b.unsqueeze(-3)).sum(-1)
    if p in (1, 2) and have_kernels(a, b):
        batch = broadcast_shape((a.shape[:-2], b.shape[:-2]), "cdist (batch dimensions)")
        a, b = (v if v.shape[:-2] == batch else expand.run(v, size=batch + v.shape[-2:]) for v in (a, b))
        return cdist_op.run(a, b, p=float(p))
    return _distances(a, b, p=float(p))


def _differences(x: Any, p: float) -> Tensor:
    """The formula of pdist, by a table of all differences."""
    first, second = triangle_places(x.shape[0], x.shape[0], 1, False)
    difference = x[from_array(first, x)] - x[from_array(second, x)]
    return vector_norm(difference, ord=p, dim=-1) if x.shape[1] else difference.sum(-1)


def _pdist_kernel(xp: Any, x: Any, *, p: float) -> Any:
    first, second = triangle_places(x.shape[0], x.shape[0], 1, False)
    size = xp.abs(x[first] - x[second])
    return size.sum(-1) if p == 1 else xp.sqrt((size * size).sum(-1))


def _pdist_grad_kernel(xp: Any, g: Any, x: Any, out: Any, *, p: float) -> Any:
    first, second = triangle_places(x.shape[0], x.shape[0], 1, False)
    way = _cdist_grad_kernel(xp, g[:, None, None], x[first][:, None], x[second][:, None], out[:, None, None],
                             p=p, wanted=(True, False))[0][:, 0]
    to = xp.zeros_like(x)
    add_at(xp, to, (first,), way)
    add_at(xp, to, (second,), -way)
    return to


pdist_grad = Op("pdist_grad", "g x out", kernel=_pdist_grad_kernel, native="pdist_grad",
                infer=lambda g, x, out, *, p: x, vjp=lambda k, g, x, p, needs: [*twice(
                    lambda x: (_differences(x, p),), [k], (g,), (x,), (True,), needs[:2]), None])
pdist_op = Op("pdist", "x", kernel=_pdist_kernel, native="pdist",
              infer=lambda x, *, p: Meta((x.shape[0] * (x.shape[0] - 1) // 2,), x.dtype),
              vjp={"x": lambda g, x, out, p: pdist_grad(g, x, out, p=p)})


@planned
def _pdist(input: Tensor, p: float) -> list[Step]:
    floating(real_arg(input, "pdist"), "pdist")
    if input.ndim != 2:
        raise ShapeError(f"pdist: input must be a matrix (n, k), got shape {list(input.shape)}")
    if p < 0:
        raise ValueError(f"pdist: p must not be negative, got {p}")
    one = have_kernels(input) and p in (1, 2) and input.numel() > 0
    return [(pdist_op.run if one else _differences, 1, {"p": float(p)})]


@public("nn.functional", autocast="float32")
def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """The p-norm distances of every row to every later one: (n, k) -> (n (n - 1) / 2).

    In the order (0, 1), (0, 2), ..., (1, 2), ... At distance 0 the gradient is 0. Raises ShapeError unless
    the input is a matrix, ValueError for a negative p.

    >>> fw.nn.functional.pdist(fw.tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]]))
    tensor([5.0000, 1.0000, 4.2426])
    """
    return _pdist(input, p)
