"""What CuPy 14.2 refuses by dtype, and where it says nothing; from its sources and the package itself.

``loops.json`` is ``{ufunc: ufunc.types}`` with ml_dtypes installed, "E" being bfloat16. Linear algebra of
singular matrices gives NaN there, and raises only inside ``cupyx.errstate(linalg="raise")``; here it fails
then, too, and otherwise raises NotImplementedError, so that it is seen.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

LOOPS = json.loads((Path(__file__).parent / "loops.json").read_text())
AT = {"add": "ilefdILqQ", "subtract": "iI", "maximum": "ilfdILqQ", "minimum": "ilfdILqQ"}
OPERATORS = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide",
    "mod": "remainder", "pow": "power", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
    "lshift": "left_shift", "rshift": "right_shift", "lt": "less", "le": "less_equal", "eq": "equal",
    "ne": "not_equal", "gt": "greater", "ge": "greater_equal", "neg": "negative", "abs": "absolute",
    "invert": "invert"}
UNARY = ("negative", "absolute", "invert")
NO_BFLOAT16 = {
    "sort", "argsort", "lexsort", "partition", "argpartition", "unique", "searchsorted", "argmax", "argmin",
    "bincount", "cumsum", "cumprod", "histogram", "median", "quantile", "einsum", "tensordot", "kron"}


def char(array: Any) -> str:
    """The letter of an array's dtype; "E" is bfloat16."""
    return "E" if array.dtype.kind == "V" else array.dtype.char


def _fits(given: str, taken: str) -> bool:
    if given == taken or "E" in (given, taken):
        return given == taken or given == "E" and taken in "fdFD" or taken == "E" and given in "?bB"
    return np.can_cast(np.dtype(given), np.dtype(taken), "safe")


def _check(name: str, args: tuple, array: type, known: dict) -> None:
    ins = tuple(char(a) if isinstance(a, array) else None for a in args)
    if name in LOOPS and (name, ins) not in known:
        known[name, ins] = any(
            all(i is None or _fits(i, t) for i, t in zip(ins, loop.split("->")[0])) for loop in LOOPS[name])
    if not known.get((name, ins), True):
        raise TypeError(f"ufunc {name!r} not supported for the input types {ins}")


def apply(cupy: Any, linalg_mode: Callable[[], str]) -> None:
    """Let the functions of the stand-in refuse what CuPy's refuse."""
    known: dict = {}
    array = cupy.ndarray
    call, at = cupy.ufunc.__call__, cupy.ufunc.at

    def checked_call(self: Any, *args: Any, **kwargs: Any) -> Any:
        _check(self.name, args[:self._f.nin], array, known)
        return call(self, *args, **kwargs)

    def checked_at(self: Any, a: Any, indices: Any, b: Any = None) -> Any:
        if char(a) not in AT.get(self.name, "ilILqQ"):
            raise TypeError(f"cupy.{self.name}.at does not support {a.dtype}")
        return at(self, a, indices, b)

    cupy.ufunc.__call__, cupy.ufunc.at = checked_call, checked_at

    def operator(form: str, name: str) -> None:
        plain = array.__dict__[form]

        def run(self: Any, *others: Any) -> Any:
            _check(name, (self, *others)[:1 if name in UNARY else 2], array, known)
            return plain(self, *others)
        setattr(array, form, run)

    for short, name in OPERATORS.items():
        for form in ("__{}__", "__r{}__", "__i{}__"):
            if form.format(short) in array.__dict__:
                operator(form.format(short), name)
    attribute = array.__getattr__

    def method(self: Any, name: str) -> Any:
        if self._a.dtype.kind == "V" and name in NO_BFLOAT16:
            raise TypeError(f"CuPy's {name} does not take bfloat16")
        return attribute(self, name)

    array.__getattr__ = method
    make = cupy._function

    def function(home: Any, name: str, signature: Any) -> Callable:
        plain, linalg = make(home, name, signature), home.__name__.endswith("linalg")

        def run(*args: Any, **kwargs: Any) -> Any:
            arrays = cupy._arrays([*args, *kwargs.values()])
            chars = {char(a) for a in arrays}
            if "E" in chars and (name in NO_BFLOAT16 or linalg or home.__name__.endswith("fft")):
                raise TypeError(f"CuPy's {name} does not take bfloat16")
            if "E" in chars and name == "matmul" and max(a.ndim for a in arrays) > 2:
                raise TypeError("CuPy's matmul of batches of bfloat16 is its kernel for integers")
            if "e" in chars and linalg:
                raise TypeError("float16 is unsupported in linalg")
            if linalg and name == "solve" and arrays[0].shape[:-1] != arrays[1].shape[:-1]:
                raise ValueError("a must have (..., M, M) shape and b must have (..., M, K) for "
                                 "multidimensional b")
            if linalg and linalg_mode() == "raise":  # it reads what the library says of the matrices
                cupy._counts.wait(name)
            try:
                return plain(*args, **kwargs)
            except np.linalg.LinAlgError as error:
                if linalg_mode() == "raise":
                    raise
                raise NotImplementedError(f"CuPy raises nothing here, it gives NaN ({error})") from None
        return run

    cupy._function = function
