"""assert_close: are two results equal, to the accuracy of their dtype?"""

import warnings
from collections.abc import Mapping, Sequence
from numbers import Number
from typing import Any

import numpy as np

import framework as fw

from ..tensor import Tensor

# (rtol, atol) by dtype: about what one rounding and a few operations lose
TOLERANCES = {"float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5),
              "float64": (1e-7, 1e-7), "complex64": (1.3e-6, 1e-5), "complex128": (1e-7, 1e-7)}


def _tolerances(kinds: tuple[str, str], rtol: float | None, atol: float | None) -> tuple[float, float]:
    if (rtol is None) != (atol is None):
        raise ValueError(f"assert_close: give both rtol and atol or neither; got rtol={rtol}, atol={atol}")
    if rtol is not None and atol is not None:
        return rtol, atol
    loose = [TOLERANCES.get(kind, (0.0, 0.0)) for kind in kinds]
    return max(r for r, _ in loose), max(a for _, a in loose)


def assert_close(actual: Any, expected: Any, *, allow_subclasses: bool = True, rtol: float | None = None,
                 atol: float | None = None, equal_nan: bool = False, check_device: bool = True,
                 check_dtype: bool = True, check_layout: bool = True, check_stride: bool = False,
                 msg: Any = None) -> None:
    """Raise AssertionError unless ``|actual - expected| <= atol + rtol * |expected|`` everywhere.

    Tensors, numbers, arrays, and sequences and mappings of them. Without tolerances those of the dtype,
    looser of the two. Also shape, device, dtype and (if asked) strides must be the same. msg: the message, or
    a function of the one that would be given.

    >>> fw.testing.assert_close(fw.tensor([1.0, 2.0]), fw.tensor([1.0, 2.5]))
    Traceback (most recent call last):
    AssertionError: Tensor-likes are not close!
    <BLANKLINE>
    Mismatched elements: 1 / 2 (50.0%)
    Greatest absolute difference: 0.5 at index (1,) (up to 1e-05 allowed)
    Greatest relative difference: 0.2 at index (1,) (up to 1.3e-06 allowed)
    """
    rules = {"rtol": rtol, "atol": atol, "equal_nan": equal_nan, "device": check_device, "dtype": check_dtype,
             "stride": check_stride, "subclasses": allow_subclasses}
    _tolerances(("", ""), rtol, atol)
    found = _difference(actual, expected, rules, "")
    if found:
        raise AssertionError(msg(found) if callable(msg) else found if msg is None else msg)


def assert_allclose(actual: Any, expected: Any, rtol: float | None = None, atol: float | None = None,
                    equal_nan: bool = True, msg: str = "") -> None:
    """`assert_close` under PyTorch's old name: dtypes and devices may differ."""
    warnings.warn("assert_allclose is PyTorch's old name; use assert_close", FutureWarning, stacklevel=2)
    assert_close(fw.as_tensor(actual), fw.as_tensor(expected), rtol=rtol, atol=atol, equal_nan=equal_nan,
                 check_device=False, check_dtype=False, msg=msg or None)


def _is_list(x: Any) -> bool:
    return isinstance(x, Sequence) and not isinstance(x, str)


def _difference(actual: Any, expected: Any, rules: dict, place: str) -> str:
    """What is not equal, in words; empty if all is."""
    where = f"\n\nThe failure occurred for item {place}" if place else ""
    if _is_list(actual) and _is_list(expected):
        if len(actual) != len(expected):
            return f"The length of the sequences mismatch: {len(actual)} != {len(expected)}{where}"
        pairs = [(f"{place}[{i}]", a, b) for i, (a, b) in enumerate(zip(actual, expected))]
    elif isinstance(actual, Mapping) and isinstance(expected, Mapping):
        if actual.keys() != expected.keys():
            return (f"The keys of the mappings do not match:\nMissing keys in the actual mapping: "
                    f"{sorted(expected.keys() - actual.keys(), key=str)}\nAdditional keys in the actual "
                    f"mapping: {sorted(actual.keys() - expected.keys(), key=str)}{where}")
        pairs = [(f"{place}[{key!r}]", actual[key], expected[key]) for key in expected]
    else:
        found = _pair(actual, expected, rules)
        return found + where if found else ""
    return next(filter(None, (_difference(a, b, rules, inside) for inside, a, b in pairs)), "")


