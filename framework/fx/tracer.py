"""Tracer: runs a program on symbols, so that the steps become a graph.

Functions of the package see symbols because, while a trace is under way, the names under which programs find
them lead to wrappers; they are put back at its end, whatever happens.
"""

import builtins
import functools
import inspect
import math
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import framework as fw
import framework.nn.functional
import framework.special

from ..nn.module import Module
from ..nn.parameter import Parameter
from ..ops.record.public import PUBLIC
from ..tensor import Tensor
from .graph import Graph
from .graph_module import GraphModule
from .node import Node, map_aggregate
from .proxy import Proxy, TraceError, TracerBase

_WRAPPED: dict[tuple[int, str], dict] = {}  # (globals, name) of `wrap`
_one_at_a_time = threading.RLock()  # the names are those of the process: traces of other threads wait


def wrap(fn_or_name: Any) -> Any:
    """Make a function of the module that calls this one step of a trace, not looked into. Also a decorator.

    Takes the function, or its name in the module; call it at the top of the module.
    """
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    frame = sys._getframe(1)
    _WRAPPED[id(frame.f_globals), name] = frame.f_globals
    return fn_or_name


def _symbol(args: Any) -> Proxy | None:
    found: list[Proxy] = []
    map_aggregate(args, lambda x: found.append(x) if isinstance(x, Proxy) else None)
    return found[0] if found else None


def _stands_for(function: Callable) -> Callable:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        symbol = _symbol((args, kwargs))
        if symbol is None:
            return function(*args, **kwargs)
        return symbol.tracer.create_proxy("call_function", function, args, kwargs)
    return call


@contextmanager
def _patched(places: list[dict]) -> Iterator[None]:
    """Names of functions of the package, in its namespaces and in these globals, lead to wrappers."""
    functions = {id(p.function): p.function for p in PUBLIC if p.namespace}
    wrappers = {key: _stands_for(function) for key, function in functions.items()}
    homes = [vars(m) for m in (fw, fw.nn.functional, fw.special, fw.linalg, fw.fft)]
    if "torch" in sys.modules:  # under as_torch a module of its own, with the same functions
        homes.append(vars(sys.modules["torch"]))
    changed: list[tuple[dict, str, Any]] = []
    try:
        for place in [*homes, *places]:
            for name, value in list(place.items()):
                if id(value) in wrappers:
                    changed.append((place, name, value))
                    place[name] = wrappers[id(value)]
        for (_, name), place in _WRAPPED.items():
            changed.append((place, name, place.get(name, _patched)))
            place[name] = _stands_for(place[name] if name in place else getattr(builtins, name))
        yield
    finally:
        for place, name, value in reversed(changed):
            if value is _patched:  # it was a builtin, and not in the module
                del place[name]
            else:
                place[name] = value


