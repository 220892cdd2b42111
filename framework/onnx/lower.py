"""What records name in their ``onnx``: the operations that are more than one ONNX operator.

Every function takes the graph, then edges and settings as they stand in the record's expression. A setting
that depends on a dynamic axis is an ``Extent``; ``Graph.size`` gives it as an edge.
"""

import math
from typing import Any

import numpy as np

from .. import dtypes
from ..ops.image.resample import Plan, taps
from ..ops.language.words import NUMBERS, WORDS
from .graph import Edge, Graph, Names, Unsupported
from .sizes import Extent, Repeated, Varies

# -- elementwise expressions -------------------------------------------------------------------------


def permuted(g: Graph, x: Edge, dims: tuple) -> Edge:
    return g.emit("Transpose", (x,), {"perm": dims}) if dims else x


def elementwise(g: Graph, op: Any, inputs: tuple, settings: dict, dtype: Any) -> Edge:
    """An elementwise record by its expression: each word is an operator, or an expression itself."""
    edges = [x for x in inputs[1 if op.result == "select" else 0:] if isinstance(x, Edge)]
    like = edges[0] if edges else Edge(g, "", dtype)
    given = {n: x if isinstance(x, Edge) else g.like(x, like) for n, x in zip(op.inputs, inputs)}
    for n, value in settings.items():
        given[n] = g.like(value, like) if isinstance(value, (Varies, Extent)) else value
    if op.onnx is not None:
        return evaluated(g, op.onnx, {**given, **settings})
    result = _words(g, op.expr, given)
    return g.cast(result, dtype) if result.dtype is not dtype else result


def evaluated(g: Graph, text: str, given: dict) -> Any:
    """The expression of a record's ``onnx``."""
    return eval(compile(text, "<onnx>", "eval"), {"__builtins__": {}}, Names(g, globals(), given))


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
                return lambda *xs: _words(self.g, expression, dict(zip(parameters.split(), xs)))
            raise Unsupported(f"ONNX has no function {name}")
        if isinstance(own, str) and own[:1].isupper():
            return lambda *xs: self.g.operator(own)(*_edges(self.g, xs))
        if isinstance(own, str):
            parameters, _, expression = own.partition(": ")
            return lambda *xs: _words(self.g, expression, dict(zip(parameters.split(), _edges(self.g, xs))))
        return lambda *xs: own(self.g, *xs)


def _words(g: Graph, text: str, given: dict) -> Any:
    return eval(compile(text, "<expression>", "eval"), {"__builtins__": {}}, _Words(g, given))


def _edges(g: Graph, xs: tuple) -> list:
    like = next(x for x in xs if isinstance(x, Edge))
    return [g.like(x, like) for x in xs]


def _where(g: Graph, condition: Edge, x: Any, y: Any) -> Edge:
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
    return _where(g, x < 0, g.emit("Ceil", (x,)), g.emit("Floor", (x,)))


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
    "where": _where, "remainder": _remainder, "floor_divide": _floor_divide, "fmod": _fmod,
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

# -- shapes ------------------------------------------------------------------------------------------


def reshaped(g: Graph, x: Edge, shape: Any) -> Edge:
    """Reshape; of what depends on dynamic axes at most one size is computed as such, the others are
    copied.
    """
    if isinstance(shape, (Repeated, Varies)):
        return g.emit("Reshape", (x, g.sizes(shape)))
    target: list[Any] = list(shape)
    if x.shape is not None:
        for i, n in enumerate(target):
            if isinstance(n, Extent) and i < len(x.shape) and x.shape[i] == n:
                target[i] = 0
    moving = [i for i, n in enumerate(target) if isinstance(n, Extent)]
    if len(moving) == 1 and -1 not in target and all(
            x.shape is not None and x.shape[i] != 0 for i, n in enumerate(target) if n == 0):
        target[moving[0]] = -1
    copies = [i for i, n in enumerate(target) if isinstance(n, int) and n == 0
              and isinstance(list(shape)[i], Extent)]
    if any(isinstance(n, int) and n == 0 and i not in copies for i, n in enumerate(target)):
        return g.emit("Reshape", (x, g.sizes(shape)), {"allowzero": 1})
    if -1 in target and not any(isinstance(n, Extent) for n in target):
        return g.emit("Reshape", (x, g.ints(target)))
    return g.emit("Reshape", (x, g.sizes(target)))


