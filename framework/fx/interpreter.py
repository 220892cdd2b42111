"""Interpreter: runs a graph step by step; Transformer: makes another graph of it."""

from collections.abc import Iterator
from typing import Any

from ..nn.module import Module
from .graph import Graph
from .graph_module import GraphModule
from .node import Node, map_arg
from .proxy import Proxy
from .tracer import Tracer


class Interpreter:
    """Runs a graph node by node; subclasses override what is done for a kind of node.

    >>> traced = fw.fx.symbolic_trace(lambda x: (x * 2).relu())
    >>> fw.fx.Interpreter(traced).run(fw.tensor([-1.0, 1.0]))
    tensor([0., 2.])
    """

    def __init__(self, module: Module, garbage_collect_values: bool = True,
                 graph: Graph | None = None) -> None:
        self.module = module
        self.graph: Graph = module.graph if graph is None else graph  # type: ignore[assignment]
        self.garbage_collect_values = garbage_collect_values
        self.env: dict[Node, Any] = {}
        self.submodules = dict(module.named_modules())

    def run(self, *args: Any, initial_env: dict[Node, Any] | None = None, **settings: Any) -> Any:
        """The result for these arguments."""
        self.env = dict(initial_env or {})
        self.args_iter: Iterator = iter(args)
        last = {n: node for node in self.graph.nodes for n in node.all_input_nodes}
        for node in self.graph.nodes:
            if node in self.env:
                continue
            self.env[node] = self.run_node(node)
            if node.op == "output":
                return self.env[node]
            if self.garbage_collect_values:
                for n in node.all_input_nodes:
                    if last[n] is node:
                        del self.env[n]
        return None

    def run_node(self, n: Node) -> Any:
        """The result of one step."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target: str, args: tuple, kwargs: dict) -> Any:
        """The next argument, or its default."""
        for value in self.args_iter:
            return value
        if args:
            return args[0]
        raise RuntimeError(f"run: there is no argument for {target}")

    def get_attr(self, target: str, args: tuple, kwargs: dict) -> Any:
        """An attribute of the module."""
        return self.fetch_attr(target)

    def call_function(self, target: Any, args: tuple, kwargs: dict) -> Any:
        """A call of a function."""
        return target(*args, **kwargs)

    def call_method(self, target: str, args: tuple, kwargs: dict) -> Any:
        """A call of a method of the first argument."""
        return getattr(args[0], target)(*args[1:], **kwargs)

    def call_module(self, target: str, args: tuple, kwargs: dict) -> Any:
        """A call of a module inside."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: str, args: tuple, kwargs: dict) -> Any:
        """What is returned."""
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """What stands at this path inside the module."""
        value: Any = self.module
        for name in target.split("."):
            value = getattr(value, name)
        return value

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple, dict]:
        """The arguments of a node with results in place of nodes."""
        return map_arg(n.args, lambda x: self.env[x]), map_arg(n.kwargs, lambda x: self.env[x])

    def map_nodes_to_values(self, args: Any, n: Node) -> Any:
        """A nest with results in place of nodes."""
        return map_arg(args, lambda x: self.env[x])


class Transformer(Interpreter):
    """An interpreter on symbols: what its methods return becomes another graph."""

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module, garbage_collect_values=False)
        self.new_graph = Graph()
        self.tracer = Tracer()
        self.tracer.graph, self.tracer.root = self.new_graph, module

    def placeholder(self, target: str, args: tuple, kwargs: dict) -> Proxy:
        return self.tracer.proxy(self.new_graph.placeholder(target, default_value=args[0] if args else ...))

    def get_attr(self, target: str, args: tuple, kwargs: dict) -> Proxy:
        return self.tracer.proxy(self.new_graph.get_attr(target))

    def call_function(self, target: Any, args: tuple, kwargs: dict) -> Any:
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def call_method(self, target: str, args: tuple, kwargs: dict) -> Any:
        return self.tracer.create_proxy("call_method", target, args, kwargs)

    def call_module(self, target: str, args: tuple, kwargs: dict) -> Any:
        return self.tracer.create_proxy("call_module", target, args, kwargs)

    def transform(self) -> GraphModule:
        """The module of the new graph."""
        result = self.run()
        self.new_graph.output(self.tracer.create_arg(result))
        return GraphModule(self.module, self.new_graph)

    def run(self, *args: Any, **settings: Any) -> Any:
        return super().run(*args, **settings)