class Tracer(TracerBase):
    """Traces modules and functions; subclasses say what is a leaf, and what symbols may be asked.

    >>> class M(fw.nn.Module):
    ...     def forward(self, x):
    ...         return fw.relu(x) + 1
    >>> print(fw.fx.Tracer().trace(M()))
    graph():
        %x : [num_users=1] = placeholder[target=x]
        %relu : [num_users=1] = call_function[target=relu](args = (%x,), kwargs = {})
        %add : [num_users=1] = call_function[target=add](args = (%relu, 1), kwargs = {})
        return %add
    """

    def __init__(self, autowrap_modules: Any = (math,), autowrap_functions: Any = (),
                 param_shapes_constant: bool = False) -> None:
        self._functions = {f for m in autowrap_modules for f in vars(m).values() if callable(f)}
        self._functions |= set(autowrap_functions)
        self.root: Module = Module()
        self.graph = Graph()

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Whether a module is one step: those of this package are, containers excepted."""
        own = type(m).__module__.startswith("framework.nn")
        return own and not isinstance(m, (fw.nn.Sequential, fw.nn.ModuleList, fw.nn.ModuleDict))

    def path_of_module(self, mod: Module) -> str:
        """The name of a module inside the root."""
        for name, module in self.root.named_modules():
            if module is mod:
                return name
        raise NameError(f"the module {type(mod).__name__} is called and is not inside the one that is traced")

    def create_arg(self, a: Any) -> Any:
        """An argument as a graph has it: nodes for symbols and parameters."""
        def one(x: Any) -> Any:
            if isinstance(x, Proxy):
                return x.node
            if isinstance(x, (Parameter, Tensor)):
                return self._constant(x)
            return x
        return map_aggregate(a, one)

    def _constant(self, x: Tensor) -> Node:
        for name, value in [*self.root.named_parameters(), *self.root.named_buffers()]:
            if value is x:
                return self.graph.get_attr(name)
        for name, value in vars(self.root).items():
            if value is x:
                return self.graph.get_attr(name)
        count = 0
        while hasattr(self.root, f"_tensor_constant{count}"):
            count += 1
        setattr(self.root, f"_tensor_constant{count}", x)
        return self.graph.get_attr(f"_tensor_constant{count}")

    def call_module(self, m: Module, forward: Callable, args: tuple, kwargs: dict) -> Any:
        """A call of a module: one step for a leaf, else its own steps."""
        name = self.path_of_module(m)
        if not self.is_leaf_module(m, name):
            return forward(*args, **kwargs)
        return self.create_proxy("call_module", name, args, kwargs)

    def trace(self, root: Any, concrete_args: dict[str, Any] | None = None) -> Graph:
        """The graph of a module's forward, or of a function."""
        if isinstance(root, Module):
            self.root, function = root, type(root).forward
        else:
            self.root, function = Module(), root
        self.graph = Graph(tracer_cls=type(self))
        arguments, named = self._arguments(function, isinstance(root, Module), concrete_args or {})
        places = [function.__globals__] if hasattr(function, "__globals__") else []
        places += [type(m).forward.__globals__ for m in self.root.modules()  # type: ignore[attr-defined]
                   if hasattr(type(m).forward,
                              "__globals__") and not type(m).__module__.startswith("framework.")]
        own = {id(p): p for p in places if not p.get("__name__", "").startswith("framework.")}
        with _one_at_a_time:
            result = self._run(function, arguments, named, list(own.values()))
        self.graph.output(self.create_arg(result))
        return self.graph

    def _run(self, function: Callable, arguments: list, named: dict[str, Any], places: list[dict]) -> Any:
        """What ``function`` makes of symbols."""
        call = Module.__call__

        def traced(mod: Module, *args: Any, **kwargs: Any) -> Any:
            if _symbol((args, kwargs)) is None:
                return call(mod, *args, **kwargs)
            return self.call_module(mod, lambda *a, **k: mod.forward(*a, **k), args, kwargs)
        Module.__call__ = traced  # type: ignore[method-assign, assignment]
        try:
            with _patched(places):
                return function(*arguments, **named)
        finally:
            Module.__call__ = call  # type: ignore[method-assign]

    def _arguments(self, function: Callable, method: bool, concrete: dict[str, Any]) -> tuple[list, dict]:
        found, named = [self.root] if method else [], {}  # type: list, dict[str, Any]
        for i, (name, p) in enumerate(inspect.signature(function).parameters.items()):
            if method and i == 0:
                continue
            if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
                raise TraceError(f"trace: *{name} of {getattr(function, '__name__', function)} cannot be "
                                 f"traced; give it named arguments")
            value = concrete[name] if name in concrete else self.proxy(self.graph.placeholder(
                name, default_value=... if p.default is p.empty else p.default))
            if p.kind is p.KEYWORD_ONLY:
                named[name] = value
            else:
                found.append(value)
        return found, named


def symbolic_trace(root: Any, concrete_args: dict[str, Any] | None = None) -> GraphModule:
    """A module that does what ``root`` does, with its steps in ``.graph``. concrete_args: values for
    arguments.

    Branches and loops that depend on values raise TraceError.

    >>> traced = fw.fx.symbolic_trace(lambda x: (x * 2).relu())
    >>> traced(fw.tensor([-1.0, 1.0])), len(traced.graph.nodes)
    (tensor([0., 2.]), 4)
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else getattr(root, "__name__", "GraphModule")
    return GraphModule(tracer.root, graph, name)
