"""The words of the language: every function and operator of a scalar expression, in one table.

A row says how NumPy and CuPy call it, what the native engine does for it, how it is written in CUDA's C++,
and what it is in ONNX. Words with kernels of their own (gamma, Bessel) are added by the rooms that have
these (``add_words``); what a word is on tensors, the records themselves say as they are made
(``OPS_BY_NAME``). ``tests/test_native.py`` holds the table to the engine's instructions
(``_native/program/instructions.h``) and to the expressions of all records.
"""

import ast
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...backends.native import native_or
from ...memory_formats import axes_of
from ..record.rounded import widened
from . import erf as erf_


class Word(NamedTuple):
    """One function of the language, or operator.

    array: its name in the array modules, or what makes it for one of them; None for operators, which arrays
        have themselves, and for words that only the engines know.
    program: the native engine's instruction, or (parameters, expression) for a word that stands for others,
        or None where the engine has nothing.
    onnx: ONNX's operator, "parameters: expression", or a function of ``framework/onnx/lowering/words.py``;
        without it the ``program`` is lowered, if that is an expression.
    cuda, cuda_whole: what the instruction is in CUDA's C++, for floats and for whole numbers: a function
        (CUDA's, or one in ``cuda.py``), or a text with ``{}`` for the operands, in which C is the type that
        is computed in.
    cuda_truth: the same for truth values, of a word that is another function there (``and``, say).
    truth: when the result is a truth value: "always", or where the operands are ("alike").
    """

    array: str | Callable | None
    program: str | tuple[str, str] | None = None
    onnx: str | None = None
    cuda: str | None = None
    cuda_whole: str | None = None
    cuda_truth: str | None = None
    truth: str | None = None


# -- functions that no array module has, or not as they are wanted ----------------------------------


def _gate(xp: Any) -> Callable:
    def gate(x: Any, y: Any) -> Any:
        return _zero_where_zero(xp, x, x * y)
    return gate


def _over(xp: Any) -> Callable:
    def over(x: Any, y: Any) -> Any:
        return _zero_where_zero(xp, x, x / y)
    return over


def _zero_where_zero(xp: Any, x: Any, result: Any) -> Any:
    if xp is np and all_finite(result):  # one cheap pass tells that nothing needs mending
        return result
    return xp.where(x == 0, xp.zeros_like(result), result)


def all_finite(x: Any) -> bool:
    """Whether no element is inf or nan; False also where a sum of large elements overflows."""
    if x.dtype.char not in "fd":
        x = widened(x)
    if x.dtype.char in "fd":
        if not x.flags.c_contiguous:  # in the order of memory, else ``vdot`` makes a copy
            x = x.transpose(axes_of(x))
        return math.isfinite(np.vdot(x, x))
    return bool(np.isfinite(np.add.reduce(x, axis=None)))


def _trunc_divide(xp: Any) -> Callable:
    def trunc_divide(x: Any, y: Any) -> Any:
        if np.result_type(x, y).kind not in "iub":
            return xp.trunc(xp.true_divide(x, y))
        quotient = xp.floor_divide(x, y)
        inexact = quotient * y != x
        return quotient + (inexact & ((x < 0) != (y < 0))).astype(quotient.dtype)
    return trunc_divide


_trunc_divide.native = "trunc_divide"  # type: ignore[attr-defined]  # of whole numbers


def _after_native(name: str, native: str | None = None) -> Callable:
    """The array modules' function ``name``, before which the extension's is asked: of whole numbers, say."""
    def maker(xp: Any) -> Callable:
        return getattr(xp, name)  # type: ignore[no-any-return]
    maker.native = native or name  # type: ignore[attr-defined]
    return maker


def _extreme(name: str) -> Callable:
    """maximum or minimum; of whole numbers natively, also within an expression of several words."""
    def maker(xp: Any) -> Callable:
        function = getattr(xp, name)
        return native_or(f"whole_{name}", function) if xp is np else function
    return maker


def _equals(infinity: float) -> Callable:
    """A maker of whether numbers are this one, which whole numbers never are."""
    def maker(xp: Any) -> Callable:
        return lambda x: xp.zeros(x.shape, bool) if x.dtype.kind in "iub" else x == infinity
    return maker


