"""Sampling an image at given places: ``affine_grid`` makes the places, ``grid_sample`` reads there.

A native kernel and its backward on the CPU, and a composite that says what they compute: the weights of the
neighbours are tensors computed from the grid, and the neighbours are gathered, so every derivative in image
and grid follows. Only the way a padding mode folds a coordinate back into the image is a record of its own,
since its slope at the borders is a matter of convention.
"""

import itertools
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ... import _native
from ...autograd.engine import grad
from ...autograd.mode import enable_grad, no_grad, state
from ...backends import cuda, device_code
from ...errors import DTypeError, ShapeError
from ...quiet import quiet
from ...tensor import Tensor, wrap
from ..convert.cast import from_array, to
from ..index.scatter import gather
from ..linalg.matmul import matmul
from ..pointwise.choose import where_op
from ..pointwise.rounding import floor, nearest
from ..record.args import floating, tensor_arg
from ..record.autocast import by_place
from ..record.batched import by_element
from ..record.op import Meta, Op
from ..record.planned import Step, planned
from ..record.public import public
from ..record.whole import Whole
from ..shape.broadcast import expand
from ..shape.view import take_order, take_shape
from ..write.inplace import zero_op
from ..write.twice import twice
from . import cuda_grid

_OP = "grid_sample"
_CUBIC = -0.75


def _limits(size: int, align: bool) -> tuple[float, float]:
    """Where reflection turns back: at the centres of the outer pixels, or at their edges."""
    return (0.0, size - 1.0) if align else (-0.5, size - 0.5)


def _reflect(xp: Any, x: Any, size: int, align: bool) -> tuple[Any, Any]:
    """The coordinate reflected until it is inside, and its slope, 1 or -1."""
    low, high = _limits(size, align)
    span = high - low
    if span <= 0:
        return xp.zeros_like(x), xp.zeros_like(x)
    away = xp.abs(x - low)
    turns = xp.floor(away / span)
    odd = turns % 2 == 1
    inside = away - turns * span
    slope = xp.where(odd, -1.0, 1.0) * xp.where(x < low, -1.0, 1.0)
    return xp.where(odd, span - inside, inside) + low, slope.astype(x.dtype)


def _folded(xp: Any, x: Any, padding: str, size: int, align: bool) -> tuple[Any, Any]:
    slope = xp.ones_like(x)
    if padding == "reflection":
        x, slope = _reflect(xp, x, size, align)
    if padding != "zeros":
        slope = xp.where((x <= 0) | (x >= size - 1), xp.zeros_like(slope), slope)
        x = xp.clip(x, 0, size - 1)
    return x, slope


fold_slope = Op("fold_slope", "x",
                batch=by_element, infer=lambda x, **_: x, kernel=lambda xp, x, *, padding, size, align:
                _folded(xp, x, padding, size, align)[1])
fold_into = Op("fold_into", "x", batch=by_element, infer=lambda x, **_: x,
               kernel=lambda xp, x, *, padding, size, align: _folded(xp, x, padding, size, align)[0],
               vjp={"x": lambda g, x, padding, size, align: g * fold_slope(
                   x, padding=padding, size=size, align=align)})


def _linear(at: Any) -> tuple[Any, list[Any]]:
    low = _floor(at)
    part = at - low
    return low, [1 - part, part]


def _nearest(at: Any) -> tuple[Any, list[Any]]:
    with no_grad():
        place = nearest(at)
    return place, [1 + zero_op.run(at)]  # type: ignore[operator]


def _cubic(at: Any) -> tuple[Any, list[Any]]:
    low = _floor(at)
    t, a = at - low, _CUBIC

    def near(s: Any) -> Any:
        return ((a + 2) * s - (a + 3)) * s * s + 1

    def far(s: Any) -> Any:
        return ((a * s - 5 * a) * s + 8 * a) * s - 4 * a
    return _shifted(low, -1), [far(t + 1), near(t), near(1 - t), far(2 - t)]


def _floor(at: Any) -> Any:
    with no_grad():
        return floor(at)


def _shifted(place: Any, k: int) -> Any:
    with no_grad():
        return place + k


_TAPS = {"bilinear": _linear, "nearest": _nearest, "bicubic": _cubic}


def _along(at: Tensor, size: int, mode: str, padding: str, align: bool) -> list[tuple[Any, Any, Any]]:
    """For one dimension: (position, whether it is inside, weight) of each neighbour."""
    if mode != "bicubic":  # its neighbours are folded into the image one by one
        at = fold_into.run(at, padding=padding, size=size, align=align)
    first, weights = _TAPS[mode](at)
    taps = []
    for k, weight in enumerate(weights):
        with no_grad():
            place: Any = first + k
            if mode == "bicubic":
                place = fold_into.run(place, padding=padding, size=size, align=align)
            inside = (place >= 0) & (place <= size - 1)
            taps.append((to(where_op.run(inside, place, 0.0), np.int64), inside, weight))
    return taps


