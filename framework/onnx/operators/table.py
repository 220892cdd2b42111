"""The table of ONNX operators: what each is in this package's functions, by name and since which version.

A function gets the inputs by place (None for those left out) and the attributes by name. One function serves
all versions of an operator whose meaning stayed; inputs that were attributes before are taken either way. It
may ask for ``outputs``, how many are wanted, and ``run``, which runs a graph among its attributes.
"""

import inspect
from collections.abc import Callable
from typing import Any

import framework as fw
from framework import Tensor

TABLE: dict[tuple[str, str], list["Operator"]] = {}
DTYPES = {1: fw.float32, 2: fw.uint8, 3: fw.int8, 4: fw.uint16, 5: fw.int16, 6: fw.int32, 7: fw.int64,
          9: fw.bool,
          10: fw.float16, 11: fw.float64, 12: fw.uint32, 13: fw.uint64, 14: fw.complex64, 15: fw.complex128,
          16: fw.bfloat16}


class Operator:
    """One row: the function, since which version of the operator set, and what it asks for."""

    def __init__(self, name: str, since: int, function: Callable) -> None:
        self.name = name
        self.since = since
        self.function = function
        parameters = inspect.signature(function).parameters.values()
        self.attributes = {p.name for p in parameters if p.kind is p.KEYWORD_ONLY} - {"outputs", "run"}
        self.most = None if any(p.kind is p.VAR_POSITIONAL for p in parameters) else \
            sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)
        self.any = any(p.kind is p.VAR_KEYWORD for p in parameters)
        self.asks = {p.name for p in parameters if p.kind is p.KEYWORD_ONLY} & {"outputs", "run"}


def op(*names: str, since: int = 1, domain: str = "") -> Callable[[Callable], Callable]:
    """Enter a function for these operators."""
    def enter(function: Callable) -> Callable:
        for name in names:
            rows = TABLE.setdefault((domain, name), [])
            rows.append(Operator(name, since, function))
            rows.sort(key=lambda row: -row.since)
        return function
    return enter


def row_of(domain: str, name: str, version: int) -> Operator | None:
    """The row for an operator in a version of its set."""
    for row in TABLE.get((domain, name), ()):
        if row.since <= version:
            return row
    return None


def ints(x: Any, default: Any = None) -> Any:
    """A vector of whole numbers, given as a tensor, a list or not at all."""
    if x is None:
        return default
    if isinstance(x, Tensor):
        return [int(n) for n in x.detach().reshape(-1).tolist()]
    return [int(n) for n in x] if isinstance(x, (list, tuple)) else [int(x)]


def number(x: Any, default: Any = None) -> Any:
    """A number, given as a tensor or not at all."""
    if x is None:
        return default
    return x.detach().reshape(-1)[0].item() if isinstance(x, Tensor) else x


def floating(x: Tensor) -> bool:
    return x.is_floating_point()


def dtype_of(code: int) -> Any:
    """The element type of ONNX's number for it."""
    if code not in DTYPES:
        raise TypeError(f"element type {code} of ONNX is not known here")
    return DTYPES[code]