def _pair(actual: Any, expected: Any, rules: dict) -> str:
    if actual is None or expected is None:
        return "" if actual is expected else f"None mismatch: {actual} is not {expected}"
    for x in (actual, expected):
        if not isinstance(x, (Tensor, Number, np.ndarray, np.generic)):
            raise TypeError(f"assert_close: nothing is known to compare {type(actual).__name__} and "
                            f"{type(expected).__name__}; give tensors, numbers, arrays or containers of them")
    if not rules["subclasses"] and type(actual) is not type(expected):
        raise TypeError(f"assert_close: allow_subclasses=False, and the types are {type(actual).__name__} "
                        f"and {type(expected).__name__}")
    if isinstance(actual, Number) and isinstance(expected, Number) and not isinstance(actual, np.generic):
        return _scalars(actual, expected, rules)
    a, b = (x if isinstance(x, Tensor) else fw.as_tensor(x) for x in (actual, expected))
    checks = [("shape", tuple(a.shape), tuple(b.shape), True), ("device", a.device, b.device,
                                                                rules["device"]),
              ("dtype", a.dtype, b.dtype, rules["dtype"]), ("stride()", a.stride(), b.stride(),
                                                            rules["stride"])]
    for name, mine, other, wanted in checks:
        if wanted and mine != other:
            return f"The values for attribute '{name}' do not match: {mine} != {other}."
    return _tensors(a, b, rules)


def _scalars(actual: Any, expected: Any, rules: dict) -> str:
    kinds = tuple("complex128" if isinstance(x, complex) else "float64" if isinstance(x, float) else "int64"
                  for x in (actual, expected))
    if rules["dtype"] and type(actual) is not type(expected):
        return f"The (d)types do not match: {type(actual).__name__} != {type(expected).__name__}"
    rtol, atol = _tolerances(kinds, rules["rtol"], rules["atol"])  # type: ignore[arg-type]
    if actual == expected or rules["equal_nan"] and actual != actual and expected != expected:
        return ""
    off = abs(actual - expected)
    if off <= atol + rtol * abs(expected) < float("inf"):
        return ""
    relative = off / abs(expected) if expected else float("inf")
    if rtol == atol == 0:
        return (f"Scalars are not equal!\n\nExpected {expected} but got {actual}.\nAbsolute difference: "
                f"{off}\n"
                f"Relative difference: {relative}")
    return (f"Scalars are not close!\n\nExpected {expected} but got {actual}.\nAbsolute difference: {off} "
            f"(up to {atol} allowed)\nRelative difference: {relative} (up to {rtol} allowed)")


def _tensors(a: Tensor, b: Tensor, rules: dict) -> str:
    rtol, atol = _tolerances((a.dtype.name, b.dtype.name), rules["rtol"], rules["atol"])
    if a.dtype.name == b.dtype.name and a.dtype.category < 2 and rtol == atol == 0:
        # whole numbers as they are: float64 does not hold all of int64
        x, y = a.detach().cpu().numpy(), b.detach().cpu().numpy()
        close = np.asarray(x == y)
    else:
        wide = fw.complex128 if a.is_complex() or b.is_complex() else fw.float64
        x, y = (v.detach().cpu().to(wide).numpy() for v in (a, b))
        close = np.isclose(x, y, rtol=rtol, atol=atol, equal_nan=rules["equal_nan"])
    if close.all():
        return ""
    wrong = int((~close).sum())
    with np.errstate(all="ignore"):
        off = np.abs(x.astype(np.float64) - y.astype(np.float64)) if x.dtype.kind in "iub" else np.abs(x - y)
        relative = off / np.abs(y)
    exact = rtol == atol == 0
    lines = [f"Tensor-likes are not {'equal' if exact else 'close'}!", "",
             f"Mismatched elements: {wrong} / {x.size} ({100 * wrong / x.size:.1f}%)"]
    for name, values, allowed in (("absolute", off, atol), ("relative", relative, rtol)):
        masked = np.where(close, -np.inf, np.where(np.isnan(values), np.inf, values))
        at = np.unravel_index(int(masked.argmax()), masked.shape)
        more = "" if exact else f" (up to {allowed} allowed)"
        index = f" at index {tuple(int(i) for i in at)}" if at else ""
        lines.append(f"Greatest {name} difference: {values[at]}{index}{more}")
    return "\n".join(lines)
