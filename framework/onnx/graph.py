"""The graph that is being written: edges, constants, sizes; and the ONNX operators as calls.

A record says in its ``onnx`` what it is in ONNX, as an expression over its inputs and settings, in which
names with a capital are ONNX's operators (``"Softmax(x, axis=dim)"``) and the others functions of
``lowering/``. Python's operators on edges are ONNX's, numbers become constants of the edge's dtype.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from .. import dtypes
from ..dtypes import DType
from .sizes import Extent, Repeated, Varies
from .trace import OnnxError

CODES = {"float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "bool": 9,
         "float16": 10, "float64": 11, "uint32": 12, "uint64": 13, "bfloat16": 16}
_BOOL_OUT = {"Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual", "And", "Or", "Not", "IsNaN",
             "IsInf", "Xor"}
_SECOND = {"Where"}


class Unsupported(OnnxError):
    """What one operation lacks; ``export`` collects them."""


class Edge:
    """A value of the graph. shape (sizes are ints or Extents) and dtype, where they are known."""

    __slots__ = ("graph", "name", "shape", "dtype")

    def __init__(self, graph: "Graph", name: str, dtype: DType | None = None,
                 shape: tuple | None = None) -> None:
        self.graph = graph
        self.name = name
        self.dtype: Any = dtype
        self.shape: Any = shape

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def _two(self, op: str, other: Any, swapped: bool = False) -> "Edge":
        other = self.graph.like(other, self)
        return self.graph.emit(op, (other, self) if swapped else (self, other))

    def __add__(self, other: Any) -> "Edge":
        return self._two("Add", other)

    def __radd__(self, other: Any) -> "Edge":
        return self._two("Add", other, True)

    def __sub__(self, other: Any) -> "Edge":
        return self._two("Sub", other)

    def __rsub__(self, other: Any) -> "Edge":
        return self._two("Sub", other, True)

    def __mul__(self, other: Any) -> "Edge":
        return self._two("Mul", other)

    def __rmul__(self, other: Any) -> "Edge":
        return self._two("Mul", other, True)

    def __truediv__(self, other: Any) -> "Edge":
        return self._two("Div", other)

    def __rtruediv__(self, other: Any) -> "Edge":
        return self._two("Div", other, True)

    def __neg__(self) -> "Edge":
        return self.graph.emit("Neg", (self,))

    def __lt__(self, other: Any) -> "Edge":
        return self._two("Less", other)

    def __le__(self, other: Any) -> "Edge":
        return self._two("LessOrEqual", other)

    def __gt__(self, other: Any) -> "Edge":
        return self._two("Greater", other)

    def __ge__(self, other: Any) -> "Edge":
        return self._two("GreaterOrEqual", other)

    def __eq__(self, other: Any) -> "Edge":  # type: ignore[override]
        return self._two("Equal", other)

    def __ne__(self, other: Any) -> "Edge":  # type: ignore[override]
        return ~self._two("Equal", other)

    __hash__ = object.__hash__

    def _bits(self, logical: str, bitwise: str, other: Any) -> "Edge":
        return self._two(logical if self.dtype is dtypes.bool_ else bitwise, other)

    def __and__(self, other: Any) -> "Edge":
        return self._bits("And", "BitwiseAnd", other)

    def __or__(self, other: Any) -> "Edge":
        return self._bits("Or", "BitwiseOr", other)

    def __xor__(self, other: Any) -> "Edge":
        return self._bits("Xor", "BitwiseXor", other)

    def __invert__(self) -> "Edge":
        return self.graph.emit("Not" if self.dtype is dtypes.bool_ else "BitwiseNot", (self,))


class Node:
    """One call of an operator."""

    __slots__ = ("op", "inputs", "outputs", "attributes", "scope")

    def __init__(self, op: str, inputs: list[str], outputs: list[str], attributes: dict, scope: str) -> None:
        self.op = op
        self.inputs = inputs
        self.outputs = outputs
        self.attributes = attributes
        self.scope = scope


class Graph:
    """Nodes in order, constants by name, and where the sizes of dynamic axes can be read."""

    def __init__(self, opset: int) -> None:
        self.opset = opset
        self.nodes: list[Node] = []
        self.constants: dict[str, np.ndarray] = {}
        self.weights: dict[str, np.ndarray] = {}
        self.scope = ""
        self.current: list[Extent] = []  # dynamic sizes of the inputs of the step that is being lowered
        self._names: dict[str, int] = {}
        self._known: dict[tuple, Edge] = {}                      # constants, by what they hold
        self._sources: dict[Extent, tuple[Edge, int]] = {}       # where a size can be read
        self._sizes: dict[Any, Edge] = {}                        # sizes that have been read

    # -- names and values --------------------------------------------------------------------------

    def fresh(self, stem: str) -> str:
        """A name that is not taken."""
        while True:
            n = self._names[stem] = self._names.get(stem, -1) + 1
            name = stem if n == 0 else f"{stem}_{n}"
            if n == 0 or name not in self._names:
                self._names.setdefault(name, 0)
                return name

    def known(self, edge: Edge) -> Edge:
        """An edge whose shape is known: its sizes can be read from now on."""
        for axis, n in enumerate(edge.shape or ()):
            if isinstance(n, Extent):
                self._sources.setdefault(n, (edge, axis))
        return edge

    def constant(self, value: Any, dtype: DType | None = None, name: str = "constant") -> Edge:
        """An array, or a number in a dtype, as a constant of the graph."""
        array = np.asarray(value, None if dtype is None else dtype.numpy)
        key = (array.dtype, array.shape, array.tobytes()) if array.size < 4096 else None
        if key is not None and key in self._known:
            return self._known[key]
        edge = Edge(self, self.fresh(name), dtypes.of_numpy(array.dtype), array.shape)
        self.constants[edge.name] = array
        if key is not None:
            self._known[key] = edge
        return edge

    def like(self, x: Any, other: Edge) -> Edge:
        """``x`` as an edge: a number becomes a constant of the dtype of ``other``."""
        if isinstance(x, Edge):
            return x
        if isinstance(x, Extent):
            return self.cast(self.emit("Squeeze", (self.size(x), self.ints([0]))), other.dtype)
        if isinstance(x, Varies):
            raise Unsupported(f"a number that depends on the size of a dynamic axis in a way that is not "
                              f"followed ({x})")
        return self.constant(x, other.dtype)

    def cast(self, x: Edge, dtype: Any) -> Edge:
        """The edge in a dtype."""
        if dtype is None or x.dtype is dtype:
            return x
        if dtype.name not in CODES:
            raise Unsupported(f"ONNX has no {dtype}")
        return self.emit("Cast", (x,), {"to": CODES[dtype.name]}, dtype=dtype)

    # -- sizes -----------------------------------------------------------------------------------------

    def ints(self, values: Any) -> Edge:
        """A vector of whole numbers."""
        return self.constant(np.array(list(values), np.int64), name="sizes")

    def size(self, n: Any) -> Edge:
        """A size as a vector of one number."""
        if not isinstance(n, Extent):
            return self.ints([n])
        if n in self._sizes:
            return self._sizes[n]
        scope, self.scope = self.scope, "sizes"
        edge, everywhere = self._read(n)
        self.scope = scope
        if everywhere:
            self._sizes[n] = edge
        return edge

    def _read(self, n: Extent) -> tuple[Edge, bool]:
        """A size as an edge, and whether it is that in other places, too."""
        if n in self._sources:
            edge, axis = self._sources[n]
            return self.emit("Shape", (edge,), {"start": axis, "end": axis + 1}, dtype=dtypes.int64), True
        base = list(self._sources)
        for s in base if len(set(n.at)) > 2 else ():  # n = s * factor + more; two numbers fit any s
            i = next(k for k in range(len(s.at)) if s.at[k] != s.at[0])
            factor, rest = divmod(n.at[i] - n.at[0], s.at[i] - s.at[0])
            if rest == 0 and factor and s * factor + (n.at[0] - factor * s.at[0]) == n:
                more = n.at[0] - factor * s.at[0]
                edge = self.size(s)
                edge = edge if factor == 1 else edge * factor
                return (edge if more == 0 else edge + more), True
        for t in self.current:  # what a size of the operation's own input lacks to another one, or half of it
            if t + n in self._sources:
                return self.size(t + n) - self.size(t), False
            for s in base:
                if (s - t) // 2 == n:
                    return (self.size(s) - self.size(t)) / 2, False
                if (s - t) - (s - t) // 2 == n:
                    return self.size(s) - self.size(t) - (self.size(s) - self.size(t)) / 2, False
        if len(set(n.at)) < 3:  # these fit too many formulas
            raise Unsupported(self._unknown(n))
        for s in base:  # n = (s + more) // by, as windows are counted
            for by in range(2, 65):
                for more in range(-16, 17):
                    if (s + more) // by == n:
                        return ((self.size(s) + more if more else self.size(s)) / by), True
        for i, s in enumerate(base):
            for t in base[i:]:
                product = s * t
                if product == n:
                    return self.size(s) * self.size(t), True
                if isinstance(product, Extent) and product.at[0] and n.at[0] % product.at[0] == 0 \
                        and product * (n.at[0] // product.at[0]) == n:
                    return self.size(s) * self.size(t) * (n.at[0] // product.at[0]), True
        raise Unsupported(self._unknown(n))

    def _unknown(self, n: Extent) -> str:
        return (f"a number that was {', '.join(map(str, n.at))} in runs of several sizes is not a size, or "
                f"the sum, product or quotient of sizes and fixed numbers, so it cannot be followed")

    def sizes(self, shape: Any) -> Edge:
        """A shape as a vector."""
        if isinstance(shape, Repeated):
            return self.emit("Expand", (self.size(shape.item), self.size(shape.count)), dtype=dtypes.int64)
        if not any(isinstance(n, Extent) for n in shape):
            return self.ints(shape)
        parts: list[Any] = []
        for n in shape:  # neighbours that are fixed become one constant
            if not isinstance(n, Extent) and parts and isinstance(parts[-1], list):
                parts[-1].append(n)
            else:
                parts.append(n if isinstance(n, Extent) else [n])
        edges = [self.ints(p) if isinstance(p, list) else self.size(p) for p in parts]
        return edges[0] if len(edges) == 1 else self.emit("Concat", edges, {"axis": 0}, dtype=dtypes.int64)

    def number(self, n: Any) -> Edge:
        """A size as a number without dimensions."""
        if isinstance(n, Extent):
            return self.emit("Squeeze", (self.size(n), self.ints([0])), dtype=dtypes.int64)
        return self.constant(np.array(n, np.int64))

    # -- nodes --------------------------------------------------------------------------------------

    def emit(self, op: str, inputs: Sequence, attributes: dict | None = None, outputs: int = 1,
             dtype: DType | None = None) -> Any:
        """Call an operator; its result has the dtype of the first input, unless it is given."""
        names = []
        for x in inputs:
            if isinstance(x, (Varies, Extent)):
                raise Unsupported(f"{op} needs {x}")
            names.append("" if x is None else x.name)
        while names and not names[-1]:
            names.pop()
        for key, value in (attributes or {}).items():
            if _has_extent(value):
                raise Unsupported(f"{op} has to know its {key} beforehand, but it depends on the size of "
                                  f"a dynamic axis")
        stem = f"{self.scope}/{op}" if self.scope else op
        outs = [self.fresh(stem if i == 0 else f"{stem}_out{i}") for i in range(outputs)]
        attributes = {k: v for k, v in (attributes or {}).items() if v is not None}
        self.nodes.append(Node(op, names, list(outs), attributes, self.scope))
        if dtype is None:
            dtype = dtypes.bool_ if op in _BOOL_OUT else inputs[1 if op in _SECOND else 0].dtype
        edges = [Edge(self, name, dtype) for name in outs]
        return edges[0] if outputs == 1 else edges

    def operator(self, name: str) -> Callable:
        """An ONNX operator as a function; arrays by place (None is left out), attributes by name."""
        def call(*inputs: Any, **attributes: Any) -> Any:
            first = next(x for x in inputs if isinstance(x, Edge))
            return self.emit(name,
                             [x if x is None or isinstance(x, Edge) else self.like(x, first) for x in inputs],
                             attributes)
        return call


def _has_extent(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return any(_has_extent(v) for v in value)
    return isinstance(value, (Extent, Varies, Repeated))


class Names(dict):
    """What the names of an expression mean: inputs and settings, those of ``lowering``, ONNX's operators."""

    def __init__(self, graph: Graph, helpers: Any, given: dict) -> None:
        super().__init__(given)
        self.graph = graph
        self.helpers = helpers

    def __missing__(self, name: str) -> Any:
        if name[:1].isupper():
            return self.graph.operator(name)
        if name in ("True", "False", "None"):
            raise KeyError(name)
        return partial(self.helpers[name], self.graph)