def _pixels(at: Any, size: int, align: bool) -> Tensor:
    """Coordinates in [-1, 1] as places among the pixels."""
    return (at + 1) * ((size - 1) / 2) if align else ((at + 1) * size - 1) * 0.5


def _check(input: Any, grid: Any, mode: str, padding_mode: str) -> None:
    floating(tensor_arg(input, _OP), _OP)
    floating(tensor_arg(grid, _OP, "grid"), _OP, "grid")
    if input.dtype is not grid.dtype:
        raise DTypeError(f"{_OP}: input is {input.dtype} and grid {grid.dtype}; convert one of them")
    if input.ndim not in (4, 5) or grid.ndim != input.ndim:
        raise ShapeError(f"{_OP}: input must be (n, c, h, w) or (n, c, d, h, w) and grid have as many "
                         f"dimensions, got shapes {list(input.shape)} and {list(grid.shape)}")
    if grid.shape[0] != input.shape[0] or grid.shape[-1] != input.ndim - 2:
        raise ShapeError(f"{_OP}: for an input of shape {list(input.shape)} grid must be ({input.shape[0]}, "
                         f"..., {input.ndim - 2}), got shape {list(grid.shape)}")
    if 0 in input.shape[1:]:
        raise ShapeError(f"{_OP}: input must have pixels and channels, got shape {list(input.shape)}")
    if mode not in _TAPS:
        raise ValueError(f"{_OP}: mode must be 'bilinear', 'nearest' or 'bicubic', got {mode!r}")
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(f"{_OP}: padding_mode must be 'zeros', 'border' or 'reflection', got "
                         f"{padding_mode!r}")
    if mode == "bicubic" and input.ndim != 4:
        raise ShapeError(f"{_OP}: mode='bicubic' is for inputs (n, c, h, w), got shape {list(input.shape)}; "
                         f"use 'bilinear'")


@public("nn.functional", op=fold_into, autocast=by_place("widest", "float32"), deferred=True)
def grid_sample(input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros",
                align_corners: bool | None = None) -> Tensor:
    """The image read at the places of ``grid`` (spatial transformer networks, arXiv:1506.02025).

    input (n, c, h, w) and grid (n, y, x, 2) give (n, c, y, x); input (n, c, d, h, w) and grid
    (n, z, y, x, 3) give (n, c, z, y, x). The grid's last dimension holds (x, y) or (x, y, z), from -1 to 1
    across the image: between the centres of the outer pixels with ``align_corners``, else between their
    outer edges. mode: "bilinear" (of 8 neighbours for volumes), "nearest", "bicubic" (images only).
    padding_mode: what lies outside: "zeros", "border" (the nearest pixel) or "reflection". Floating dtypes,
    the same for both. Raises ShapeError, DTypeError or ValueError.

    >>> image = fw.tensor([[[[0.0, 1.0], [2.0, 3.0]]]])
    >>> fw.nn.functional.grid_sample(image, fw.tensor([[[[0.0, 0.0], [1.0, 1.0]]]]), align_corners=True)
    tensor([[[[1.5000, 3.0000]]]])
    """
    return _sample(input, grid, mode, padding_mode, align_corners)


def sample_steps(input: Tensor, grid: Tensor, mode: str, padding_mode: str, align_corners: Any) -> list[Step]:
    """The steps of ``grid_sample``."""
    _check(input, grid, mode, padding_mode)
    settings = {"mode": mode, "padding": padding_mode, "align": bool(align_corners)}
    if not _has_kernel(input, grid):
        return [(_whole, 2, settings)]
    return [(sample_op.run, 2, settings)]


_sample = planned(sample_steps)


def _sampled(input: Tensor, grid: Tensor, *, mode: str, padding: str, align: bool) -> Tensor:
    x: Any = to(input, np.float32) if input.itemsize == 2 else input
    places: Any = to(grid, np.float32) if input.itemsize == 2 else grid
    n, c, *size = x.shape
    out = grid.shape[1:-1]
    count = math.prod(out)
    pixels = take_shape(x, (n, c, math.prod(size)))
    taps = []
    for i, s in enumerate(size):
        at = take_shape(places.select(-1, len(size) - 1 - i), (n, count))
        taps.append(_along(_pixels(at, s, align), s, mode, padding, align))
    total: Any = None
    for corner in itertools.product(*taps):
        position, inside, weight = corner[0]
        for s, (p, i, w) in zip(size[1:], corner[1:]):
            position, inside, weight = position * s + p, inside & i, weight * w
        weight = where_op.run(inside, weight, 0.0)
        index: Any = expand.run(take_shape(position, (n, 1, count)), size=(n, c, count))
        part = gather(pixels, 2, index) * take_shape(weight, (n, 1, count))  # type: ignore[operator]
        total = part if total is None else total + part
    return to(take_shape(total, (n, c, *out)), input.dtype)


_whole = Whole("grid_sample", "x grid", _sampled, onnx="sampled(x, grid, mode, padding, align)",
               runtime="sampled(x, grid, mode, padding, align)")


