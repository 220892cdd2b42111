"""Picking and placing elements."""

from types import ModuleType
from typing import Any

from ..workload import Case, integers, normal, workload
from .pointwise import there_and_back

SMALL = {"rows": 9, "width": 5, "picked": 12}


@workload(tiny=SMALL)
def index_rows(M: ModuleType, *, rows: int = 50_000, width: int = 64, picked: int = 20_000) -> Case:
    """x[index]: 20000 rows of 50000x64, forward and backward."""
    x, i = normal(M, rows, width, requires_grad=True), integers(M, rows, picked)
    return there_and_back(M, lambda: x[i], [x])


@workload(tiny=SMALL)
def embedding(M: ModuleType, *, rows: int = 50_000, width: int = 64, picked: int = 20_000) -> Case:
    """embedding: 20000 of 50000 vectors of width 64, forward and backward."""
    x, i = normal(M, rows, width, requires_grad=True), integers(M, rows, picked)
    return there_and_back(M, lambda: M.nn.functional.embedding(i, x), [x])


@workload(tiny=SMALL)
def gather(M: ModuleType, *, rows: int = 20_000, width: int = 64, picked: int = 20_000) -> Case:
    """gather along the first axis of 20000x64, forward and backward."""
    x, i = normal(M, rows, width, requires_grad=True), integers(M, rows, picked, width)
    return there_and_back(M, lambda: x.gather(0, i), [x])


@workload(tiny=SMALL)
def scatter_add(M: ModuleType, *, rows: int = 2000, width: int = 64, picked: int = 20_000) -> Case:
    """scatter_add of 20000x64 numbers into 2000x64, forward and backward."""
    x, s = normal(M, rows, width, requires_grad=True), normal(M, picked, width, seed=1, requires_grad=True)
    i = integers(M, rows, picked, width)
    return there_and_back(M, lambda: x.scatter_add(0, i, s), [x, s])


@workload(tiny=SMALL)
def index_add(M: ModuleType, *, rows: int = 2000, width: int = 64, picked: int = 20_000) -> Case:
    """index_add of 20000 rows into 2000x64, forward and backward."""
    x, s = normal(M, rows, width, requires_grad=True), normal(M, picked, width, seed=1, requires_grad=True)
    i = integers(M, rows, picked)
    return there_and_back(M, lambda: x.index_add(0, i, s), [x, s])


@workload(tiny={"rows": 6, "width": 5})
def masked(M: ModuleType, *, rows: int = 20_000, width: int = 64) -> Case:
    """x[mask] and where(mask, x, 0) on 20000x64, forward and backward."""
    x = normal(M, rows, width, requires_grad=True)
    mask = normal(M, rows, width, seed=1) > 0

    def make() -> Any:
        return x[mask].sum() + M.where(mask, x, 0.0).square().sum()
    return there_and_back(M, make, [x])


@workload(tiny={"rows": 6, "width": 5})
def assign_rows(M: ModuleType, *, rows: int = 20_000, width: int = 64) -> Case:
    """x[index] = y and x[:, 1::2] += 1 in place on 20000x64, not recorded."""
    x, y = normal(M, rows, width), normal(M, rows // 2, width, seed=1)
    i = integers(M, rows, rows // 2).unique()
    y = y[:len(i)]

    def run() -> Any:
        x[i] = y
        x[:, 1::2] += 1
        return x
    return Case(run)


@workload(tiny={"parts": 3, "rows": 4, "width": 5})
def cat_split(M: ModuleType, *, parts: int = 16, rows: int = 1000, width: int = 64) -> Case:
    """cat of 16 parts of 1000x64 and split again, forward and backward."""
    x = [normal(M, rows, width, seed=s, requires_grad=True) for s in range(parts)]

    def make() -> Any:
        found = M.cat(x, 1).split(width * 2, 1)
        return sum(p.square().sum() for p in found)
    return there_and_back(M, make, x)
