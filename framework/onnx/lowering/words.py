"""The words of elementwise expressions in ONNX: an operator, an expression of other words, or a function."""

from typing import Any

from ... import dtypes
from ...ops.language.words import NUMBERS, WORDS
from ..graph import Edge, Graph, Unsupported


class _Words(dict):
    def __init__(self, g: Graph, given: dict) -> None:
        super().__init__(given)
        self.g = g

    def __missing__(self, name: str) -> Any:
        if name in NUMBERS:
            return NUMBERS[name]
        own = _WORDS.get(name)
        if own is None:
            word = WORDS.get(name)
            if word is not None and isinstance(word.program, tuple):
                parameters, expression = word.program
                return lambda *xs: in_words(self.g, expression, dict(zip(parameters.split(), xs)))
            raise Unsupported(f"ONNX has no function {name}")
        if isinstance(own, str) and own[:1].isupper():
            return lambda *xs: self.g.operator(own)(*_edges(self.g, xs))
        if isinstance(own, str):
            parameters, _, expression = own.partition(": ")
            return lambda *xs: in_words(self.g, expression, dict(zip(parameters.split(), _edges(self.g, xs))))
        return lambda *xs: own(self.g, *xs)


def in_words(g: Graph, text: str, given: dict) -> Any:
    return eval(compile(text, "<expression>", "eval"), {"__builtins__": {}}, _Words(g, given))


def _edges(g: Graph, xs: tuple) -> list:
    like = next(x for x in xs if isinstance(x, Edge))
    return [g.like(x, like) for x in xs]


def where(g: Graph, condition: Edge, x: Any, y: Any) -> Edge:
    edges = [e for e in (x, y) if isinstance(e, Edge)]
    wanted = next((e for e in edges if e.dtype is not dtypes.bool_), edges[0] if edges else None)
    if wanted is None:
        wanted = Edge(g, "", dtypes.get_default_dtype())
    x, y = [g.cast(e, wanted.dtype) if isinstance(e, Edge) else g.like(e, wanted) for e in (x, y)]
    return g.emit("Where", (condition, x, y))


def _whole(g: Graph, x: Edge, op: str) -> Edge:
    return x if not x.dtype.is_floating_point else g.emit(op, (x,))


def _remainder(g: Graph, x: Any, y: Any) -> Edge:
    x, y = _edges(g, (x, y))
    if not x.dtype.is_floating_point:
        return g.emit("Mod", (x, y))
    return x - g.emit("Floor", (x / y,)) * y


def _floor_divide(g: Graph, x: Any, y: Any) -> Edge:
    x, y = _edges(g, (x, y))
    if x.dtype.is_floating_point:
        return g.emit("Floor", (x / y,))
    return (x - g.emit("Mod", (x, y))) / y


def _fmod(g: Graph, x: Any, y: Any) -> Edge:
    return g.emit("Mod", _edges(g, (x, y)), {"fmod": 1})


def _trunc(g: Graph, x: Edge) -> Edge:
    if not x.dtype.is_floating_point:
        return x
    return where(g, x < 0, g.emit("Ceil", (x,)), g.emit("Floor", (x,)))


def _finite(g: Graph, x: Edge) -> Edge:
    return ~(_of_floats("IsInf")(g, x) | _of_floats("IsNaN")(g, x))


def _logical(op: str) -> Any:
    def logical(g: Graph, *xs: Any) -> Edge:
        return g.emit(op, [x if x.dtype is dtypes.bool_ else x != 0 for x in _edges(g, xs)])
    return logical


def _left_shift(g: Graph, x: Any, y: Any) -> Edge:
    x, y = _edges(g, (x, y))
    return x * g.emit("Pow", (g.like(2, x), y))


def _right_shift(g: Graph, x: Any, y: Any) -> Edge:
    x, y = _edges(g, (x, y))
    return _floor_divide(g, x, g.emit("Pow", (g.like(2, x), y)))


def _of_floats(op: str) -> Any:
    return lambda g, x: g.emit(op, (x if x.dtype.is_floating_point else g.cast(x, dtypes.float32),))


# a word as an ONNX operator, as "parameters: expression", or as a function
_WORDS: dict[str, Any] = {
    "abs": "Abs", "acos": "Acos", "acosh": "Acosh", "asin": "Asin", "asinh": "Asinh", "atan": "Atan",
    "atanh": "Atanh", "cos": "Cos", "cosh": "Cosh", "erf": "Erf", "exp": "Exp", "log": "Log", "pow": "Pow",
    "sigmoid": "Sigmoid", "sign": "Sign", "sin": "Sin", "sinh": "Sinh", "sqrt": "Sqrt",
    "tan": "Tan", "tanh": "Tanh",
    "maximum": "Max", "minimum": "Min", "sgn": "Sign", "isnan": _of_floats("IsNaN"),
    "isinf": _of_floats("IsInf"),
    "where": where, "remainder": _remainder, "floor_divide": _floor_divide, "fmod": _fmod,
    "isfinite": _finite, "trunc_divide": lambda g, x, y: _trunc(g, _edges(g, (x, y))[0] / y),
    "logical_and": _logical("And"), "logical_or": _logical("Or"), "logical_xor": _logical("Xor"),
    "logical_not": lambda g, x: ~(x if x.dtype is dtypes.bool_ else x != 0),
    "left_shift": _left_shift, "right_shift": _right_shift,
    "round": lambda g, x: _whole(g, x, "Round"), "floor": lambda g, x: _whole(g, x, "Floor"),
    "ceil": lambda g, x: _whole(g, x, "Ceil"), "trunc": _trunc,
    "expm1": "x: exp(x) - 1", "log1p": "x: log(x + 1)", "log10": "x: log(x) * 0.4342944819032518",
    "log2": "x: log(x) * 1.4426950408889634", "exp2": "x: exp(x * 0.6931471805599453)",
    "hypot": "x y: sqrt(x * x + y * y)", "copysign": "x y: where(y < 0, -abs(x), abs(x))",
    "rsqrt": "x: 1 / sqrt(x)", "erfc": "x: 1 - erf(x)", "signbit": "x: (x < 0) | (1 / x < 0)",
    "gate": "x y: where(x == 0, x, x * y)", "over": "x y: where(x == 0, x, x / y)",
    "ndtr": "x: 0.5 * (1 + erf(x * 0.7071067811865476))",
    "atan2": "y x: where(x > 0, atan(y / x), where(x < 0, atan(y / x) + where(y < 0, -3.141592653589793, "
             "3.141592653589793 + 0 * x), sign(y) * 1.5707963267948966))",
}
