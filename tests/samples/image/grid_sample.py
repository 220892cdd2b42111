"""Rows of ops/image/grid_sample.py."""

import itertools
from typing import Any

import numpy as np

from ..base import Sample, normal, rng, row

IMAGE, VOLUME = normal(2, 2, 3, 4), normal(1, 2, 2, 3, 2)
GRID = rng(4).uniform(-1.3, 1.3, size=(2, 3, 2, 2))
PLACES = rng(5).uniform(-1.2, 1.2, size=(1, 2, 2, 1, 3))
FAR = GRID * 3.7


def _fold(x: float, size: int, padding: str, align: bool) -> float:
    if padding == "reflection":
        low, high = (0.0, size - 1.0) if align else (-0.5, size - 0.5)
        while high > low and not low <= x <= high:
            x = 2 * low - x if x < low else 2 * high - x
    return x if padding == "zeros" else min(max(x, 0.0), size - 1.0)


def _cubic(t: float) -> list[float]:
    def kernel(s: float) -> float:
        s = abs(s)
        return 1.25 * s**3 - 2.25 * s**2 + 1 if s <= 1 else -0.75 * (s**3 - 5 * s**2 + 8 * s - 4)

    return [kernel(t + 1), kernel(t), kernel(1 - t), kernel(2 - t)]


def _taps(x: float, size: int, mode: str, padding: str, align: bool) -> list[tuple[int, float]]:
    x = (x + 1) * (size - 1) / 2 if align else ((x + 1) * size - 1) / 2
    if mode == "bicubic":
        low = int(np.floor(x))
        found = [(_fold(low - 1 + k, size, padding, align), w) for k, w in enumerate(_cubic(x - low))]
    else:
        x = _fold(x, size, padding, align)
        low = int(np.floor(x))
        found = [(np.rint(x), 1.0)] if mode == "nearest" else [(low, 1 - (x - low)), (low + 1, x - low)]
    return [(int(p), w) for p, w in found if 0 <= p <= size - 1]


def sample(x: np.ndarray, grid: np.ndarray, mode: str, padding: str, align: bool) -> np.ndarray:
    """One place after the other."""
    out = np.zeros((*x.shape[:2], *grid.shape[1:-1]))
    for n, *at in np.ndindex(*grid.shape[:-1]):
        places = grid[(n, *at)][::-1]
        for taps in itertools.product(
            *[_taps(p, s, mode, padding, align) for p, s in zip(places, x.shape[2:])]
        ):
            weight = np.prod([w for _, w in taps])
            out[(n, slice(None), *at)] += weight * x[(n, slice(None), *[p for p, _ in taps])]
    return out


def _row(mode: str, padding: str, align: bool, x: np.ndarray, grid: np.ndarray) -> Sample:
    return Sample(
        f"{mode}, {padding}, {align}, {x.ndim - 2}-d, to {abs(grid).max():.0f}",
        lambda M, x, grid: M.nn.functional.grid_sample(x, grid, mode, padding, align),
        (x, grid),
        lambda x, grid: sample(x, grid, mode, padding, align),
        grad=mode != "nearest",
        noncontiguous=padding == "border",
        why="the neighbour is chosen, and jumps" if mode == "nearest" else "",
    )


def _call(M: Any, x: Any, grid: Any, **settings: Any) -> Any:
    return M.nn.functional.grid_sample(x, grid, **settings)


