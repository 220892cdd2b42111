"""Gather and scatter: an index tensor that names, for every element, a position along one dimension."""

from typing import Any

import numpy as np

from ...backends.native import native_or
from ...errors import AutogradError, DTypeError, ShapeError
from ...quiet import quiet
from ...tensor import Tensor
from ..pointwise.arithmetic import plus_sums
from ..record import autocast
from ..record.args import one_dim, tensor_arg
from ..record.autocast import by_place
from ..record.batched import along
from ..record.deferred import Positions
from ..record.into import native_into
from ..record.op import Meta, Op
from ..record.public import public
from ..shape.broadcast import broadcast_shape, expand, take_size
from ..shape.slices import slice_op
from ..shape.view import take_shape
from ..write.inplace import scalar_arg
from . import cuda
from .index import extremes, positions, summed_at


def _grid(xp: Any, index: Any, dim: int) -> tuple:
    """``index`` along ``dim`` as a full key: each element's own position along the other dimensions."""
    key = [xp.arange(s).reshape((1,) * i + (s,) + (1,) * (index.ndim - i - 1))
           for i, s in enumerate(index.shape)]
    key[dim] = index
    return tuple(key)


def _ungather_kernel(xp: Any, x: Any, index: Any, *, dim: int, shape: tuple[int, ...]) -> Any:
    if xp is not np:
        return summed_at(xp, shape, _grid(xp, index, dim), x)
    out = np.zeros(shape, x.dtype)
    places = np.ravel_multi_index(np.broadcast_arrays(*_grid(np, index, dim)), shape) if x.size else index
    np.add.at(out.reshape(-1), places.reshape(-1), x.reshape(-1))
    return out


def _scatter_kernel(xp: Any, x: Any, src: Any, index: Any, *, dim: int) -> Any:
    out = xp.array(x, copy=True, order="C")
    out[_grid(xp, index, dim)] = src
    return out


def _scatter_add_kernel(xp: Any, x: Any, src: Any, index: Any, *, dim: int) -> Any:
    sums = _ungather_kernel(xp, src, index, dim=dim, shape=x.shape)
    return xp.where(sums == 0, x, x + sums)


def _multiply_kernel(xp: Any, x: Any, src: Any, index: Any, *, dim: int) -> Any:
    out = xp.array(x, copy=True, order="C")
    for k in range(index.shape[dim]):  # within one slice no place is named twice; CuPy has no multiply.at
        part = (slice(None),) * dim + (slice(k, k + 1),)
        key = _grid(xp, index[part], dim)
        out[key] = out[key] * (src[part] if hasattr(src, "shape") else src)
    return out


gather_op = Op("gather", "x index", onnx="GatherElements(x, index, axis=dim)",
               runtime="gathered(x, index, dim)",
               batch=along("dim"), masks=True, jvp="linear", native="gather", rounds="gather",
               device=cuda.gather,
               kernel=lambda xp, x, index, *, dim: x[_grid(xp, index, dim)],
               infer=lambda x, index, *, dim: Meta(index.shape, x.dtype),
               vjp={"x": lambda g, index, x_shape, dim: ungather(g, index, dim=dim, shape=x_shape)})
ungather = Op("ungather", "x index",
              onnx="ScatterElements(zeros(shape, x), index, x, axis=dim, reduction='add')",
              kernel=_ungather_kernel, jvp="linear", native="ungather", device=cuda.ungather,
              batch=along("dim", shapes="shape"),
              infer=lambda x, index, *, dim, shape: Meta(shape, x.dtype),
              vjp={"x": lambda g, index, dim: gather_op(g, index, dim=dim)})
scatter_op = Op("scatter", "x src index", onnx="scattered(x, index, src, dim)",
                runtime="scattered(x, src, index, dim)",
                masks=True, kernel=_scatter_kernel, jvp="linear",
                batch=along("dim"),
                native="scatter", rounds="scatter", device=cuda.scatter,
                infer=lambda x, src, index, *, dim: x,
                vjp={"x": lambda g, index, dim: scatter_op(g, 0.0, index, dim=dim),
                     "src": lambda g, index, dim: gather_op(g, index, dim=dim)})
scatter_add_op = Op("scatter_add", "x src index", jvp="linear", native="scatter_add",
                    onnx="ScatterElements(x, index, src, axis=dim, reduction='add')",
                    kernel=_scatter_add_kernel,
                    infer=lambda x, src, index, *, dim: x,
                    vjp={"x": lambda g: g, "src": lambda g, index, dim: gather_op(g, index, dim=dim)})
