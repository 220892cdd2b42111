"""Elements chosen by a mask or held within limits: where, masked_fill, clamp, nan_to_num."""

from functools import cache
from typing import Any

import numpy as np

from ...backends import array_module, on_device
from ...dtypes import FLOATING, DType, as_dtype, finfo, iinfo
from ...errors import DTypeError, ShapeError, kind_of
from ...tensor import Tensor
from ...tensor import wrap as as_tensor
from ..convert.cast import cast
from ..language.elementwise import Elementwise
from ..record.args import of_one_dtype, tensor_arg
from ..record.into import Call, guard, run_call, with_numbers
from ..record.public import public
from ..shape.complex_parts import as_complex_op, as_real_op
from ..write.inplace import inplace

where_op = Elementwise("where", "condition x y", "where(condition, x, y)", result="select",
                     vjp={"x": "where(condition, g, 0.0)", "y": "where(condition, 0.0, g)"},
                     jvp="linear", complex=True, masks=True)

_NUMBERS = (int, float)


def _where_call(condition: Any, input: Any = None, other: Any = None) -> Call | None:
    return (where_op, (condition, input, other), {}) if other is not None else None


@public(op=where_op, out=True, call=_where_call)
def where(condition: Tensor, input: Any = None, other: Any = None) -> Any:
    """``input`` where the condition holds, else ``other``; with the condition alone, where it holds.

    Shapes broadcast; the condition is bool. No gradient flows to the side not chosen, nan there
    included. With one argument: a tuple of index tensors, as ``nonzero(as_tuple=True)``.

    >>> fw.where(fw.tensor([True, False]), fw.tensor([1.0, 2.0]), 0.0)
    tensor([1., 0.])
    """
    if input is None and other is None:
        return tensor_arg(condition, "where", "condition").nonzero(as_tuple=True)  # type: ignore[attr-defined]
    if tensor_arg(condition, "where", "condition")._array.dtype.kind not in "bu":
        raise DTypeError(f"where: the condition must be bool, got {condition.dtype}; write a "
                         f"comparison, e.g. condition != 0")
    if condition._array.dtype.kind == "u":
        condition = condition.bool()  # type: ignore[attr-defined]
    return where_op.run(condition, input, other)


@public("", method="where", name="where")
def _where_method(input: Tensor, condition: Tensor, other: Any) -> Tensor:
    """This tensor where the condition holds, else ``other``."""
    return where(condition, input, other)


def _masked_fill_call(input: Any, mask: Any, value: Any) -> Call | None:
    return (where_op, (mask, value, input), {}) if type(value) in (int, float) else None


@public(method=True, inplace=True, call=_masked_fill_call, deferred=True)
def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """The tensor with ``value`` (a number or 0-dim tensor) wherever the bool ``mask`` holds.

    The mask broadcasts to the tensor.

    >>> fw.masked_fill(fw.tensor([1.0, 2.0]), fw.tensor([True, False]), -1.0)
    tensor([-1.,  2.])
    """
    tensor_arg(input, "masked_fill")
    if tensor_arg(mask, "masked_fill", "mask")._array.dtype.kind != "b":
        raise DTypeError(f"masked_fill: mask must be bool, got {mask.dtype}; write a comparison, e.g. "
                         f"mask != 0")
    if isinstance(value, Tensor) and value.ndim:
        raise ShapeError(f"masked_fill: value must be a number or a 0-dim tensor, got shape "
                         f"{list(value.shape)}; use where(mask, value, input)")
    if isinstance(value, Tensor):
        value = value.to(input.dtype)  # type: ignore[attr-defined]
    elif input._array.dtype.kind == "b":
        value = bool(value)
    elif input._array.dtype.kind in "iu":
        value = int(value)
    return where_op.run(mask, value, input)


clamp_min_op = Elementwise("clamp_min", "x", "maximum(x, low)", settings="low", jvp="symmetric", masks=True,
                         vjp={"x": "where(x < low, 0.0, g)"}, onnx="Clip(x, low)")
