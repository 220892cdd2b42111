"""Reductions and broadcasting on large arrays."""

from types import ModuleType
from typing import Any

from ..workload import Case, integers, normal, workload
from .pointwise import FLOAT, SMALL, there_and_back


@workload(tiny=SMALL)
def sum_rows(M: ModuleType, *, rows: int = 4096, columns: int = 1024) -> Case:
    """Sum over the last axis of 4096x1024, not recorded."""
    x = normal(M, rows, columns)
    return Case(lambda: x.sum(1), bytes=FLOAT * rows * columns)


@workload(tiny=SMALL)
def sum_columns(M: ModuleType, *, rows: int = 4096, columns: int = 1024) -> Case:
    """Sum over the first axis of 4096x1024, not recorded."""
    x = normal(M, rows, columns)
    return Case(lambda: x.sum(0), bytes=FLOAT * rows * columns)


@workload(tiny=SMALL)
def max_rows(M: ModuleType, *, rows: int = 4096, columns: int = 1024) -> Case:
    """Largest of each row of 4096x1024 and where it is, not recorded."""
    x = normal(M, rows, columns)
    # of equal numbers any place is right
    return Case(lambda: x.max(1), lambda r: [r[0], x.gather(1, r[1].unsqueeze(1))],
                bytes=FLOAT * rows * columns)


@workload(tiny=SMALL)
def standardize(M: ModuleType, *, rows: int = 4096, columns: int = 1024) -> Case:
    """(x - mean) / sqrt(var + 1e-5) by columns of 4096x1024, forward and backward."""
    x = normal(M, rows, columns, requires_grad=True)

    def make() -> Any:
        return (x - x.mean(0)) / (x.var(0) + 1e-5).sqrt()
    return there_and_back(M, make, [x], 5 * FLOAT * rows * columns)


@workload(tiny={"rows": 6, "columns": 7})
def outer_sum(M: ModuleType, *, rows: int = 2048, columns: int = 2048) -> Case:
    """A column times a row plus a row, 2048x2048, and gradients summed back to the three vectors."""
    a = normal(M, rows, 1, requires_grad=True)
    b, c = (normal(M, columns, seed=s, requires_grad=True) for s in (1, 2))
    return there_and_back(M, lambda: a * b + c, [a, b, c], 4 * FLOAT * rows * columns)


@workload(tiny=SMALL)
def cross_entropy(M: ModuleType, *, rows: int = 4096, columns: int = 1024) -> Case:
    """cross_entropy of 4096 rows over 1024 classes, forward and backward."""
    x, y = normal(M, rows, columns, requires_grad=True), integers(M, columns, rows)
    return there_and_back(M, lambda: M.nn.functional.cross_entropy(x, y), [x], 3 * FLOAT * rows * columns)


@workload(tiny=SMALL)
def cumsum(M: ModuleType, *, rows: int = 2048, columns: int = 1024) -> Case:
    """cumsum along the rows of 2048x1024, forward and backward."""
    x = normal(M, rows, columns, requires_grad=True)
    return there_and_back(M, lambda: x.cumsum(1), [x], 4 * FLOAT * rows * columns)


@workload(tiny=SMALL)
def sort(M: ModuleType, *, rows: int = 512, columns: int = 1024) -> Case:
    """Sort the rows of 512x1024, not recorded."""
    x = normal(M, rows, columns)
    return Case(lambda: x.sort(1), lambda r: [r[0], x.gather(1, r[1])])