def _sigmoid(xp: Any) -> Callable:
    def sigmoid(x: Any) -> Any:
        return 0.5 * (1 + xp.tanh(0.5 * x))
    return sigmoid


def _silu_slope(xp: Any) -> Callable:
    def silu_slope(x: Any) -> Any:
        """The derivative of ``x * sigmoid(x)``, with its limits at inf."""
        if x.dtype.kind == "c":
            s = 0.5 * (1 + xp.tanh(0.5 * x))
            return s * (1 + x * (1 - s))
        w = xp.clip(x, -800.0, 800.0)
        e = xp.exp(-xp.abs(w))
        larger = 1 / (1 + e)
        smaller = e * larger
        return xp.where(x < 0, smaller, larger) * (1 + w * xp.where(x < 0, larger, smaller))
    return silu_slope


def _exp2(xp: Any) -> Callable:
    def exp2(x: Any) -> Any:
        return xp.exp2(x) if x.dtype.kind != "c" else xp.exp(x * 0.6931471805599453)
    return exp2


def _sgn(xp: Any) -> Callable:
    """The sign; of a complex number the one of length 1 in its direction."""
    def of_numpy(x: Any) -> Any:
        if x.dtype.kind != "c":
            return xp.sign(x)
        too_long = xp.isinf(xp.abs(x)) & xp.isfinite(x)  # NumPy's sign of these is 1j
        return xp.sign(xp.where(too_long, x / 2, x) if too_long.any() else x)

    def sgn(x: Any) -> Any:
        if x.dtype.kind != "c":
            return xp.sign(x)
        return xp.where(x == 0, x, x / xp.abs(x))
    return of_numpy if xp is np else sgn


_sgn.native = "complex_sign"  # type: ignore[attr-defined]


def _step(name: str) -> Callable:
    """floor, ceil or trunc: integers stay what they are, where NumPy 2.0 and CuPy make floats of them."""
    def make(xp: Any) -> Callable:
        rounded = getattr(xp, name)

        def step(x: Any) -> Any:
            return x.copy() if x.dtype.kind in "biu" else rounded(x)
        return step
    return make


def _logic(name: str) -> Callable:
    """A function of truth; CuPy's do not know complex numbers."""
    def make(xp: Any) -> Callable:
        function = getattr(xp, name)
        if xp is np:
            return function

        def logic(*xs: Any) -> Any:
            return function(*[x != 0 if getattr(x, "dtype", None) is not None and x.dtype.kind == "c" else x
                              for x in xs])
        return logic
    make.native = name  # type: ignore[attr-defined]  # of truth values
    return make


# -- the table -------------------------------------------------------------------------------------


def _numbers(cuda: str) -> dict[str, str]:
    """The same in CUDA for floats and for whole numbers."""
    return {"cuda": cuda, "cuda_whole": cuda}


def _comparison(program: str, cuda: str) -> Word:
    return Word(None, program, truth="always", **_numbers(cuda))  # type: ignore[arg-type]


def _logical(program: str, bits: str, truths: str) -> Word:
    return Word(None, program, cuda_whole=bits, cuda_truth=truths, truth="alike")


def _asked(name: str) -> Word:
    return Word(name, name, name, name, truth="always")