scatter_multiply = Op("scatter_multiply", "x src index", kernel=_multiply_kernel, native="scatter_multiply",
                      batch=along("dim"),
                      infer=lambda x, src, index, *, dim: x)


# the dimension in [0, ndim) along which an index, checked, fits an array; -1 where that is not known
_fitting = native_or("places_fit", lambda x, index, dim: -1)


def _check(x: Any, dim: int, index: Any, op: str, name: str = "index") -> tuple[int, Tensor]:
    """``dim`` and the checked index, which must fit ``x`` in all other dimensions."""
    if isinstance(x, Tensor) and isinstance(index, Tensor):
        at = _fitting(x._array, index._array, dim)
        if at >= 0:  # nearly always
            return at, index
    at = one_dim(dim, tensor_arg(x, op).ndim, op)
    tensor_arg(index, op, name)
    shape, own = index.shape, x.shape
    if 0 in shape and len(shape) != len(own):
        return at, index
    if max(len(shape), 1) != max(len(own), 1):
        raise ShapeError(f"{op}: {name} must have as many dimensions as the tensor, got shapes "
                         f"{list(shape)} and {list(own)}")
    for i, (a, b) in enumerate(zip(shape, own)):
        if a > b and i != at:
            raise ShapeError(f"{op}: {name} of shape {list(shape)} is larger at dimension {i} than "
                             f"the tensor of shape {list(own)}")
    return at, positions(index, own[at] if own else 1, op, at, name)


def _at_least_1d(x: Any) -> Any:
    return take_shape(x, (1,)) if isinstance(x, Tensor) and x._array.ndim == 0 else x


def _gathered_from(input: Tensor, dim: int, index: Tensor, **settings: Any) -> Positions:
    return Positions(2, input.shape[dim] if input.ndim else 1)


@public(method=True, op=gather_op, out="exact", deferred=_gathered_from)
def gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """The elements named by ``index`` along ``dim``, each at its own position along the others.

    Formula (2 dimensions, dim=1): ``out[i, j] = input[i, index[i, j]]``; the result has the shape of
    ``index``. Raises ShapeError, or IndexError for a position out of range.

    >>> fw.gather(fw.tensor([[1, 2], [3, 4]]), 1, fw.tensor([[1], [0]]))
    tensor([[2],
            [3]])
    """
    at, index = _check(input, dim, index, "gather")
    ndim = input._array.ndim
    if index._array.ndim != ndim or not ndim:
        if index.ndim == input.ndim or index.numel():
            out = gather_op.run(_at_least_1d(input), _at_least_1d(index), dim=at)
            return take_shape(out, index.shape)
        return take_shape(slice_op.run(_at_least_1d(input), key=(Ellipsis, slice(0, 0)))
                              .reshape(-1), index.shape)  # type: ignore[attr-defined]
    return gather_op.run(input, index, dim=at)


@public(method=True, out=True)
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """``gather`` with the other dimensions broadcast; without ``dim``, from the flattened tensor. Negative
    indices count from the end.

    >>> x = fw.tensor([[3, 1], [0, 2]])
    >>> fw.take_along_dim(x, fw.tensor([[1], [0]]), 1)
    tensor([[1],
            [0]])
    """
    tensor_arg(input, "take_along_dim"), tensor_arg(indices, "take_along_dim", "indices")
    if dim is None:
        input, indices, dim = input.reshape(-1), indices.reshape(-1), 0  # type: ignore[attr-defined]
    at = one_dim(dim, input.ndim, "take_along_dim")
    own, there = input._array.shape, indices._array.shape
    if len(own) != len(there):
        raise ShapeError(f"take_along_dim: indices must have as many dimensions as the tensor, got shapes "
                         f"{list(there)} and {list(own)}")
    if own and (own[:at], own[at + 1:]) != (there[:at], there[at + 1:]):
        both = broadcast_shape([s[:at] + (1,) + s[at + 1:] for s in (own, there)], "take_along_dim")
        input, indices = [take_size(x, both[:at] + s[at:at + 1] + both[at + 1:])
                          for x, s in ((input, own), (indices, there))]
    size = own[at] if own else 1
    if type(indices._array) is np.ndarray and indices._array.dtype.kind == "i" and quiet.run is not None and (
            not indices._array.size or extremes(indices._array)[0] >= 0):
        return gather(input, at, indices)
    from_end: Any = (indices < 0) & (indices >= -size)  # type: ignore[operator]
    return gather(input, at, indices + from_end * size)  # type: ignore[operator]


