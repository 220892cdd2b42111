"""Shapes, joins, choices, triangles: NumPy's functions on tensors."""

from typing import Any

import numpy as np

from ..creation import zeros_like
from ..errors import ShapeError
from ..ops.image.pad import pad as pad_op
from ..ops.record.args import one_dim
from ..tensor import Tensor
from .table import FUNCTIONS, T, Unsupported, implements, operand, store, tensor


def _flat(x: Any) -> Any:
    return T.reshape(tensor(x), -1)


def _tuple(v: Any) -> tuple[int, ...]:
    return tuple(v) if isinstance(v, (tuple, list, np.ndarray)) else (v,)


# -- without copies --------------------------------------------------------------------------------

@implements(np.reshape)
def reshape(a: Any, /, shape: Any, order: str = "C", *, copy: bool | None = None) -> Tensor:
    if order != "C":
        raise Unsupported(f"np.reshape: order={order!r} is not supported for tensors; transpose first")
    result = T.reshape(tensor(a), _tuple(shape))
    return T.clone(result) if copy else result


@implements(np.ravel)
def ravel(a: Any, order: str = "C") -> Tensor:
    return reshape(a, -1, order)


@implements(np.transpose)
def transpose(a: Any, axes: Any = None) -> Tensor:
    x = tensor(a)
    return T.permute(x, tuple(range(x.ndim))[::-1] if axes is None else tuple(axes))


@implements(np.expand_dims)
def expand_dims(a: Any, axis: Any) -> Tensor:
    x, given = tensor(a), _tuple(axis)
    places = [one_dim(d, x.ndim + len(given), "expand_dims", "axis") for d in given]
    sizes = iter(x.shape)
    return T.reshape(x, [1 if i in places else next(sizes) for i in range(x.ndim + len(given))])


@implements(np.squeeze)
def squeeze(a: Any, axis: Any = None) -> Tensor:
    x = tensor(a)
    if axis is None:
        return T.squeeze(x)
    dims = [one_dim(d, x.ndim, "squeeze", "axis") for d in _tuple(axis)]
    if any(x.shape[d] != 1 for d in dims):
        raise ShapeError(f"np.squeeze: axis={axis} of shape {list(x.shape)} is not of length 1")
    return T.squeeze(x, tuple(dims))


FUNCTIONS.update({
    np.swapaxes: lambda a, axis1, axis2: T.swapaxes(tensor(a), axis1, axis2),
    np.moveaxis: lambda a, source, destination: T.movedim(tensor(a), source, destination),
    np.broadcast_to: lambda array, shape, subok=False: T.broadcast_to(tensor(array), _tuple(shape)),
    np.broadcast_arrays: lambda *args, subok=False: tuple(T.broadcast_tensors(*map(tensor, args))),
    np.atleast_1d: lambda *arys: T.atleast_1d(*map(tensor, arys)),
    np.atleast_2d: lambda *arys: T.atleast_2d(*map(tensor, arys)),
    np.atleast_3d: lambda *arys: T.atleast_3d(*map(tensor, arys)),
    np.shape: lambda a: tuple(tensor(a).shape), np.ndim: lambda a: tensor(a).ndim,
    np.size: lambda a, axis=None: tensor(a).numel() if axis is None else tensor(a).shape[axis],
    np.diagonal: lambda a, offset=0, axis1=0, axis2=1: T.diagonal(tensor(a), offset, axis1, axis2),
})


# -- order and repetition --------------------------------------------------------------------------

@implements(np.flip)
def flip(m: Any, axis: Any = None) -> Tensor:
    x = tensor(m)
    return T.flip(x, tuple(range(x.ndim)) if axis is None else _tuple(axis))


@implements(np.repeat)
def repeat(a: Any, repeats: Any, axis: int | None = None) -> Tensor:
    times = repeats if isinstance(repeats, int) else tensor(repeats)
    return T.repeat_interleave(tensor(a), times, axis)


FUNCTIONS.update({
    np.fliplr: lambda m: T.fliplr(tensor(m)), np.flipud: lambda m: T.flipud(tensor(m)),
    np.rot90: lambda m, k=1, axes=(0, 1): T.rot90(tensor(m), k, tuple(axes)),
    np.roll: lambda a, shift, axis=None: T.roll(tensor(a), shift, axis),
    np.tile: lambda A, reps: T.tile(tensor(A), _tuple(reps)),
})


@implements(np.pad)
def pad(array: Any, pad_width: Any, mode: Any = "constant", **settings: Any) -> Tensor:
    x = tensor(array)
    widths = np.broadcast_to(np.asarray(pad_width), (x.ndim, 2)).tolist()
    if mode == "constant" and settings.keys() <= {"constant_values"}:
        value = settings.get("constant_values", 0)
        if np.ndim(value):
            raise Unsupported("np.pad: constant_values must be one number for tensors")
        return pad_op(x, [w for pair in widths[::-1] for w in pair], value=value)
    if mode not in ("edge", "reflect", "symmetric", "wrap") or settings:
        raise Unsupported(f"np.pad: mode={mode!r} with {sorted(settings)} is not supported for tensors; use "
                        f"constant, edge, reflect, symmetric or wrap")
    for d, width in enumerate(widths):
        places: Any = np.pad(np.arange(x.shape[d]), width, mode)
        x = T.index_select(x, d, tensor(places).to(x.device))  # type: ignore[attr-defined]
    return x