OPERATORS: dict[type, Word] = {  # Python's operators
    ast.Add: Word(None, "add", **_numbers("C({} + {})")),
    ast.Sub: Word(None, "sub", **_numbers("C({} - {})")),
    ast.Mult: Word(None, "mul", **_numbers("C({} * {})")),
    ast.Div: Word(None, "div", cuda="({} / {})"),
    ast.USub: Word(None, "neg", **_numbers("C(-{})")),
    ast.BitAnd: _logical("and", "C({} & {})", "({} && {})"),
    ast.BitOr: _logical("or", "C({} | {})", "({} || {})"),
    ast.BitXor: _logical("xor", "C({} ^ {})", "({} != {})"),
    ast.Invert: _logical("not", "C(~{})", "(!{})"),
    ast.Lt: _comparison("lt", "({} < {})"), ast.LtE: _comparison("le", "({} <= {})"),
    ast.Gt: _comparison("gt", "({} > {})"), ast.GtE: _comparison("ge", "({} >= {})"),
    ast.Eq: _comparison("eq", "({} == {})"), ast.NotEq: _comparison("ne", "({} != {})"),
}
NUMBERS = {"inf": math.inf}
_SHARED = "cos cosh exp log sin sinh sqrt tan tanh"  # everybody has them, ONNX with a capital
_SIGN = {"cuda": "sign_of", "cuda_whole": "C(({0} > 0) - ({0} < 0))"}
WORDS: dict[str, Word] = {
    **{name: Word(name, name, name.capitalize(), name) for name in _SHARED.split()},
    "abs": Word("abs", "abs", "Abs", "fabs", "C({0} < 0 ? -{0} : {0})"),
    "sign": Word("sign", "sign", "Sign", **_SIGN),
    "copysign": Word("copysign", "copysign", "x y: where(y < 0, -abs(x), abs(x))", "copysign"),
    "expm1": Word("expm1", "expm1", "x: exp(x) - 1", "expm1"),
    "fmod": Word(_after_native("fmod"), "fmod", "fmod", "fmod"),
    "hypot": Word("hypot", "hypot", "x y: sqrt(x * x + y * y)", "hypot"),
    "isfinite": _asked("isfinite"),
    "isinf": _asked("isinf"),
    "isnan": _asked("isnan"),
    "log10": Word("log10", "log10", "x: log(x) * 0.4342944819032518", "log10"),
    "log1p": Word("log1p", "log1p", "x: log(x + 1)", "log1p"),
    "log2": Word("log2", "log2", "x: log(x) * 1.4426950408889634", "log2"),
    "maximum": Word(_extreme("maximum"), "maximum", "Max", **_numbers("maximum<C>")),
    "minimum": Word(_extreme("minimum"), "minimum", "Min", **_numbers("minimum<C>")),
    "remainder": Word(_after_native("remainder"), "remainder", "remainder", "remainder_of"),
    "where": Word("where", "where", "where", truth="alike", **_numbers("({} ? {} : {})")),
    "gcd": Word(_after_native("gcd")),
    "lcm": Word(_after_native("lcm")),
    "left_shift": Word(_after_native("left_shift"), None, "left_shift"),
    "nextafter": Word("nextafter", "nextafter"),
    "right_shift": Word(_after_native("right_shift"), None, "right_shift"),
    "isneginf": Word(_equals(-math.inf), ("x", "x == -1e999")),
    "isposinf": Word(_equals(math.inf), ("x", "x == 1e999")),
    "signbit": Word(_after_native("signbit"), None, "x: (x < 0) | (1 / x < 0)"),
    "rsqrt": Word(None, "rsqrt", "x: 1 / sqrt(x)", "rsqrt"),  # the engine's own, for its programs
    "reciprocal": Word(None, "reciprocal", "x: 1 / x", "(C(1) / {})"),
    "softplus_rest": Word(None, "softplus_rest"),
    "acos": Word("arccos", "acos", "Acos", "acos"),
    "acosh": Word("arccosh", "acosh", "Acosh", "acosh"),
    "asin": Word("arcsin", "asin", "Asin", "asin"),
    "asinh": Word("arcsinh", "asinh", "Asinh", "asinh"),
    "atan": Word("arctan", "atan", "Atan", "atan"),
    "atan2": Word("arctan2", "atan2", (
        "y x: where(x > 0, atan(y / x), where(x < 0, atan(y / x) + where(y < 0, -3.141592653589793, "
        "3.141592653589793 + 0 * x), sign(y) * 1.5707963267948966))"), "atan2"),
    "atanh": Word("arctanh", "atanh", "Atanh", "atanh"),
    "pow": Word(_after_native("power", "whole_power"), "pow", "Pow", "pow"),
    "round": Word("rint", "rint", "round", "rint", "{}"),
    "floor": Word(_step("floor"), "floor", "floor", "floor", "{}"),
    "ceil": Word(_step("ceil"), "ceil", "ceil", "ceil", "{}"),
    "trunc": Word(_step("trunc"), "trunc", "trunc", "trunc", "{}"),
    "exp2": Word(_exp2, "exp2", "x: exp(x * 0.6931471805599453)", "exp2"),
    "sgn": Word(_sgn, "sign", "Sign", **_SIGN),
    "gate": Word(_gate, "gate", "x y: where(x == 0, x, x * y)", "gate_of"),
    "over": Word(_over, "over", "x y: where(x == 0, x, x / y)", "over_of"),
    "sigmoid": Word(_sigmoid, "sigmoid", "Sigmoid", "sigmoid_of"),
    "silu_slope": Word(_silu_slope, "silu_slope", None, "silu_slope_of"),
    "erf": Word(erf_.erf, "erf", "Erf", "erf"),
    "erfc": Word(erf_.erfc, "erfc", "x: 1 - erf(x)", "erfc"),
    "ndtr": Word(erf_.ndtr, "ndtr", "x: 0.5 * (1 + erf(x * 0.7071067811865476))",
                 "(C(0.5) * erfc(C(-0.7071067811865476) * {}))"),
    "gelu_slope": Word(erf_.gelu_slope, "gelu_slope", None, "gelu_slope_of"),
    "trunc_divide": Word(_trunc_divide, ("x y", "trunc(x / y)"), "trunc_divide"),
    # the engine meets real numbers only
    "conj": Word(_after_native("conjugate"), ("x", "x")),
    "real": Word("real", ("x", "x")),
    "square": Word("square", ("x", "x * x")),
    "logical_and": Word(_logic("logical_and"), ("x y", "(x != 0) & (y != 0)"), "logical_and"),
    "logical_or": Word(_logic("logical_or"), ("x y", "(x != 0) | (y != 0)"), "logical_or"),
    "logical_xor": Word(_logic("logical_xor"), ("x y", "(x != 0) ^ (y != 0)"), "logical_xor"),
    "logical_not": Word(_logic("logical_not"), ("x", "x == 0"), "logical_not"),
    "fmax": Word(_after_native("fmax", "whole_maximum"), (
        "x y", "where(isnan(x), y, where(isnan(y), x, maximum(x, y)))")),
    "fmin": Word(_after_native("fmin", "whole_minimum"), (
        "x y", "where(isnan(x), y, where(isnan(y), x, minimum(x, y)))")),
    "logaddexp": Word("logaddexp", (
        "x y", "where(x == y, x + 0.6931471805599453, maximum(x, y) + log1p(exp(-abs(x - y))))")),
    "logaddexp2": Word("logaddexp2", (
        "x y", "where(x == y, x + 1, maximum(x, y) + 1.4426950408889634 * log1p(exp2(-abs(x - y))))")),
    # as NumPy does it: exact multiples first, then the whole number that the quotient nearly is
    "floor_divide": Word(_after_native("floor_divide"), (
        "x y", "where(y == 0, x / y, _whole((x - fmod(x, y)) / y - where((fmod(x, y) != 0) & "
               "((y < 0) ^ (fmod(x, y) < 0)), 1, 0), x / y))"), "floor_divide"),
    "_whole": Word(None, (
        "q like", "where(q == 0, copysign(0.0, like), where(q - floor(q) > 0.5, floor(q) + 1, floor(q)))")),
}

OPS_BY_NAME: dict[str, Any] = {}  # what a word is on tensors: the record of its name


# the text in which functions of CUDA's C++ that begin so are defined
CUDA_TEXTS: dict[str, Callable[[], str]] = {}


def add_words(**words: Callable | Word) -> None:
    """Words that the engine does not have: a row each, or alone its ``make(xp)``, for an array module."""
    assert WORDS.keys().isdisjoint(words), words
    WORDS.update({name: word if isinstance(word, Word) else Word(word) for name, word in words.items()})


def of_arrays(name: str, xp: Any) -> Any:
    """What a word means for the arrays of a module."""
    if name in NUMBERS:
        return NUMBERS[name]
    array = WORDS[name].array
    return getattr(xp, array) if isinstance(array, str) else array(xp)  # type: ignore[misc]


def of_tensors(name: str) -> Any:
    """What a word means for tensors."""
    return NUMBERS[name] if name in NUMBERS else OPS_BY_NAME[name]