def _sources(x: Tensor, src: Any, index: Tensor, op: str) -> Any:
    """``src`` cut to the shape of ``index``, or a number."""
    if not isinstance(src, Tensor):
        return scalar_arg(x, src, op)
    if src._array.dtype is not x._array.dtype and src.dtype is not x.dtype:
        raise DTypeError(f"{op}: src must be {x.dtype} like the tensor, got {src.dtype}; convert it")
    if src._array.shape == index._array.shape:
        return _at_least_1d(src)
    if max(src.ndim, 1) != max(index.ndim, 1) or any(a > b for a, b in zip(index.shape, src.shape)):
        raise ShapeError(f"{op}: src of shape {list(src.shape)} is smaller than index of shape "
                         f"{list(index.shape)}")
    if src.ndim:
        src = slice_op.run(src, key=tuple(slice(s) for s in index.shape or (1,)))
    return _at_least_1d(src)


# the elements at places along a dimension in memory: (x, dim, index, source, how, lines, name)
scattered_into = native_into("scattered")


def _scatter_into(input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None,
                  reduce: str | None = None) -> Any:
    given = src if value is None else value if src is None else None
    if reduce is not None or given is None:
        return NotImplemented
    return scattered_into(input, dim, index, given, "set", False, "scatter_")


@public(method=True, inplace=_scatter_into, op=scatter_op, out=True)
def scatter(input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None,
            reduce: str | None = None) -> Tensor:
    """``input`` with the elements that ``index`` names along ``dim`` replaced by ``src`` (or a number).

    Formula (2 dimensions, dim=1): ``out[i, index[i, j]] = src[i, j]``. reduce: "add" or "multiply"
    combines instead of replacing. Where a place is named twice, one of the values stays. Raises
    ShapeError, or IndexError for a position out of range.

    >>> fw.scatter(fw.zeros(2, 2), 1, fw.tensor([[1], [0]]), 5.0)
    tensor([[0., 5.],
            [5., 0.]])
    """
    if (src is None) == (value is None):
        raise TypeError("scatter: exactly one of src and value is wanted")
    if reduce not in (None, "add", "multiply"):
        raise ValueError(f"scatter: reduce must be 'add' or 'multiply', got {reduce!r}")
    at, index = _check(input, dim, index, "scatter")
    if not index._array.size:
        return input.clone()  # type: ignore[attr-defined]
    given = _sources(input, value if src is None else src, index, "scatter")
    if reduce == "add":
        return _add(input, at, index, given)
    record = scatter_op if reduce is None else scatter_multiply
    if reduce == "multiply" and any(isinstance(t, Tensor) and t._node is not None for t in (input, given)):
        raise AutogradError("scatter: reduce='multiply' has no derivative; use it on detached tensors")
    out = record.run(_at_least_1d(input), given, _at_least_1d(index), dim=at)
    return out if input._array.ndim else take_shape(out, ())


def _add(x: Tensor, at: int, index: Tensor, src: Any) -> Tensor:
    if type(x._array) is np.ndarray and isinstance(src, Tensor) and x._array.ndim \
            and type(src._array) is np.ndarray and src._array.shape == index._array.shape:
        return scatter_add_op.run(x, src, index, dim=at)
    if not isinstance(src, Tensor):
        src = x.new_full((1,) * max(index.ndim, 1), src)  # type: ignore[attr-defined]
    index = _at_least_1d(index)
    if src.shape != index.shape:
        src = expand.run(src, size=index.shape)
    added = ungather.run(src, index, dim=at, shape=x._array.shape or (1,))
    return plus_sums.run(x, added if x.ndim else take_shape(added, ()))


def _scatter_add_into(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Any:
    if not isinstance(src, Tensor):
        return NotImplemented
    return scattered_into(input, dim, index, src, "sum", False, "scatter_add_")


@public(method=True, inplace=_scatter_add_into, out=True, autocast=by_place("widest"), asks=False)
def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """``input`` with the elements of ``src`` added at the places named by ``index`` along ``dim``.

    Formula (2 dimensions, dim=1): ``out[i, index[i, j]] += src[i, j]``.

    >>> fw.scatter_add(fw.zeros(3), 0, fw.tensor([0, 2, 2]), fw.ones(3))
    tensor([1., 0., 2.])
    """
    if autocast.used:
        input, src = autocast.on_a_gpu("widest", input, src)
    at, index = _check(input, dim, index, "scatter_add")
    tensor_arg(src, "scatter_add", "src")
    if not index._array.size:
        return input.clone()  # type: ignore[attr-defined]
    return _add(input, at, index, _sources(input, src, index, "scatter_add"))
