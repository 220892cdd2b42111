"""What a device would be asked for: launches, copies from the host, and waits, by name.

A call counts as the launches that CuPy 14 makes for it: one for most, none for what only looks at memory
otherwise, and more for functions that are made of others (``MORE``). A wait is where the host needs a value.
"""

import sys
from collections import Counter
from typing import Any

# functions that CuPy composes of so many kernels (read from its sources); a sort of rows is one, with a copy
MORE = {
    "var": 4,
    "std": 5,
    "mean": 1,
    "nanvar": 5,
    "median": 6,
    "quantile": 8,
    "percentile": 8,
    "clip": 1,
    "argwhere": 3,
    "nonzero": 3,
    "flatnonzero": 3,
    "unique": 6,
    "sort": 2,
    "argsort": 2,
    "searchsorted": 1,
    "cumsum": 2,
    "cumprod": 2,
    "histogram": 3,
    "bincount": 2,
    "roll": 2,
    "pad": 3,
    "tril": 2,
    "triu": 2,
    "eye": 2,
    "linspace": 3,
    "allclose": 3,
    "array_equal": 2,
    "average": 3,
    "cov": 6,
    "cross": 4,
    "kron": 3,
    "diff": 2,
    "trapezoid": 4,
    "inner": 1,
    "tensordot": 1,
    "einsum": 3,
    "logspace": 4,
    "nan_to_num": 1,
}
NONE = {
    "empty",
    "empty_like",
    "ndim",
    "shape",
    "size",
    "can_cast",
    "result_type",
    "shares_memory",
    "may_share_memory",
    "iscomplexobj",
    "isrealobj",
    "isscalar",
    "broadcast_shapes",
}
# functions that need a value on the host: the size of their result, or a truth
WAITS = {"argwhere", "nonzero", "flatnonzero", "unique", "bincount", "allclose", "array_equal", "repeat"}

launches: Counter = Counter()
waits: Counter = Counter()
copies: Counter = Counter()  # from memory of the host


def clear() -> None:
    """Count from nothing."""
    for counter in (launches, waits, copies):
        counter.clear()


def launch(name: str, n: int = 1) -> None:
    """So many kernels have been started."""
    launches[name] += n


def wait(name: str) -> None:
    """The host waits for the device; who waits is the innermost frame outside of the stand-in."""
    from . import graphs

    graphs.refuse(f"{name} waits")
    waits[f"{name} in {_place()}"] += 1


def copy(name: str) -> None:
    """Memory of the host goes to the device."""
    copies[f"{name} in {_place()}"] += 1


def result_of(name: str, views: bool) -> None:
    """A function has been called; views: whether its result is memory that was there."""
    if name in WAITS:
        wait(name)
    if not views and name not in NONE:
        launch(name, MORE.get(name, 1))


def caller() -> str:
    """Who uses memory now."""
    return _place()


def _place() -> str:
    frame: Any = sys._getframe(2)
    while frame and "standin" in frame.f_code.co_filename:
        frame = frame.f_back
    names = []
    while frame and len(names) < 3:
        path = frame.f_code.co_filename
        if "framework" in path and "tests" not in path:
            names.append(f"{path.rpartition('framework/')[2]}:{frame.f_lineno} {frame.f_code.co_name}")
        frame = frame.f_back
    return " < ".join(names) or "the program"


def gathered(name: str, index: Any, views: bool) -> None:
    """An array has been indexed. Masks tell by waiting how many elements they choose."""
    parts = index if isinstance(index, tuple) else (index,)
    masks = [p for p in parts if getattr(getattr(p, "dtype", None), "kind", "") == "b" and p.ndim]
    if masks and name == "getitem":
        wait("mask")
    if not views:
        launch(name, 1 + 2 * len(masks) * (name == "getitem"))


def operator(name: str, operands: Any) -> None:
    """An operator has been applied. Products take rows and columns that lie together; others are copied."""
    if "matmul" not in name:
        launch(name.strip("_"))
        return
    launch("matmul")
    for x in operands:
        a = getattr(x, "_a", None)
        if a is not None and a.ndim >= 2 and not _lies_in_rows(a):
            launch("copy for matmul")


def _lies_in_rows(a: Any) -> bool:
    if a.ndim > 2:
        return a.flags.c_contiguous
    return any(s == a.itemsize for s in a.strides) or 1 in a.shape
