"""Proxy: stands for a value while a program is traced, and notes what is done with it."""

import operator
from collections.abc import Callable, Iterator
from typing import Any

from ..ops.record.arming import arm
from ..tensor import Tensor
from .node import Node, map_aggregate


class TraceError(ValueError):
    """The program asked a symbol for what only a value has."""


class TracerBase:
    """What makes nodes of what is done with symbols, in the graph ``self.graph``."""

    graph: Any

    def create_arg(self, a: Any) -> Any:
        """An argument as a graph has it: nodes for symbols, in tuples, lists, dicts and slices, too."""
        return map_aggregate(a, lambda x: x.node if isinstance(x, Proxy) else x)

    def create_node(self, kind: str, target: Any, args: Any, kwargs: Any, name: str | None = None,
                    type_expr: Any = None) -> Node:
        """A step of the graph."""
        return self.graph.create_node(kind, target, args, kwargs, name, type_expr)

    def proxy(self, node: Node) -> "Proxy":
        """The symbol of a node."""
        return Proxy(node, self)

    def create_proxy(self, kind: str, target: Any, args: tuple, kwargs: dict, name: str | None = None,
                     type_expr: Any = None) -> "Proxy":
        """A step, and the symbol of its result."""
        return self.proxy(self.create_node(kind, target, self.create_arg(args), self.create_arg(kwargs), name,
                                           type_expr))

    def iter(self, obj: "Proxy") -> Iterator:
        """Unpacking a symbol: raises TraceError, as its length is not known."""
        raise TraceError(f"{obj.node.name} is a symbol: how many parts it has is not known while it is "
                         f"traced; index it instead, or make the function around it one step with wrap()")

    def to_bool(self, obj: "Proxy") -> bool:
        """The truth of a symbol: raises TraceError, as a branch depends on values."""
        raise TraceError(f"{obj.node.name} is a symbol: a branch that depends on its value cannot be "
                         f"traced; wrap() makes the function around it one step")

    def keys(self, obj: "Proxy") -> Any:
        """The keys of a symbol, as a symbol."""
        return obj.tracer.create_proxy("call_method", "keys", (obj,), {})


class GraphAppendingTracer(TracerBase):
    """Puts what is done with symbols at the end of a graph (or where its ``inserting_before`` says).

    Functions of the package ask their arguments from here on whether they are symbols.

    >>> graph = fw.fx.Graph()
    >>> x = fw.fx.Proxy(graph.placeholder("x"))  # which makes such a tracer
    >>> y = graph.output((fw.relu(x) + 1).node)
    >>> fw.fx.GraphModule(fw.nn.Module(), graph)(fw.tensor([-1.0, 1.0]))
    tensor([1., 2.])
    """

    def __init__(self, graph: Any) -> None:
        self.graph = graph
        arm()


class Proxy:
    """A symbol; calls of its methods, operators and functions of the package become nodes of the graph."""

    def __init__(self, node: Node, tracer: Any = None) -> None:
        self.node = node
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer

    @classmethod
    def __torch_function__(cls, orig_method: Callable, types: Any, args: tuple = (),
                           kwargs: Any = None) -> Any:
        """A function of the package on symbols is a step; a method of Tensor is a step by its name."""
        found: list[Proxy] = []
        map_aggregate((args, kwargs or {}), lambda x: found.append(x) if isinstance(x, Proxy) else None)
        name = getattr(orig_method, "__name__", "")
        method = vars(Tensor).get(name) is orig_method and not hasattr(orig_method, "without_out")
        if method and args and isinstance(args[0], Proxy) and not name.startswith("__"):
            return found[0].tracer.create_proxy("call_method", name, args, kwargs or {})
        return found[0].tracer.create_proxy("call_function", orig_method, args, kwargs or {})

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Attribute(self, name)

    def __iter__(self) -> Iterator:
        return self.tracer.iter(self)

    def __bool__(self) -> bool:
        return self.tracer.to_bool(self)

    def __len__(self) -> int:
        raise TraceError("len() of a symbol has no value while a program is traced; wrap('len') makes it a "
                         "step")

    def __index__(self) -> int:
        raise TraceError(f"{self.node.name} is a symbol and no int while the program is traced")

    __int__ = __float__ = __index__  # type: ignore[assignment]

    def keys(self) -> Any:
        """The keys of a mapping: not known."""
        return self.tracer.keys(self)


class Attribute(Proxy):
    """``symbol.name``: called, it is a method; else the attribute, read by a node of its own."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


def _forward(function: Callable) -> Callable:
    def method(self: Proxy, *args: Any) -> Proxy:
        return self.tracer.create_proxy("call_function", function, (self, *args), {})
    return method


def _backward(function: Callable) -> Callable:
    def method(self: Proxy, other: Any) -> Proxy:
        return self.tracer.create_proxy("call_function", function, (other, self), {})
    return method


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "lshift", "rshift", "and_",
              "or_",
              "xor"):
    setattr(Proxy, f"__{_name.rstrip('_')}__", _forward(getattr(operator, _name)))
    setattr(Proxy, f"__r{_name.rstrip('_')}__", _backward(getattr(operator, _name)))
for _name in ("eq", "ne", "lt", "le", "gt", "ge", "neg", "pos", "abs", "invert", "getitem"):
    setattr(Proxy, f"__{_name}__", _forward(getattr(operator, _name)))
Proxy.__hash__ = object.__hash__  # type: ignore[assignment]