def sliced(g: Graph, x: Edge, key: tuple) -> Edge:
    """NumPy's basic indexing: Slice, then Squeeze or Gather for numbers, then Unsqueeze for None."""
    given = sum(k is not None and k is not Ellipsis for k in key)
    full: list[Any] = []
    for k in key:
        full += [slice(None)] * (x.ndim - given) if k is Ellipsis else [k]
    full += [slice(None)] * (x.ndim - sum(k is not None for k in full))
    starts: list[Any] = []
    ends: list[Any] = []
    axes: list[int] = []
    steps: list[int] = []
    numbers, new, axis, out = [], [], 0, 0
    for k in full:
        if k is None:
            new.append(out)
            out += 1
            continue
        if isinstance(k, slice):
            if k != slice(None):
                step = 1 if k.step is None else k.step
                if isinstance(step, (Extent, Varies)):
                    raise Unsupported("the step of a slice depends on the size of a dynamic axis")
                starts.append((0 if step > 0 else np.iinfo(np.int64).max) if k.start is None else k.start)
                ends.append((np.iinfo(np.int64).max if step > 0 else np.iinfo(np.int64).min)
                            if k.stop is None else k.stop)
                axes.append(axis)
                steps.append(step)
            out += 1
        else:
            numbers.append((axis, k))
        axis += 1
    for axis, k in numbers:
        starts.append(k)
        if isinstance(k, int):
            ends.append(np.iinfo(np.int64).max if k == -1 else k + 1)
        elif isinstance(k, Extent):
            ends.append(k + 1)
        else:
            raise Unsupported(f"an index that is {k}")
        axes.append(axis)
        steps.append(1)
    if axes:
        x = g.emit("Slice", (x, g.sizes(starts), g.sizes(ends), g.ints(axes), g.ints(steps)))
    if numbers:
        x = g.emit("Squeeze", (x, g.ints([axis for axis, _ in numbers])))
    if new:
        x = g.emit("Unsqueeze", (x, g.ints(new)))
    return x


def expanded(g: Graph, x: Edge, size: tuple) -> Edge:
    return g.emit("Expand", (x, g.sizes(size)))


def diagonal(g: Graph, x: Edge, offset: int, dims: tuple) -> Edge:
    """Diagonals of matrices of fixed size, gathered from them laid flat."""
    n, m = x.shape[dims[0]], x.shape[dims[1]]
    if isinstance(n, Extent) or isinstance(m, Extent):
        raise Unsupported("a diagonal of a matrix whose size is dynamic")
    rest = [i for i in range(x.ndim) if i not in dims]
    flat = g.emit("Transpose", (x,), {"perm": [*rest, *dims]})
    flat = g.emit("Reshape", (flat, g.sizes([*[x.shape[i] for i in rest], n * m])))
    return g.emit("Gather", (flat, g.ints(np.arange(n * m).reshape(n, m).diagonal(offset))), {"axis": -1})