# -- joins and parts -------------------------------------------------------------------------------

def _alike(arrays: Any, dtype: Any = None) -> list[Tensor]:
    found = [tensor(a) for a in arrays]
    return found if dtype is None else [t.to(dtype=dtype) for t in found]  # type: ignore[attr-defined]


@implements(np.concatenate)
def concatenate(arrays: Any, /, axis: int | None = 0, out: Any = None, *, dtype: Any = None,
                casting: str = "same_kind") -> Any:
    parts = _alike(arrays, dtype)
    result = T.cat([_flat(p) for p in parts]) if axis is None else T.cat(parts, axis)
    return store(result, out, "concatenate")


@implements(np.stack)
def stack(arrays: Any, axis: int = 0, out: Any = None, *, dtype: Any = None,
          casting: str = "same_kind") -> Any:
    return store(T.stack(_alike(arrays, dtype), axis), out, "stack")


FUNCTIONS.update({
    np.vstack: lambda tup, *, dtype=None, casting="same_kind": T.vstack(_alike(tup, dtype)),
    np.hstack: lambda tup, *, dtype=None, casting="same_kind": T.hstack(_alike(tup, dtype)),
    np.dstack: lambda tup: T.dstack(_alike(tup)), np.column_stack: lambda tup: T.column_stack(_alike(tup)),
    np.array_split: lambda ary, indices_or_sections, axis=0: list(
        T.tensor_split(tensor(ary), _places(indices_or_sections), axis)),
    np.vsplit: lambda ary, indices_or_sections: split(ary, indices_or_sections, 0),
    np.hsplit: lambda ary, indices_or_sections: split(
        ary, indices_or_sections, 1 if tensor(ary).ndim > 1 else 0),
    np.dsplit: lambda ary, indices_or_sections: split(ary, indices_or_sections, 2),
})


def _places(v: Any) -> Any:
    return v if isinstance(v, int) else tuple(int(i) for i in v)


@implements(np.split)
def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    x, places = tensor(ary), _places(indices_or_sections)
    if isinstance(places, int) and x.shape[axis] % places:
        raise ShapeError(f"np.split: {x.shape[axis]} elements along axis {axis} cannot be divided into "
                         f"{places} equal parts; use np.array_split")
    return list(T.tensor_split(x, places, axis))


@implements(np.append)
def append(arr: Any, values: Any, axis: int | None = None) -> Tensor:
    return concatenate((arr, values), axis)


@implements(np.meshgrid)
def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> tuple[Tensor, ...]:
    if sparse:
        raise Unsupported("np.meshgrid: sparse=True is not supported for tensors; reshape them to broadcast")
    return tuple(T.meshgrid(*[_flat(x) for x in xi], indexing=indexing))


# -- choices ---------------------------------------------------------------------------------------

@implements(np.where)
def where(condition: Any, *choices: Any) -> Any:
    condition = T.ne(tensor(condition), 0)
    if not choices:
        return T.nonzero(condition, as_tuple=True)
    x, y = map(operand, choices)
    if not isinstance(x, Tensor) and not isinstance(y, Tensor):
        x = tensor(x)
    return T.where(condition, x, y)


@implements(np.select)
def select(condlist: Any, choicelist: Any, default: Any = 0) -> Tensor:
    result = operand(default)
    for condition, choice in zip(reversed(condlist), reversed(choicelist)):
        result = where(condition, choice, result)
    return result


@implements(np.take)
def take(a: Any, indices: Any, axis: int | None = None, out: Any = None, mode: str = "raise") -> Any:
    x: Any = tensor(a)
    at = tensor(indices).long()  # type: ignore[attr-defined]
    if mode in ("wrap", "clip"):
        n = x.numel() if axis is None else x.shape[axis]
        at = T.remainder(at, n) if mode == "wrap" else T.clamp(at, 0, n - 1)
    if axis is None:
        return store(_flat(x)[at], out, "take")
    return store(x[(slice(None),) * one_dim(axis, x.ndim, "take", "axis") + (at,)], out, "take")


@implements(np.take_along_axis)
def take_along_axis(arr: Any, indices: Any, axis: int | None = -1) -> Tensor:
    x, at = tensor(arr), tensor(indices).long()  # type: ignore[attr-defined]
    if axis is None:
        x, axis = _flat(x), 0
    return T.take_along_dim(x, T.where(at < 0, at + x.shape[axis], at), axis)


@implements(np.isin)
def isin(element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *,
         kind: str | None = None) -> Tensor:
    return T.isin(tensor(element), tensor(test_elements), invert=invert)


