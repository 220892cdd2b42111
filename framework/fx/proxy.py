"""Proxy: stands for a value while a program is traced, and notes what is done with it."""

import operator
from collections.abc import Callable, Iterator
from typing import Any

from .node import Node


class TraceError(ValueError):
    """The program asked a symbol for what only a value has."""


class Proxy:
    """A symbol; calls of its methods, operators and functions of the package become nodes of the graph."""

    def __init__(self, node: Node, tracer: Any = None) -> None:
        self.node, self.tracer = node, tracer

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