_clamp_high = Elementwise("clamp_max", "x", "minimum(x, high)", settings="high", jvp="symmetric", masks=True,
                          vjp={"x": "where(x > high, 0.0, g)"}, onnx="Clip(x, None, high)")
_clamp_both = Elementwise("clamp", "x", "minimum(maximum(x, low), high)", settings="low high", masks=True,
                          jvp="symmetric", vjp={"x": "where((x < low) | (x > high), 0.0, g)"},
                          onnx="Clip(x, low, high)")


def _python(number: Any) -> Any:
    """Python's number for NumPy's, which would bring its own dtype."""
    return number.item() if isinstance(number, np.generic) else number


_WITHIN = "(x {} y) | (x != x)"  # a limit of nan gives nan
_limit_low, _limit_high = (
    Elementwise(f"clamp_{name}", "x y", f"where({within}, x, y)", masks=True,
                vjp={"x": f"where({within}, g, 0.0)", "y": f"where({within}, 0.0, g)"})
    for name, within in (("low", _WITHIN.format(">=")), ("high", _WITHIN.format("<="))))


_limit_both = Elementwise("clamp_low_high", "x y z", "minimum(maximum(x, y), z)", masks=True, vjp={
    "x": "where(((x >= y) & (x <= z)) | (x != x), g, 0.0)",
    "y": "where((x >= y) | (x != x), 0.0, where((y <= z) | (y != y), g, 0.0))",
    "z": "where((maximum(x, y) <= z) | (x != x) | (y != y), 0.0, g)"})


_RANGES = {np.dtype(name): (int(np.iinfo(name).min), int(np.iinfo(name).max))
           for name in ("int8", "uint8", "int16", "int32", "int64")}


def _holds(dtype: np.dtype, limit: Any) -> bool:
    """Whether a limit is no whole number, or one of this whole dtype."""
    low, high = _RANGES.get(dtype, (1, 0))
    return low <= limit <= high if type(limit) is int else low <= high


@with_numbers(_clamp_both, _limit_both)
def _clamp_call(input: Any, min: Any = None, max: Any = None) -> Call | None:
    """What clamps in one pass: numbers that the dtype holds, and one tensor."""
    if not isinstance(input, Tensor) or min is None and max is None:
        return None
    if isinstance(min, Tensor) and (max is None or isinstance(max, Tensor)):
        return (_limit_low, (input, min), {}) if max is None else (_limit_both, (input, min, max), {})
    min, max = _python(min), _python(max)
    numbers: tuple = ()
    if input._array.dtype.kind in FLOATING:
        numbers = (int, float)
    elif _holds(input._array.dtype, min) and _holds(input._array.dtype, max):
        numbers = (int,)
    if type(min) in numbers and type(max) in numbers:
        return (_clamp_both, (input,), {"low": min, "high": max})
    if min is None:
        return _limit_call(input, max, numbers, _clamp_high, _limit_high, "high")
    return _limit_call(input, min, numbers, clamp_min_op, _limit_low, "low") if max is None else None


def _limit_call(x: Tensor, limit: Any, numbers: tuple, of_number: Elementwise, of_tensor: Elementwise,
                setting: str) -> Call | None:
    if isinstance(limit, Tensor):
        return (of_tensor, (x, limit), {})
    return (of_number, (x,), {setting: limit}) if type(limit) in numbers else None