def windows(g: Graph, x: Edge, dim: int, size: int, step: int) -> Edge:
    """``unfold``: windows along a dimension of fixed size, which becomes the last one."""
    n = x.shape[dim]
    if isinstance(n, Extent) or isinstance(size, Extent):
        raise Unsupported("windows along a dynamic axis")
    at = np.arange((n - size) // step + 1)[:, None] * step + np.arange(size)
    taken = g.emit("Gather", (x, g.constant(at)), {"axis": dim})
    order = [i for i in range(x.ndim + 1) if i != dim + 1]
    return g.emit("Transpose", (taken,), {"perm": [*order, dim + 1]})


def flipped(g: Graph, x: Edge, dims: tuple) -> Edge:
    most, least = np.iinfo(np.int64).max, np.iinfo(np.int64).min
    n = len(dims)
    return x if not n else g.emit("Slice",
                                  (x, g.ints([most] * n), g.ints([least] * n), g.ints(dims),
                                   g.ints([-1] * n)))


def rolled(g: Graph, x: Edge, shifts: Any, dims: Any) -> Edge:
    pairs = zip(shifts, dims) if isinstance(shifts, tuple) else [(shifts, dims)]
    if dims is None:
        raise Unsupported("roll without dims")
    most = np.iinfo(np.int64).max
    for shift, dim in pairs:
        n = x.shape[dim] if x.shape is not None else None
        if isinstance(n, int) and isinstance(shift, int):
            shift %= max(n, 1)
        cut = g.size(-shift if isinstance(shift, Extent) else -int(shift))
        axis, shape, dtype = g.ints([dim]), x.shape, x.dtype
        back = g.emit("Slice", (x, cut, g.ints([most]), axis))
        front = g.emit("Slice", (x, g.ints([0]), cut, axis))
        if shift == 0:
            continue
        x = g.emit("Concat", (back, front), {"axis": dim})
        x.shape, x.dtype = shape, dtype
    return x


def tiled(g: Graph, x: Edge, reps: tuple) -> Edge:
    if len(reps) > x.ndim:
        x = g.emit("Unsqueeze", (x, g.ints(range(len(reps) - x.ndim))))
        return g.emit("Tile", (x, g.sizes(reps)))
    return g.emit("Tile", (x, g.sizes([*[1] * (x.ndim - len(reps)), *reps])))


def stacked(g: Graph, xs: tuple, dim: int) -> Edge:
    return g.emit("Concat", [g.emit("Unsqueeze", (x, g.ints([dim]))) for x in xs], {"axis": dim})


def triangle(g: Graph, x: Edge, k: Any, upper: int) -> Edge:
    if x.dtype is dtypes.bool_:  # not every runtime has it for bools
        return g.cast(triangle(g, g.cast(x, dtypes.int64), k, upper), dtypes.bool_)
    return g.emit("Trilu", (x, g.number(k)), {"upper": upper})


def converted(g: Graph, x: Edge, dtype: Any) -> Edge:
    return g.cast(x, dtype)


def filled(g: Graph, x: Edge, value: Any) -> Edge:
    """A value in the shape and dtype of ``x``."""
    value = g.like(value, x)
    value = g.cast(value, x.dtype)
    if value.shape is not None and x.shape is not None and tuple(value.shape) == tuple(x.shape):
        return value
    return g.emit("Expand", (value, g.sizes(x.shape)))


def made(g: Graph, name: str, data: tuple, shape: tuple, dtype: Any, array: Any) -> Edge:
    """A tensor that a program made of no tensors, in every call alike or as large as its inputs ask for."""
    if name in ("rand", "randn", "randint", "randperm", "random", "normal"):
        raise Unsupported(f"{name} draws random numbers")
    if array is not None and not any(isinstance(n, Extent) for n in shape):
        return g.constant(array)
    if name in ("zeros", "empty", "ones", "full") and (data or name == "empty"):
        value = data[0] if data else 0
        edge = g.like(value, Edge(g, "", dtype))
        return g.emit("Expand", (edge, g.sizes(shape)))
    if name == "arange" and len(data) == 3:
        if any(isinstance(n, (float, Varies)) for n in data):
            raise Unsupported("arange of fractions up to a dynamic size")
        counted = g.emit("Range", [g.number(n) for n in data], dtype=dtypes.int64)
        return g.cast(counted, dtype)
    if name == "eye" and len(data) == 2:
        n, m = data[0], data[0] if data[1] is None else data[1]
        rows, columns = [g.emit("Range", (g.number(0), g.number(k), g.number(1)),
                                dtype=dtypes.int64) for k in (n, m)]
        return g.cast(g.emit("Unsqueeze", (rows, g.ints([1]))) == columns, dtype)
    if name == "linspace" and len(data) == 3 and not any(isinstance(n, Varies) for n in data[:2]):
        low, high = (float(n) for n in data[:2])
        places = g.cast(g.emit("Range", [g.number(n) for n in (0, data[2], 1)], dtype=dtypes.int64), dtype)
        last = g.cast(g.number(data[2] - 1), dtype)
        return places * (high - low) / last + low
    raise Unsupported(f"what {name} makes depends on the values or sizes of the inputs")


# -- reductions --------------------------------------------------------------------------------------


def reduced(g: Graph, op: str, x: Edge, dims: Any, keepdim: bool) -> Edge:
    """Axes are an attribute of all but ReduceSum before opset 18."""
    axes = list(range(x.ndim)) if dims is None else [dims] if isinstance(dims, int) else list(dims)
    if not axes:
        return x
    if g.opset >= 18 or op == "ReduceSum":
        return g.emit(op, (x, g.ints(axes)), {"keepdims": int(keepdim)})
    return g.emit(op, (x,), {"axes": axes, "keepdims": int(keepdim)})


def total(g: Graph, x: Edge, dims: Any, keepdim: bool) -> Edge:
    if not x.dtype.is_floating_point:
        x = _as(g, x, dtypes.int64)
    return reduced(g, "ReduceSum", x, dims, keepdim)


def _as(g: Graph, x: Edge, dtype: Any) -> Edge:
    y = g.cast(x, dtype)
    y.shape = x.shape
    return y


def every(g: Graph, x: Edge, dims: Any, keepdim: bool, some: bool) -> Edge:
    """all, any: as the smallest or largest of 0 and 1."""
    x = x if x.dtype is dtypes.bool_ else _shaped(x != 0, x.shape)
    x = _as(g, x, dtypes.int32)
    return g.cast(reduced(g, "ReduceMax" if some else "ReduceMin", x, dims, keepdim), dtypes.bool_)


def _shaped(x: Edge, shape: Any) -> Edge:
    x.shape = shape
    return x


def variance(g: Graph, x: Edge, dims: Any, correction: Any, keepdim: bool) -> Edge:
    axes = tuple(range(x.ndim)) if dims is None else tuple(dims)
    centred = _shaped(x - reduced(g, "ReduceMean", x, axes, True), x.shape)
    square = _shaped(centred * centred, x.shape)
    if not correction:
        return reduced(g, "ReduceMean", square, axes, keepdim)
    count: Any = 1
    for a in axes:
        count = x.shape[a] * count
    return reduced(g, "ReduceSum", square, axes, keepdim) / g.like(count - correction, x)


def norm(g: Graph, x: Edge, ord: float, dims: Any, keepdim: bool) -> Edge:
    if ord in (1, 2):
        return reduced(g, f"ReduceL{int(ord)}", x, dims, keepdim)
    power = _shaped(g.operator("Pow")(g.emit("Abs", (x,)), float(ord)), x.shape)
    return g.operator("Pow")(reduced(g, "ReduceSum", power, dims, keepdim), 1 / ord)


def best(g: Graph, x: Edge, dim: int, keepdim: bool, largest: bool) -> tuple:
    """(values, indices) of ``max`` and ``min`` along a dimension."""
    if x.dtype is dtypes.bool_:
        values, places = best(g, _as(g, x, dtypes.int32), dim, keepdim, largest)
        return g.cast(values, dtypes.bool_), places
    if not x.ndim:
        return x, g.constant(np.int64(0))
    kind = "Max" if largest else "Min"
    places = g.emit(f"Arg{kind}", (x,), {"axis": dim, "keepdims": int(keepdim)}, dtype=dtypes.int64)
    return reduced(g, f"Reduce{kind}", x, (dim,), keepdim), places


def top(g: Graph, x: Edge, k: Any, dim: int, largest: bool) -> tuple:
    values, places = g.emit("TopK", (x, g.size(k)), {"axis": dim, "largest": int(largest), "sorted": 1}, 2)
    places.dtype = dtypes.int64
    return values, places


def ordered(g: Graph, x: Edge, dim: int, descending: bool) -> tuple:
    if not x.ndim:
        return x, g.constant(np.int64(0))
    return top(g, x, x.shape[dim], dim, descending)


def summed(g: Graph, x: Edge, dim: int, reverse: bool) -> Edge:
    if not x.ndim:
        return x
    if not x.dtype.is_floating_point:
        x = g.cast(x, dtypes.int64)
    return g.emit("CumSum", (x, g.constant(np.int64(dim))), {"reverse": int(reverse)})


# -- products ----------------------------------------------------------------------------------------


def linear(g: Graph, x: Edge, w: Edge, b: Any) -> Edge:
    """``x w^T + b``: Gemm for matrices, else MatMul with the weight turned (a constant to a runtime)."""
    if x.ndim == 2:
        return g.emit("Gemm", (x, w, b), {"transB": 1})
    out = g.emit("MatMul", (x, g.emit("Transpose", (w,), {"perm": [1, 0]})))
    return out if b is None else out + b


def attention(g: Graph, q: Edge, k: Edge, v: Edge, mask: Any, causal: bool, scale: float, p: float) -> tuple:
    """(the attention, None): softmax(scale q k^T + mask) v."""
    if isinstance(scale, Varies):
        raise Unsupported("attention whose scale depends on the size of a dynamic axis")
    last = list(range(k.ndim))
    last[-1], last[-2] = last[-2], last[-1]
    scores = g.emit("MatMul", (q * scale, g.emit("Transpose", (k,), {"perm": last})))
    if causal:
        rows, columns = [g.emit("Range", (g.number(0), g.number(n), g.number(1)), dtype=dtypes.int64)
                         for n in (q.shape[-2], k.shape[-2])]
        scores = _where(g, g.emit("Unsqueeze", (rows, g.ints([1]))) >= columns, scores, -math.inf)
    elif mask is not None and mask.dtype is dtypes.bool_:
        scores = _where(g, mask, scores, -math.inf)
    elif mask is not None:
        scores = scores + mask
    weights = g.emit("Softmax", (scores,), {"axis": -1})
    if mask is not None:  # rows that may attend to nothing give 0
        weights = _where(g, g.emit("IsNaN", (weights,)), 0.0, weights)
    if p:
        weights = dropped(g, weights, p)
    return g.emit("MatMul", (weights, v)), None


def dropped(g: Graph, x: Edge, p: float) -> Edge:
    if p >= 1:
        return x * 0.0
    return g.emit("Dropout", (x, g.constant(p, dtypes.float32), g.constant(True, dtypes.bool_)))


# -- recurrent layers --------------------------------------------------------------------------------


def recurrent(g: Graph, kind: str, x: Edge, states: tuple, w_ih: Edge, w_hh: Edge, b_ih: Any, b_hh: Any,
              sizes: Any,
              reverse: bool, order: tuple, **attributes: Any) -> tuple:
    """(y, last states...): LSTM, GRU and RNN. order: which of our gates each of ONNX's is."""
    steps = sizes.count if isinstance(sizes, Repeated) else len(sizes)
    item = sizes.item if isinstance(sizes, Repeated) else sizes[0]
    batch, hidden = states[0].shape
    if not isinstance(sizes, Repeated) and any(n != item for n in sizes) or item != batch:
        raise Unsupported("packed sequences of several lengths")
    first: Any = -1 if isinstance(steps, Extent) else steps
    rows = g.emit("Reshape", (x, g.sizes([first, batch, x.shape[1]])))

    def turned(w: Any) -> Any:
        if order == tuple(range(len(order))):
            return w
        parts = [g.emit("Slice",
                        (w, g.ints([k * hidden]), g.ints([(k + 1) * hidden]), g.ints([0]))) for k in order]
        return g.emit("Concat", parts, {"axis": 0})

    def lead(w: Any) -> Any:
        return g.emit("Unsqueeze", (w, g.ints([0])))
    bias = None
    if b_ih is not None:
        bias = lead(g.emit("Concat", (turned(b_ih), turned(b_hh)), {"axis": 0}))
    inputs = (rows, lead(turned(w_ih)), lead(turned(w_hh)), bias, None, *[lead(s) for s in states])
    attributes = {"hidden_size": hidden, "direction": "reverse" if reverse else "forward", **attributes}
    y, *last = g.emit(kind, inputs, attributes, 1 + len(states))
    y = g.emit("Reshape", (y, g.ints([-1, hidden])))
    return y, *[g.emit("Squeeze", (s, g.ints([0]))) for s in last]


# -- images ------------------------------------------------------------------------------------------


def convolved(g: Graph, x: Edge, w: Edge, b: Any, stride: tuple, padding: tuple, dilation: tuple,
              groups: int) -> Edge:
    return g.emit("Conv", (x, w, b), {"strides": stride, "pads": [*padding, *padding], "dilations": dilation,
                                      "group": groups, "kernel_shape": w.shape[2:]})


def transposed(g: Graph, y: Edge, w: Edge, x_shape: tuple, stride: tuple, padding: tuple, dilation: tuple,
               groups: int) -> Edge:
    kernel = w.shape[2:]
    more = []
    for n, m, s, p, d, k in zip(y.shape[2:], x_shape[2:], stride, padding, dilation,
                                kernel):
        more.append(m - ((n - 1) * s - 2 * p + d * (k - 1) + 1))
    return g.emit("ConvTranspose", (y, w),
                  {"strides": stride, "pads": [*padding, *padding], "dilations": dilation,
                                            "group": groups, "kernel_shape": kernel, "output_padding": more})


def pooled(g: Graph, op: str, x: Edge, kernel: tuple, stride: tuple, padding: tuple, out: tuple,
           dilation: tuple | None = None, include: bool = True, divisor: Any = None) -> Edge:
    """MaxPool, AveragePool; where the window is the image, the global one."""
    d = len(kernel)
    size = x.shape[-d:]
    whole = tuple(kernel) == tuple(size) and not any(padding) and all(n == 1 for n in out)
    if whole and divisor is None and x.ndim == d + 2:
        return g.emit("Global" + op, (x,))
    dilation = dilation or (1,) * d
    ceil = 0
    for n, k, s, p, t, o in zip(size, kernel, stride, padding, dilation, out):
        if (n + (2 * p - t * (k - 1) - 1)) // s + 1 != o:
            ceil = 1
    attributes = {"kernel_shape": kernel, "strides": stride, "pads": [*padding, *padding], "ceil_mode": ceil}
    if op == "MaxPool":
        attributes["dilations"] = dilation
    else:
        attributes["count_include_pad"] = int(include or divisor is not None)
    lead = x.shape[:-d]
    if len(lead) != 2:  # ONNX wants batch and channels
        x = g.emit("Reshape", (x, g.sizes([1, -1, *size])))
    y = g.emit(op, (x,), attributes)
    if divisor is not None:
        y = y * (math.prod(kernel) / divisor)
    return y if len(lead) == 2 else g.emit("Reshape", (y, g.sizes([*lead, *out])))


def padded(g: Graph, x: Edge, pads: tuple, value: Any) -> Edge:
    amounts = g.sizes([lo for lo, _ in pads] + [hi for _, hi in pads])
    return g.emit("Pad", (x, amounts, g.like(value, x)), {"mode": "constant"})


_PADDINGS = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def resampled(g: Graph, x: Edge, dim: int, plan: Any, back: bool) -> Edge:
    """Resizing or padding along one dimension, of fixed sizes: as weighted choices of elements."""
    if any(isinstance(n, (Extent, Varies)) for n in plan) or back:
        raise Unsupported(f"resampling ({plan.kind}) along a dynamic axis")
    out: Any = None
    for index, weight in taps(plan, back):
        part = g.emit("Gather", (x, g.ints(index)), {"axis": dim})
        if weight is not None:
            part = part * g.constant(np.asarray(weight).reshape(-1, *(1,) * (x.ndim - 1 - dim)), x.dtype)
        out = part if out is None else out + part
    return out


def interpolated(g: Graph, x: Edge, size: Any, scale_factor: Any, mode: str, align_corners: Any,
                 recompute: Any, antialias: bool, out: tuple) -> Edge:
    """Resize, by factors where these were given, so that it holds for images of all sizes."""
    modes = {"nearest": "nearest", "nearest-exact": "nearest", "linear": "linear", "bilinear": "linear",
             "trilinear": "linear", "bicubic": "cubic"}
    if mode == "area":
        for i, (n, m) in enumerate(zip(x.shape[2:], out)):
            before = x
            x = resampled(g, x, 2 + i, Plan("area", n, m, 1.0), False)
            x.shape = (*before.shape[:2 + i], m, *before.shape[3 + i:])
        return x
    attributes: dict[str, Any] = {"mode": modes[mode]}
    if mode == "nearest":
        attributes |= {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    elif mode == "nearest-exact":
        attributes |= {"coordinate_transformation_mode": "half_pixel", "nearest_mode": "round_prefer_ceil"}
    elif align_corners:
        attributes |= {"coordinate_transformation_mode": "align_corners"}
    else:
        places = "half_pixel" if mode == "bicubic" else "pytorch_half_pixel"
        attributes |= {"coordinate_transformation_mode": places}
    if mode == "bicubic":
        attributes |= {"cubic_coeff_a": -0.75}
    if antialias:
        if g.opset < 18:
            raise Unsupported("antialias=True before opset 18")
        attributes |= {"antialias": 1}
    d = x.ndim - 2
    if size is None and not recompute:
        factors = list(scale_factor) if isinstance(scale_factor, (tuple, list)) else [scale_factor] * d
        if not any(isinstance(f, (Varies, Extent)) for f in factors):
            scales = g.constant(np.array([1.0, 1.0, *factors], np.float32))
            return g.emit("Resize", (x, None, scales), attributes)
    return g.emit("Resize", (x, None, None, g.sizes([*x.shape[:2], *out])), attributes)


def sampled(g: Graph, x: Edge, grid: Edge, mode: str, padding_mode: str, align: bool) -> Edge:
    names = {"bilinear": "linear", "bicubic": "cubic", "nearest": "nearest"}
    shown = names[mode] if g.opset >= 20 else mode
    return g.emit("GridSample", (x, grid),
                  {"mode": shown, "padding_mode": padding_mode, "align_corners": int(align)})


def _one_hot_kernels(channels: int, kernel: tuple) -> np.ndarray:
    """For each channel and place of the window the kernel that takes this element."""
    count = math.prod(kernel)
    return np.tile(np.eye(count).reshape(count, 1, *kernel), (channels, *(1,) * (1 + len(kernel))))


def columns(g: Graph, x: Edge, kernel: tuple, stride: tuple, padding: tuple, dilation: tuple) -> Edge:
    """``nn.Unfold``: a convolution with the kernels that take one element each."""
    n, c = x.shape[:2]
    w = g.constant(_one_hot_kernels(c, kernel), x.dtype)
    y = g.emit("Conv", (x, w),
               {"strides": stride, "pads": [*padding, *padding], "dilations": dilation, "group": c})
    return g.emit("Reshape", (y, g.sizes([0, c * math.prod(kernel), -1])))


def folded(g: Graph, y: Edge, x_shape: tuple, kernel: tuple, stride: tuple, padding: tuple,
           dilation: tuple) -> Edge:
    """``nn.Fold``, the transposed convolution with the same kernels."""
    c = x_shape[1]
    out = [(m + 2 * p - d * (k - 1) - 1) // s + 1
           for m, k, s, p, d in zip(x_shape[2:], kernel, stride, padding, dilation)]
    image = g.emit("Reshape", (y, g.sizes([0, c * math.prod(kernel), *out])))
    image.shape = (x_shape[0], c * math.prod(kernel), *out)
    w = g.constant(_one_hot_kernels(c, kernel), y.dtype)
    w.shape = (c * math.prod(kernel), 1, *kernel)
    return transposed(g, image, w, x_shape, stride, padding, dilation, c)


# -- normalisation -----------------------------------------------------------------------------------


def normed(g: Graph, x: Edge, weight: Any, bias: Any, dims: tuple, per: tuple, eps: float) -> tuple:
    """Layer, group and instance normalisation: (y, None, None)."""
    trailing = tuple(dims) == tuple(range(x.ndim - len(dims), x.ndim))
    if trailing and len(per) == len(dims) and not any(isinstance(n, Extent) for n in per):
        weight = weight if weight is not None else g.constant(np.ones(per), x.dtype)
        return g.emit("LayerNormalization", (x, weight, bias),
                      {"axis": -len(dims), "epsilon": eps}), None, None
    if trailing and dims[0] == 2 and x.ndim >= 3 and not isinstance(x.shape[1],
                                                                    Extent):
        ones, zeros = [g.constant(np.full(x.shape[1], n), x.dtype) for n in (1.0, 0.0)]
        image = x if x.ndim <= 5 else g.emit("Reshape", (x, g.ints([0, 0, -1])))
        y = g.emit("InstanceNormalization", (image, ones, zeros), {"epsilon": eps})
        if image is not x:
            y = g.emit("Reshape", (y, g.sizes(x.shape)))
    else:
        centred = _shaped(x - reduced(g, "ReduceMean", x, dims, True), x.shape)
        var = reduced(g, "ReduceMean", _shaped(centred * centred, x.shape), dims, True)
        y = centred / g.emit("Sqrt", (var + eps,))
    for w, op in ((weight, "Mul"), (bias, "Add")):
        if w is not None:
            y = g.emit(op, (y, g.emit("Reshape", (w, g.sizes(per)))))
    return y, None, None


def rms_normed(g: Graph, x: Edge, weight: Any, dims: tuple, per: tuple, eps: float) -> tuple:
    square = reduced(g, "ReduceMean", _shaped(x * x, x.shape), dims, True)
    y = x / g.emit("Sqrt", (square + eps,))
    return (y if weight is None else y * g.emit("Reshape", (weight, g.sizes(per)))), None


def batch_normed(g: Graph, x: Edge, mean: Edge, var: Edge, weight: Any, bias: Any, eps: float) -> Edge:
    channels = mean.shape
    weight = g.constant(np.ones(channels), x.dtype) if weight is None else weight
    bias = g.constant(np.zeros(channels), x.dtype) if bias is None else bias
    return g.emit("BatchNormalization", (x, weight, bias, mean, var), {"epsilon": eps})


def unit(g: Graph, x: Edge, dim: int, eps: float) -> Edge:
    size = reduced(g, "ReduceL2", x, (dim,), True)
    return x / g.operator("Max")(size, eps)


# -- by positions ------------------------------------------------------------------------------------


def indexed(g: Graph, x: Edge, index: Edge, dims: tuple) -> Edge:
    """Choice by index tensors, stacked in the first dimension of ``index``, at these dimensions."""
    if len(dims) == 1:
        first = g.emit("Gather", (index, g.constant(np.int64(0))), {"axis": 0})
        return g.emit("Gather", (x, first), {"axis": dims[0]})
    together = dims == tuple(range(dims[0], dims[0] + len(dims)))
    if not together:
        raise Unsupported("indices at dimensions that are apart")
    order = [*dims, *[i for i in range(x.ndim) if i not in dims]]
    turned = x if order == list(range(x.ndim)) else g.emit("Transpose", (x,), {"perm": order})
    rank = index.ndim - 1
    places = g.emit("Transpose", (index,), {"perm": [*range(1, rank + 1), 0]})
    y = g.emit("GatherND", (turned, places))
    if dims[0] == 0:
        return y
    lead = dims[0]
    back = [*range(rank, rank + lead), *range(rank), *range(rank + lead, rank + x.ndim - len(dims))]
    return g.emit("Transpose", (y,), {"perm": back})


def zeros(g: Graph, shape: tuple, like: Edge) -> Edge:
    """Zeros of a shape, in the dtype of another edge."""
    return _shaped(g.emit("Expand", (g.like(0, like), g.sizes(shape))), shape)


def placed(g: Graph, x: Edge, value: Any, index: Edge, dims: tuple, reduction: str = "none") -> Edge:
    """``x`` with a value at the positions of index tensors, or added there."""
    if dims != tuple(range(dims[0], dims[0] + len(dims))):
        raise Unsupported("indices at dimensions that are apart")
    order = [*dims, *[i for i in range(x.ndim) if i not in dims]]
    turned = x if order == list(range(x.ndim)) else g.emit("Transpose", (x,), {"perm": order})
    rank, lead, k = index.ndim - 1, dims[0], len(dims)
    places = g.emit("Transpose", (index,), {"perm": [*range(1, rank + 1), 0]})
    shape = (*index.shape[1:], *[x.shape[i] for i in order[k:]])
    updates = g.cast(g.like(value, x), x.dtype)
    if lead and updates.shape is not None and len(updates.shape) == len(shape):  # positions stand at ``lead``
        back = [*range(lead, lead + rank), *range(lead), *range(lead + rank, len(shape))]
        updates = g.emit("Transpose", (updates,), {"perm": back})
    elif lead and updates.shape not in ((), None):
        raise Unsupported("a value that broadcasts to what it is written to")
    updates = g.emit("Expand", (updates, g.sizes(shape)))
    y = g.emit("ScatterND", (turned, places, updates), {"reduction": reduction})
    if order == list(range(x.ndim)):
        return y
    return g.emit("Transpose", (y,), {"perm": [order.index(i) for i in range(x.ndim)]})


def scattered(g: Graph, x: Edge, index: Edge, src: Any, dim: int) -> Edge:
    source = g.like(src, x)
    if source.shape is None or tuple(source.shape) != tuple(index.shape):
        source = g.emit("Expand", (source, g.sizes(index.shape)))
    return g.emit("ScatterElements", (x, index, source), {"axis": dim})


def put_slice(g: Graph, x: Edge, key: tuple, shape: tuple) -> Edge:
    """Zeros with ``x`` in a slice: padding, where nothing is stepped over."""
    given = sum(k is not None and k is not Ellipsis for k in key)
    full: list[Any] = []
    for k in key:
        full += [slice(None)] * (len(shape) - given) if k is Ellipsis else [k]
    full += [slice(None)] * (len(shape) - len(full))
    low, high = [], []
    for k, n in zip(full, shape):
        if not isinstance(k, slice) or k.step not in (None, 1) or (
                isinstance(k.start, int) and k.start < 0 or isinstance(k.stop, int) and k.stop < 0):
            raise Unsupported("a slice that is stepped over or counted from the end, put back")
        low.append(k.start or 0)
        high.append(0 if k.stop is None else n - k.stop)
    return g.emit("Pad", (x, g.sizes(low + high)), {"mode": "constant"})


def picked(g: Graph, x: Edge, target: Edge, ignore: Any) -> Edge:
    """The score of each target's class, 0 for those ignored."""
    target = _as(g, target, dtypes.int64)
    safe = target if ignore is None else _where(g, target == ignore, 0, target)
    rows = g.emit("GatherElements", (x, g.emit("Unsqueeze", (safe, g.ints([1])))), {"axis": 1})
    scores = g.emit("Squeeze", (rows, g.ints([1])))
    return scores if ignore is None else _where(g, target == ignore, 0.0, scores)


def counted(g: Graph, x: Edge, dims: Any) -> Edge:
    there = x if x.dtype is dtypes.bool_ else x != 0
    return reduced(g, "ReduceSum", _shaped(g.cast(there, dtypes.int64), x.shape), dims, False)


def loss_total(g: Graph, op: Any, inputs: tuple, settings: dict, dtype: Any) -> Edge:
    """The sum of an elementwise loss over its count."""
    rest = {k: v for k, v in settings.items() if k != "count"}
    losses = elementwise(g, op, inputs, rest, dtype)
    whole = g.emit("ReduceSum", (losses,), {"keepdims": 0})
    return whole if settings["count"] == 1 else whole / g.like(settings["count"], whole)


def adaptive_max(g: Graph, x: Edge, d: int, out: tuple) -> Edge:
    size = x.shape[-d:]
    if all(n == 1 for n in out):
        return pooled(g, "MaxPool", x, size, size, (0,) * d, out)
    if any(isinstance(n, Extent) or n % m for n, m in zip(size, out)):
        raise Unsupported("adaptive pooling whose windows are not all of one size, or of a dynamic one")
    kernel = tuple(n // m for n, m in zip(size, out))
    return pooled(g, "MaxPool", x, kernel, kernel, (0,) * d, out)


def relu(g: Graph, x: Edge) -> Edge:
    return g.emit("Relu", (x,)) if x.dtype.is_floating_point else g.emit("Max", (x, g.like(0, x)))


def one_hot(g: Graph, x: Edge, count: Any) -> Edge:
    if not x.ndim:
        row = one_hot(g, _shaped(g.emit("Unsqueeze", (x, g.ints([0]))), (1,)), count)
        return g.emit("Squeeze", (row, g.ints([0])))
    return g.emit("OneHot", (x, g.size(count), g.ints([0, 1])), {"axis": -1}, dtype=dtypes.int64)


def selected(g: Graph, x: Edge, mask: Edge) -> Edge:
    """The elements where a mask holds; the mask covers the first dimensions."""
    lead = mask.ndim
    rest = x.shape[lead:]
    flat = x if lead == 1 else g.emit("Reshape", (x, g.sizes([-1, *rest])))
    return g.emit("Compress", (flat, g.emit("Reshape", (mask, g.ints([-1])))), {"axis": 0})


def losses(g: Graph, x: Edge, target: Edge, weight: Any, ignore: int, smoothing: float,
           reduction: str) -> tuple:
    if smoothing:
        raise Unsupported("cross_entropy with label_smoothing")
    return g.emit("SoftmaxCrossEntropyLoss", (x, target, weight),
                  {"ignore_index": ignore, "reduction": reduction}), None, None


def written(g: Graph, base: Edge, value: Edge, cut: Any, others: tuple) -> Edge:
    """The base with ``value`` in the part that the view ``cut`` shows: at its places among those of the
    base.
    """
    whole = g.emit("Reshape", (g.emit("Shape", (base,), dtype=dtypes.int64), g.ints([-1])))
    count = g.emit("ReduceProd", (whole,), {"keepdims": 0})
    places = g.emit("Range", (g.number(0), count, g.number(1)), dtype=dtypes.int64)
    places = _shaped(g.emit("Reshape", (places, whole), dtype=dtypes.int64), base.shape)
    part = evaluated(g, cut.op.onnx, {**dict(zip(cut.op.inputs, (places, *others))), **cut.settings})
    flat = g.emit("Reshape", (base, g.ints([-1])))
    out = g.emit("ScatterElements", (flat, g.emit("Reshape", (part, g.ints([-1]))),
                                     g.emit("Reshape",
                                            (g.cast(value, base.dtype), g.ints([-1])))), {"axis": 0})
    return g.emit("Reshape", (out, whole))


# -- activations with settings -----------------------------------------------------------------------


def gelu(g: Graph, x: Edge, approximate: str) -> Edge:
    """Gelu is an operator from opset 20 on; before, its formula."""
    if g.opset >= 20:
        return g.emit("Gelu", (x,), {"approximate": approximate})
    if approximate == "tanh":
        return 0.5 * x * (1 + g.emit("Tanh", (0.7978845608028654 * (x + 0.044715 * (x * x * x)),)))
    return 0.5 * x * (1 + g.emit("Erf", (x * 0.7071067811865476,)))


def mish(g: Graph, x: Edge) -> Edge:
    return g.emit("Mish", (x,)) if g.opset >= 18 else x * g.emit("Tanh", (g.emit("Softplus", (x,)),))


def softplus(g: Graph, x: Edge, beta: float) -> Edge:
    return g.emit("Softplus", (x,)) if beta == 1 else g.emit("Softplus", (x * beta,)) / beta


def elu(g: Graph, x: Edge, alpha: float, scale: float, rate: float) -> Edge:
    """elu, selu (scale) and celu (rate)."""
    if rate == 1 and scale == 1:
        return g.emit("Elu", (x,), {"alpha": alpha})
    if rate == 1:
        return g.emit("Selu", (x,), {"alpha": alpha, "gamma": scale})
    return g.emit("Celu", (x,), {"alpha": alpha}) if scale == 1 else g.emit("Elu", (x * rate,),
                                                                            {"alpha": alpha}) * scale


def active(g: Graph, relu: bool) -> list[str]:
    return ["Relu" if relu else "Tanh"]