def _has_kernel(input: Tensor, grid: Tensor) -> bool:
    """Whether the call is one kernel: without interceptors, batch and forward mode."""
    if quiet.run is None or type(state.enabled) is not bool:
        return False
    kinds = {type(input._array), type(grid._array)}
    if kinds == {np.ndarray}:
        return _native.module is not None
    return device_code.enabled and kinds == {cuda.array_type}


def _sample_kernel(xp: Any, x: Any, grid: Any, **settings: Any) -> Any:
    with no_grad():
        return _sampled(wrap(x), wrap(grid), **settings)._array


def _sample_infer(x: Meta, grid: Meta, **_: Any) -> Meta:
    return Meta((*x.shape[:2], *grid.shape[1:-1]), x.dtype)


def _sample_vjp(g: Any, x: Any, grid: Any, mode: str, padding: str, align: bool, needs: tuple) -> list:
    found = sample_grad(g, x, grid, mode=mode, padding=padding, align=align, wanted=needs)
    return [part if need else None for part, need in zip(found, needs)]


def _grad_kernel(xp: Any, g: Any, x: Any, grid: Any, *, wanted: tuple, **settings: Any) -> tuple:
    with enable_grad():
        given = [wrap(a).requires_grad_() for a in (x, grid)]  # type: ignore[attr-defined]
        found = grad([_sampled(*given, **settings)], given, [wrap(g)])
    return tuple([a._array if want else a._array.reshape(-1)[:0]
                  for a, want in zip(found, wanted)])  # type: ignore[union-attr]


def _grad_infer(g: Meta, x: Meta, grid: Meta, *, wanted: tuple, **_: Any) -> tuple:
    return tuple([a if want else Meta((0,), x.dtype) for a, want in zip((x, grid), wanted)])


def _grad_twice(k: list, g: Any, x: Any, grid: Any, mode: str, padding: str, align: bool, wanted: tuple,
                needs: tuple) -> list:
    def formula(*given: Any) -> tuple:
        return (_sampled(*given, mode=mode, padding=padding, align=align),)
    return twice(formula, k, (g,), (x, grid), wanted, needs)


sample_grad = Op("grid_sample_grad", "g x grid", outputs="gx ggrid", kernel=_grad_kernel, infer=_grad_infer,
                 native="grid_sample_grad", device=cuda_grid.grid_sample_grad, vjp=_grad_twice)
sample_op = Op("grid_sample", "x grid", kernel=_sample_kernel, infer=_sample_infer, native="grid_sample",
               device=cuda_grid.grid_sample, vjp=_sample_vjp, arguments="input grid",
               onnx="sampled(x, grid, mode, padding, align)")


def _steps(size: int, align: bool) -> np.ndarray:
    if size == 1:
        return np.zeros(1)
    return np.linspace(-1.0, 1.0, size) * (1.0 if align else (size - 1) / size)


@lru_cache(maxsize=16)
def _places(inner: tuple[int, ...], align: bool, dtype: np.dtype) -> np.ndarray:
    """The places of all pixels, with a 1 behind each; nobody writes into it."""
    axes = np.meshgrid(*[_steps(s, align) for s in inner], indexing="ij")
    found = np.stack([*axes[::-1], np.ones(inner)], axis=-1).reshape(-1, len(inner) + 1).astype(dtype)
    found.flags.writeable = False
    return found


@public("nn.functional", deferred=True)
def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """The grid for ``grid_sample`` that an affine map gives: ``theta @ (x, y, 1)`` at every pixel.

    theta (n, 2, 3) with size (n, c, h, w) gives (n, h, w, 2); theta (n, 3, 4) with size (n, c, d, h, w)
    gives (n, d, h, w, 3). align_corners: as in ``grid_sample``. Floating dtypes. Raises ShapeError.

    >>> fw.nn.functional.affine_grid(fw.tensor([[[1.0, 0, 0], [0, 1, 0]]]), (1, 1, 1, 2), align_corners=True)
    tensor([[[[-1.,  0.],
              [ 1.,  0.]]]])
    """
    floating(tensor_arg(theta, "affine_grid", "theta"), "affine_grid", "theta")
    n, _, *inner = size = tuple(int(s) for s in size)
    d = len(inner)
    if d not in (2, 3) or min(size) < 1:
        raise ShapeError(f"affine_grid: size must be (n, c, h, w) or (n, c, d, h, w), all positive, got "
                         f"{list(size)}")
    if theta.shape != (n, d, d + 1):
        raise ShapeError(f"affine_grid: theta must be ({n}, {d}, {d + 1}) for size {list(size)}, got shape "
                         f"{list(theta.shape)}")
    places = from_array(_places(tuple(inner), bool(align_corners), theta.dtype.numpy), theta)
    grid = matmul(places, take_order(theta, (0, 2, 1)))
    return take_shape(grid, (n, *inner, d))
