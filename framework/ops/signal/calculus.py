"""Integrals and derivatives of sampled functions: the trapezoid rule, differences."""

from typing import Any

import numpy as np

from ...dtypes import BOOL, FLOAT
from ...errors import DTypeError, ShapeError
from ...tensor import Tensor
from ..pointwise.arithmetic import add_op, sub_op
from ..record.args import many_dims, number_arg, one_dim, tensor_arg
from ..record.public import public
from ..reduce.scan import cumsum
from ..shape.join import cat
from ..shape.slices import piece

_SHORT = 32  # points of a line up to which the areas between them are summed one by one


def _line(y: Any, dim: int, name: str) -> int:
    """The dimension of ``y`` along which it is integrated, as a number from 0."""
    at = one_dim(dim, tensor_arg(y, name, "y").ndim, name)
    if not y.ndim:
        raise ShapeError(f"{name}: y must have at least 1 dimension, got a 0-dim tensor")
    if y.dtype.category == BOOL:
        raise DTypeError(f"{name}: y must be numbers, got dtype {y.dtype}; convert it with y.float()")
    return at


def _areas(y: Any, x: Any, at: int, name: str) -> Any:
    """Twice the area between neighbours along a dimension."""
    along = at
    if tensor_arg(x, name, "x").ndim == 1:
        x = x.reshape(-1, *(1,) * (y.ndim - 1 - at))
        along = 0
    if x.ndim <= along or x.shape[along] != y.shape[at]:
        raise ShapeError(f"{name}: x of shape {list(x.shape)} has not the {y.shape[at]} points of y along "
                         f"dimension {at}")
    steps: Any = sub_op.run(*_neighbours(x, along))
    return _heights(y, at) * steps


def _heights(y: Tensor, at: int) -> Any:
    """Twice the height between neighbours."""
    return add_op.run(*_neighbours(y, at))


def _neighbours(x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """All but the first, and all but the last along a dimension."""
    n = x._array.shape[dim]
    return piece(x, dim, min(n, 1), n), piece(x, dim, 0, max(n - 1, 0))


@public(alias="trapz", deferred=True)
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: float | None = None, dim: int = -1) -> Tensor:
    """The integral along ``dim`` by the trapezoid rule; ``x``: the points, else they are ``dx`` (1) apart.

    x has shape (n) or y's. Raises ShapeError if the points do not fit, TypeError for both x and dx.

    >>> fw.trapezoid(fw.tensor([1.0, 2.0, 3.0]))
    tensor(4.)
    """
    if x is not None and dx is not None:
        raise TypeError("trapezoid: only one of x and dx may be given")
    at = _line(y, dim, "trapezoid")
    if x is not None:
        return _areas(y, x, at, "trapezoid").sum(at) * 0.5
    n = y._array.shape[at]
    if n < _SHORT:
        return (_heights(y, at) * (0.5 if dx is None else 0.5 * dx)).sum(at)  # type: ignore[attr-defined]
    inner = piece(y, at, min(n, 1), max(n - 1, 0)).sum(at)
    width = 1 if dx is None else dx
    return (inner + (y.select(at, 0) + y.select(at, -1)) * 0.5) * width


@public()
def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: float | None = None,
                         dim: int = -1) -> Tensor:
    """The running integral along ``dim`` by the trapezoid rule: one element fewer. Arguments: trapezoid.

    >>> fw.cumulative_trapezoid(fw.tensor([1.0, 2.0, 3.0]))
    tensor([1.5000, 4.0000])
    """
    if x is not None and dx is not None:
        raise TypeError("cumulative_trapezoid: only one of x and dx may be given")
    at = _line(y, dim, "cumulative_trapezoid")
    if x is not None:
        areas = _areas(y, x, at, "cumulative_trapezoid") * 0.5
    else:
        areas = _heights(y, at) * (0.5 if dx is None else 0.5 * dx)
    return cumsum(areas, at)


