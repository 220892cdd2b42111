"""The kernels of matmul and einsum, and the reading of an einsum equation."""

import math
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from ...backends import device_code
from ...errors import ShapeError
from ..record.rounded import native_or_wide
from . import cublas

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def matmul_kernel(xp: Any, x: Any, y: Any) -> Any:
    if xp is not np:  # without copies of batches, and bfloat16 by the libraries, too
        return plain_product(x, y)
    if x.dtype == np.float16:  # NumPy would add up in half precision, and slowly
        return _cpu_matmul(x.astype(np.float32), y.astype(np.float32)).astype(np.float16)
    if x.ndim > 2 and y.ndim == 2 and x.shape[-1] == y.shape[0]:  # one product for the whole batch
        rows = math.prod(x.shape[:-1])
        return xp.matmul(x.reshape(rows, x.shape[-1]), y).reshape(*x.shape[:-1], y.shape[1])
    return xp.matmul(x, y)


_cpu_matmul = native_or_wide("matmul", partial(matmul_kernel, np), "summed")  # what matmul does on the CPU


def plain_product(x: Any, y: Any) -> Any:
    """``x @ y`` in a formula: NumPy's, which kernels are compared with; on a GPU without copies of what is
    turned."""
    if device_code.is_device_array(x) and device_code.is_device_array(y):
        found = cublas.product(x, y)
        if found is not NotImplemented:
            return found
    return x @ y


def product(x: Any, y: Any) -> Any:
    """``x @ y`` in a rule of derivatives: by our kernels."""
    return _cpu_matmul(x, y) if type(x) is np.ndarray is type(y) else plain_product(x, y)


@lru_cache(maxsize=1024)
def parse(equation: str, ndims: tuple[int, ...]) -> str:
    """The equation with explicit output and the ellipses spelled out in letters of their own."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    said = f"einsum: equation {equation!r}"
    if len(terms) != len(ndims):
        raise ValueError(f"{said} names {len(terms)} operands, but {len(ndims)} were given")
    used = set(equation)
    free = [c for c in LETTERS if c not in used]
    spread = 0
    for i, (term, ndim) in enumerate(zip(terms, ndims)):
        letters = term.replace("...", "", 1)
        if not all(c in LETTERS for c in letters):
            raise ValueError(f"{said}: operand {i} is written {term!r}; wanted letters and one '...'")
        extra = ndim - len(letters)
        if extra < 0 or (extra and "..." not in term):
            raise ShapeError(f"{said}: operand {i} is written {term!r}, {len(letters)} dimensions, but it "
                             f"has {ndim}")
        spread = max(spread, extra)
    dots = "".join(free[:spread])
    full = [t.replace("...", dots[spread - (n - len(t) + 3):] if "..." in t else "")
            for t, n in zip(terms, ndims)]
    if arrow:
        out = right.replace("...", dots)
    else:
        letters = "".join(terms).replace("...", "")
        out = dots + "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    for c in out:
        if out.count(c) > 1 or not any(c in t for t in full):
            raise ValueError(f"{said}: output index {c!r} must occur once there and in an operand")
    return ",".join(full) + "->" + out


def index_sizes(equation: str, shapes: Sequence[tuple[int, ...]]) -> dict[str, int]:
    """The size of every index; raises ShapeError where two operands disagree."""
    sizes: dict[str, int] = {}
    for term, shape in zip(equation.partition("->")[0].split(","), shapes):
        for c, size in zip(term, shape):
            if sizes.get(c, 1) == 1:
                sizes[c] = size
            elif size not in (1, sizes[c]):
                raise ShapeError(f"einsum: index {c!r} of {equation!r} has size {sizes[c]} in one operand "
                                 f"and {size} in another (shapes {', '.join(str(list(s)) for s in shapes)})")
    return sizes


def einsum_kernel(xp: Any, *xs: Any, equation: str) -> Any:
    if len(xs) == 2:
        plan = _plan(equation, tuple(xs[0].shape), tuple(xs[1].shape))
        if plan is not None:
            return _contract(xp, *xs, *plan)
    if len(xs) > 2 and xp is np:
        return _by_pairs(xs, equation)
    result = xp.einsum(equation, *xs, optimize=len(xs) > 2)
    return result if len(xs) > 1 else xp.array(result, copy=True)  # never a view


@lru_cache(maxsize=1024)
def _order(equation: str, shapes: tuple[tuple[int, ...], ...]) -> list[tuple[int, ...]]:
    """The places of the operands that are joined, step by step, as `np.einsum_path` finds them."""
    operands = [np.broadcast_to(np.float32(0), shape) for shape in shapes]
    path: list = np.einsum_path(equation, *operands, optimize="greedy")[0]
    return path[1:]


def _by_pairs(xs: Sequence, equation: str) -> Any:
    """Many operands, two at a time."""
    left, _, out = equation.partition("->")
    operands, terms = list(xs), left.split(",")
    for chosen in _order(equation, tuple([x.shape for x in xs])):
        places = sorted(chosen, reverse=True)
        arrays, names = [operands.pop(i) for i in places], [terms.pop(i) for i in places]
        kept = set(out).union(*terms)
        term = "".join(c for c in dict.fromkeys("".join(names)) if c in kept) if terms else out
        step = ",".join(names) + "->" + term
        few = len(arrays) < 3
        operands.append(einsum_kernel(np, *arrays, equation=step) if few else np.einsum(step, *arrays))
        terms.append(term)
    return operands[0]


def _plain(term: str, other: str, out: str) -> bool:
    return len(set(term)) == len(term) and all(c in other or c in out for c in term)


@lru_cache(maxsize=1024)
def _plan(equation: str, x_shape: tuple[int, ...], y_shape: tuple[int, ...]) -> tuple | None:
    """How two operands are one batched matrix product; None where they are not.

    For each the order of its dimensions and its shape then; of the result its shape, and their order then.
    """
    left, _, out = equation.partition("->")
    x_term, y_term = left.split(",")
    size = dict(zip(x_term, x_shape))
    agree = all(size.get(c, s) == s for c, s in zip(y_term, y_shape))
    if not (agree and _plain(x_term, y_term, out) and _plain(y_term, x_term, out)):
        return None
    size.update(zip(y_term, y_shape))
    batch = [c for c in out if c in x_term and c in y_term]
    rows = [c for c in out if c in x_term and c not in y_term]
    columns = [c for c in out if c not in x_term]
    summed = [c for c in x_term if c in y_term and c not in out]

    def grouped(term: str, *groups: list[str]) -> tuple:
        order = [term.index(c) for group in (batch, *groups) for c in group]
        return order, [size[c] for c in batch] + [math.prod(size[c] for c in g) for g in groups]
    now = batch + rows + columns
    return (grouped(x_term, rows, summed), grouped(y_term, summed, columns),
            ([size[c] for c in now], [now.index(c) for c in out]))


def _contract(xp: Any, x: Any, y: Any, first: tuple, second: tuple, result: tuple) -> Any:
    """Two operands as one batched matrix product, which goes to BLAS."""
    matmul = _cpu_matmul if xp is np else partial(matmul_kernel, xp)
    product = matmul(x.transpose(first[0]).reshape(first[1]), y.transpose(second[0]).reshape(second[1]))
    return product.reshape(result[0]).transpose(result[1])