row(
    "grid_sample",
    *[
        _row(mode, padding, align, IMAGE, grid)
        for mode in ("bilinear", "nearest", "bicubic")
        for padding in ("zeros", "border", "reflection")
        for align in (True, False)
        for grid in ((GRID, FAR) if mode != "bicubic" else (GRID,))
    ],
    *[
        _row(mode, padding, False, VOLUME, PLACES)
        for mode in ("bilinear", "nearest")
        for padding in ("zeros", "border", "reflection")
    ],
    Sample(
        "nearest, image",
        lambda M, x: _call(M, x, M.tensor(GRID, dtype=x.dtype), mode="nearest", align_corners=False),
        (IMAGE,),
        lambda x: sample(x, GRID, "nearest", "zeros", False),
    ),
    Sample(
        "no places",
        lambda M, x, g: _call(M, x, g, align_corners=False),
        (IMAGE, np.zeros((2, 0, 2, 2))),
        lambda x, g: np.zeros((2, 2, 0, 2)),
    ),
    Sample(
        "one pixel",
        lambda M, x, g: _call(M, x, g, padding_mode="reflection", align_corners=True),
        (normal(2, 1, 1, 1), GRID),
        lambda x, g: np.broadcast_to(x, (2, 1, 3, 2)),
    ),
    namespace="nn.functional",
    errors=[
        (
            "mode",
            lambda M: _call(M, M.ones(1, 1, 2, 2), M.ones(1, 1, 1, 2), mode="cubic"),
            ValueError,
            "'bicubic'",
        ),
        (
            "padding",
            lambda M: _call(M, M.ones(1, 1, 2, 2), M.ones(1, 1, 1, 2), padding_mode="x"),
            ValueError,
            "padding_mode",
        ),
        (
            "last",
            lambda M: _call(M, M.ones(1, 1, 2, 2), M.ones(1, 1, 1, 3)),
            ValueError,
            "[1, 1, 1, 3]",
        ),
        ("ndim", lambda M: _call(M, M.ones(1, 2, 2), M.ones(1, 1, 2)), ValueError, "(n, c, h, w)"),
        (
            "dtype",
            lambda M: _call(M, M.ones(1, 1, 2, 2), M.ones(1, 1, 1, 2).double()),
            TypeError,
            "float64",
        ),
        ("empty", lambda M: _call(M, M.ones(1, 1, 0, 2), M.ones(1, 1, 1, 2)), ValueError, "pixels"),
        (
            "volume",
            lambda M: _call(M, M.ones(1, 1, 2, 2, 2), M.ones(1, 1, 1, 1, 3), mode="bicubic"),
            ValueError,
            "bilinear",
        ),
        ("word", lambda M: _call(M, "x", M.ones(1, 1, 1, 2)), TypeError, "must be a Tensor"),
    ],
)


def _grid(theta: np.ndarray, inner: tuple[int, ...], align: bool) -> np.ndarray:
    def steps(s: int) -> np.ndarray:
        at = (2 * np.arange(s) + 1) / s - 1 if not align else np.linspace(-1, 1, s)
        return at if s > 1 else np.zeros(1)

    axes = np.meshgrid(*map(steps, inner), indexing="ij")
    points = np.stack([*axes[::-1], np.ones(inner)], -1)
    return np.einsum("...k,njk->n...j", points, theta)


row(
    "affine_grid",
    *[
        Sample(
            f"{len(inner)}-d, {align}, {inner}",
            lambda M, t, inner=inner, align=align: M.nn.functional.affine_grid(
                t, (2, 3, *inner), align
            ),
            (normal(2, len(inner), len(inner) + 1),),
            lambda t, inner=inner, align=align: _grid(t, inner, align),
        )
        for inner in ((3, 4), (2, 1), (2, 3, 2))
        for align in (True, False)
    ],
    namespace="nn.functional",
    errors=[
        (
            "theta",
            lambda M: M.nn.functional.affine_grid(M.ones(2, 3), (1, 1, 2, 2)),
            ValueError,
            "(1, 2, 3)",
        ),
        ("size", lambda M: M.nn.functional.affine_grid(M.ones(1, 2, 3), (1, 1, 2)), ValueError, "size"),
        (
            "dtype",
            lambda M: M.nn.functional.affine_grid(M.ones(1, 2, 3).long(), (1, 1, 2, 2)),
            TypeError,
            "floating",
        ),
    ],
)