@public()
def gradient(input: Tensor, *, spacing: Any = 1, dim: Any = None, edge_order: int = 1) -> tuple:
    """The derivative along each of ``dim`` (default: all) by second-order differences: a tuple of tensors.

    spacing: the distance of samples (a number, or one per dimension), or a list of their coordinates (one
    1-dim tensor per dimension). edge_order: 1 or 2, of the one-sided differences at the borders. Raises
    ShapeError for a dimension with fewer than ``edge_order + 1`` samples.

    >>> fw.gradient(fw.tensor([1.0, 4.0, 9.0]))
    (tensor([3., 4., 5.]),)
    """
    x: Any = tensor_arg(input, "gradient")
    if edge_order not in (1, 2):
        raise ValueError(f"gradient: edge_order must be 1 or 2, got {edge_order!r}")
    if x.dtype.category < FLOAT:
        x = x.to(float)
    dim = number_arg(dim, "gradient", "dim")
    given = (dim,) if isinstance(dim, int) else dim
    dims = many_dims(None, x.ndim, "gradient") if given is None else tuple(
        [one_dim(d, x.ndim, "gradient") for d in given])
    if len(set(dims)) < len(dims):
        raise ShapeError(f"gradient: dim={dim} names a dimension twice")
    spacing = 1 if spacing is None else spacing
    spaces = list(spacing) if isinstance(spacing, (tuple, list)) else [spacing] * len(dims)
    if len(spaces) != len(dims):
        raise ShapeError(f"gradient: spacing has {len(spaces)} entries for {len(dims)} dimensions")
    return tuple([_slope(x, d, space, edge_order) for d, space in zip(dims, spaces)])


def _even_slope(x: Any, dim: int, step: Any, edge_order: int) -> Any:
    """The same of three samples or more that are equally far apart."""
    n = x.shape[dim]

    def part(start: int, stop: int) -> Any:
        return piece(x, dim, start, stop)

    def at_end(first: int, second: int, third: int) -> Any:
        ends = part(second, second + 1) - part(first, first + 1)
        if edge_order == 2:  # the parabola through the three outermost samples
            ends = 1.5 * ends - 0.5 * (part(third, third + 1) - part(second, second + 1))
        return ends
    left, right = at_end(0, 1, 2) / step, at_end(n - 1, n - 2, n - 3) / -step
    return cat([left, (part(2, n) - part(0, n - 2)) / (2 * step), right], dim)


def _slope(x: Any, dim: int, space: Any, edge_order: int) -> Any:
    n = x.shape[dim]
    if n < edge_order + 1:
        raise ShapeError(f"gradient: dimension {dim} has {n} samples, edge_order={edge_order} needs at least "
                         f"{edge_order + 1}")
    if not isinstance(space, (int, float, complex, np.generic, Tensor)):
        raise TypeError(f"gradient: argument 'spacing' must be a number, or numbers or coordinates per "
                        f"dimension, got {type(space).__name__}")
    if not isinstance(space, Tensor) and n > 2:
        return _even_slope(x, dim, space, edge_order)
    if isinstance(space, Tensor) and space.ndim:
        if space.shape != (n,):
            raise ShapeError(f"gradient: the coordinates of dimension {dim} must have shape [{n}], got "
                             f"{list(space.shape)}")
        steps: Any = (space[1:] - space[:-1]).reshape(-1, *(1,) * (x.ndim - 1 - dim))  # type: ignore
    else:
        steps = x.new_full((n - 1, *(1,) * (x.ndim - 1 - dim)), 1.0) * space
    slopes: Any = sub_op.run(*_neighbours(x, dim)) / steps  # type: ignore[operator]
    left, right = slopes.narrow(dim, 0, 1), slopes.narrow(dim, n - 2, 1)
    if n == 2:
        return cat([left, right], dim)
    before, after = steps[:-1], steps[1:]  # between a point and its neighbours
    second, first = _neighbours(slopes, dim)
    middle = (after * first + before * second) / (before + after)
    if edge_order == 2:  # the parabola through the three outermost samples
        bend = (second - first) / (before + after)
        left = left - bend.narrow(dim, 0, 1) * steps[:1]
        right = right + bend.narrow(dim, n - 3, 1) * steps[-1:]
    return cat([left, middle, right], dim)