@implements(np.compress)
def compress(condition: Any, a: Any, axis: int | None = None, out: Any = None) -> Any:
    x = _flat(a) if axis is None else tensor(a)
    at = T.nonzero(T.ne(tensor(condition), 0), as_tuple=True)[0]
    return store(T.index_select(x, axis or 0, at), out, "compress")


FUNCTIONS.update({
    np.extract: lambda condition, arr: _flat(arr)[T.ne(_flat(condition), 0)],
    np.nonzero: lambda a: T.nonzero(tensor(a), as_tuple=True), np.argwhere: lambda a: T.argwhere(tensor(a)),
    np.flatnonzero: lambda a: T.nonzero(_flat(a), as_tuple=True)[0],
})

# -- triangles, diagonals, and like ----------------------------------------------------------------

FUNCTIONS.update({
    np.diag: lambda v, k=0: T.diag(tensor(v), k), np.diagflat: lambda v, k=0: T.diagflat(tensor(v), k),
    np.tril: lambda m, k=0: T.tril(tensor(m), k), np.triu: lambda m, k=0: T.triu(tensor(m), k),
})


@implements(np.copy)
def copy(a: Any, order: str = "K", subok: bool = False) -> Tensor:
    return T.clone(tensor(a))


def _like(name: str) -> None:
    def like(a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *,
             device: Any = None) -> Tensor:
        kind, size = a.dtype if dtype is None else dtype, a.shape if shape is None else _tuple(shape)
        return getattr(a, f"new_{name}")(size, dtype=kind)
    implements(getattr(np, f"{name}_like"))(like)


for _name in ("zeros", "ones", "empty"):
    _like(_name)


@implements(np.full_like)
def full_like(a: Any, fill_value: Any, dtype: Any = None, order: str = "K", subok: bool = True,
              shape: Any = None, *, device: Any = None) -> Tensor:
    kind, size = a.dtype if dtype is None else dtype, a.shape if shape is None else _tuple(shape)
    return T.broadcast_to(tensor(fill_value).to(a.device).to(kind), size).clone()  # type: ignore[attr-defined]


@implements(np.copyto)
def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    if not isinstance(dst, Tensor):
        store(T.broadcast_to(tensor(src), dst.shape), dst, "copyto")
    else:
        source = T.broadcast_to(tensor(src), dst.shape)
        dst.copy_(source if where is True else T.where(tensor(where), source, dst))  # type: ignore[attr-defined]


# -- elementwise, but no ufuncs --------------------------------------------------------------------

FUNCTIONS.update({
    np.nan_to_num: lambda x, copy=True, nan=0.0, posinf=None, neginf=None: T.nan_to_num(
        tensor(x), nan, posinf, neginf),
    np.real: lambda val: T.real(tensor(val)),
    np.imag: lambda val: T.imag(tensor(val)) if tensor(val).is_complex() else zeros_like(tensor(val)),
    np.angle: lambda z, deg=False: T.rad2deg(T.angle(tensor(z))) if deg else T.angle(tensor(z)),
    np.sinc: lambda x: T.sinc(tensor(x)), np.i0: lambda x: T.i0(tensor(x)), np.fix: lambda x, out=None: store(
        T.trunc(tensor(x)), out, "fix"),
    np.isposinf: lambda x, out=None: store(T.isposinf(tensor(x)), out, "isposinf"),
    np.isneginf: lambda x, out=None: store(T.isneginf(tensor(x)), out, "isneginf"),
    np.isclose: lambda a, b, rtol=1e-5, atol=1e-8, equal_nan=False: T.isclose(
        tensor(a), tensor(b).to(tensor(a).dtype), rtol, atol, equal_nan),
})


@implements(np.polyval)
def polyval(p: Any, x: Any) -> Any:
    result: Any = 0
    for coefficient in tensor(p):  # type: ignore[attr-defined]
        result = result * operand(x) + coefficient
    return result


@implements(np.convolve)
def convolve(a: Any, v: Any, mode: str = "full") -> Tensor:
    x, y = tensor(a), tensor(v)
    if len(y) > len(x):
        x, y = y, x
    n, m = len(x), len(y)
    windows = pad_op(x, [m - 1, m - 1]).unfold(0, m, 1)  # type: ignore[attr-defined]
    out = T.sum(windows * T.flip(y, (0,)), 1)
    cut = {"full": (0, n + m - 1), "same": ((m - 1) // 2, n), "valid": (m - 1, n - m + 1)}
    if mode not in cut:
        raise ValueError(f"np.convolve: mode must be full, same or valid, got {mode!r}")
    return T.narrow(out, 0, *cut[mode])


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Tensor:
    return tensor(x).to(dtype=dtype, copy=copy)  # type: ignore[attr-defined]


for _name, _ours in (("unstack", lambda x, /, *, axis=0: T.unbind(tensor(x), axis)), ("astype", astype)):
    if hasattr(np, _name):  # since NumPy 2.1
        FUNCTIONS[getattr(np, _name)] = _ours