@public(method="clamp clip", inplace=True, alias="clip", op=clamp_min_op, out=True, call=_clamp_call)
def clamp(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """The element limited to [min, max]; each a number, a tensor or None.

    The gradient is 0 outside the limits. Raises ValueError if both limits are None.

    >>> fw.clamp(fw.tensor([-2.0, 0.5, 2.0]), -1.0, 1.0)
    tensor([-1.0000,  0.5000,  1.0000])
    """
    if type(input) is Tensor and input._array.dtype.kind in FLOATING:
        if type(min) in _NUMBERS:
            if type(max) in _NUMBERS:
                return _clamp_both.run(input, low=min, high=max)
            if max is None:
                return clamp_min_op.run(input, low=min)
        elif min is None and type(max) in _NUMBERS:
            return _clamp_high.run(input, high=max)
    if type(min) is float is type(max) and (x := _as_limited(tensor_arg(input, "clamp"))) is not None:
        return _clamp_both.run(x, low=min, high=max)
    if max is None and of_one_dtype(input, min) is True:
        return _limit_low.run(input, min)
    tensor_arg(input, "clamp")
    if min is None and max is None:
        raise ValueError("clamp: at least one of min and max is needed")
    call = _clamp_call(input, min, max)
    if call is not None:
        return run_call(call)
    result = input
    min, max = _python(min), _python(max)
    if min is not None:
        result = _limit(result, min, clamp_min_op, _limit_low, "low")
    if max is not None:
        result = _limit(result, max, _clamp_high, _limit_high, "high")
    return result


def _as_limited(x: Tensor) -> Tensor | None:
    """What limits with fractions are set to: floating numbers, whole ones as such; None of others."""
    kind = x._array.dtype.kind
    return x if kind in FLOATING else cast.run(x, dtype=as_dtype(float)) if kind in "iu" else None


def _limit(x: Tensor, limit: Any, op: Elementwise, of_tensor: Elementwise, setting: str) -> Tensor:
    if isinstance(limit, Tensor):
        return of_tensor.run(x, limit)
    if not isinstance(limit, int | float):
        raise TypeError(f"clamp: {'min' if setting == 'low' else 'max'} must be a number or a Tensor, got "
                        f"{kind_of(limit)}")
    if isinstance(limit, float) and x._array.dtype.kind in "iub":
        x = cast.run(x, dtype=as_dtype(float))
    if x._array.dtype.kind in "iu":
        limit = _fitting(x, limit, setting)
    return op.run(x, **{setting: limit})


def _fitting(x: Tensor, limit: int, setting: str) -> int:
    """The limit as a number of the integer dtype: one that no element can be beyond changes nothing."""
    info = iinfo(x.dtype)
    if (limit > info.max) if setting == "low" else (limit < info.min):
        name = "min" if setting == "low" else "max"
        raise ValueError(f"clamp: {name}={limit} does not fit into {x.dtype}, [{info.min}, {info.max}]; "
                         f"convert the tensor first")
    return max(limit, info.min) if setting == "low" else min(limit, info.max)


@public(method=True, inplace=True, out=True,
        call=with_numbers(clamp_min_op, _limit_low)(lambda input, min: _clamp_call(input, min)))
def clamp_min(input: Tensor, min: Any) -> Tensor:
    """The element, but at least ``min``.

    >>> fw.clamp_min(fw.tensor([-1.0, 1.0]), 0.0)
    tensor([0., 1.])
    """
    if of_one_dtype(input, min) is True:
        return _limit_low.run(input, min)
    if type(min) is float and isinstance(input, Tensor) and (x := _as_limited(input)) is not None:
        return clamp_min_op.run(x, low=min)
    return clamp(input, min=min)


@public(method=True, inplace=True, out=True,
        call=with_numbers(_clamp_high, _limit_high)(lambda input, max: _clamp_call(input, max=max)))
def clamp_max(input: Tensor, max: Any) -> Tensor:
    """The element, but at most ``max``.

    >>> fw.clamp_max(fw.tensor([-1.0, 1.0]), 0.0)
    tensor([-1.,  0.])
    """
    if of_one_dtype(input, max) is True:
        return _limit_high.run(input, max)
    if type(max) is float and isinstance(input, Tensor) and (x := _as_limited(input)) is not None:
        return _clamp_high.run(x, high=max)
    return clamp(input, max=max)


_nan_to_num = Elementwise(
    "nan_to_num", "x", "where(x != x, nan, where(x == 1e999, high, where(x == -1e999, low, x)))",
    settings="nan high low", jvp="symmetric", masks=True, whole=True, vjp={"x": "where(isfinite(x), g, 0.0)"})
# by the dtype's own limits, beyond which nothing but inf lies
_nan_to_limits = Elementwise(
    "nan_to_limits", "x", "where(x != x, nan, minimum(maximum(x, low), high))",
    settings="nan high low", jvp="symmetric", masks=True, vjp={"x": "where(isfinite(x), g, 0.0)"})


def _nan_call(input: Any, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Call | None:
    if type(input) is not Tensor and not isinstance(input, Tensor) or input._array.dtype.kind not in FLOATING:
        return None
    least, most = _LIMITS.get(input._array.dtype) or _limits(input.dtype)
    if type(nan) is not float:
        nan = float(nan) if type(nan) is int else _replacement(nan, 0.0, "nan")
    if posinf is neginf is None:
        return _nan_to_limits, (input,), {"nan": nan, "high": most, "low": least}
    return _nan_to_num, (input,), {"nan": nan, "high": _replacement(posinf, most, "posinf"),
                                   "low": _replacement(neginf, least, "neginf")}


_nan_call.keeps_whole = True  # type: ignore[attr-defined]


@public(method=True, inplace=True, out=True, op=_nan_to_num, call=_nan_call)
def nan_to_num(input: Tensor, nan: float = 0.0, posinf: float | None = None,
               neginf: float | None = None) -> Tensor:
    """nan, inf and -inf replaced: by 0 and the dtype's largest and smallest number unless given.

    Of complex numbers in each part.

    >>> fw.nan_to_num(fw.tensor([float("nan"), 1.0]))
    tensor([0., 1.])
    """
    if posinf is neginf is None and type(nan) is float and type(input) is Tensor \
            and input._array.dtype.kind in FLOATING:
        least, most = _LIMITS.get(input._array.dtype) or _limits(input.dtype)
        return _nan_to_limits.run(input, nan=nan, high=most, low=least)
    call = _nan_call(tensor_arg(input, "nan_to_num"), nan, posinf, neginf)
    if call is not None:
        return run_call(call)
    if not input.is_complex():
        return input.clone()  # type: ignore[attr-defined]
    parts = as_real_op.run(input)
    return as_complex_op.run(nan_to_num(parts, nan, posinf, neginf))


_LIMITS = {np.dtype(char): (float(np.finfo(char).min), float(np.finfo(char).max)) for char in "fd"}


@cache
def _limits(dtype: DType) -> tuple[float, float]:
    info = finfo(dtype)
    return info.min, info.max


def _replacement(value: Any, default: float, name: str) -> float:
    if value is None:
        return default
    if type(value) is float:
        return value
    if isinstance(value, Tensor) and not value.ndim:
        value = value.item()
    if not isinstance(value, (int, float, np.floating, np.integer)):
        raise TypeError(f"nan_to_num: {name} must be a number, got {type(value).__name__}")
    return float(value)


def _with_diagonal(input: Tensor, fill_value: float, wrap: bool) -> Tensor:
    if input.ndim < 2 or (input.ndim > 2 and len(set(input.shape)) != 1):
        raise ShapeError(f"fill_diagonal_: wanted a matrix, or more dimensions of one size, got shape "
                         f"{list(input.shape)}")
    xp = array_module(input._array)
    with on_device(input._array):
        mask = xp.zeros(input.shape, bool)
        xp.fill_diagonal(mask, True, wrap)
    return masked_fill(input, as_tensor(mask), fill_value)


_fill_diagonal = inplace(_with_diagonal, "fill_diagonal", None)


@public("", method=True)
def fill_diagonal_(input: Tensor, fill_value: float, wrap: bool = False) -> Tensor:
    """Set the elements whose indices are all equal to ``fill_value``; returns this tensor.

    wrap: in a matrix of more rows than columns, start again below the diagonal, one row left out. Raises
    ShapeError below 2 dimensions, or for more of different sizes.

    >>> fw.zeros(2, 3).fill_diagonal_(5)
    tensor([[5., 0., 0.],
            [0., 5., 0.]])
    """
    if tensor_arg(input, "fill_diagonal_").ndim == 2 and not wrap:
        guard(input, "fill_diagonal_")
        input.diagonal().fill_(fill_value)  # type: ignore[attr-defined]
        return input
    return _fill_diagonal(input, fill_value, wrap)
