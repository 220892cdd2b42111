"""GraphModule: a module whose forward is the code of a graph."""

import copy
import itertools
import linecache
import weakref
from typing import Any

from ..nn.module import Module
from .graph import Graph

_COUNT = itertools.count(1)


class GraphModule(Module):
    """The parts of ``root`` that the graph names, and the graph's code as ``forward``.

    After changes of ``.graph``, ``recompile()`` makes the code anew.
    """

    def __init__(self, root: Any, graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        self._class_name = class_name
        for node in graph.nodes:
            if node.op in ("get_attr", "call_module"):
                self._take(root, node.target)
        if isinstance(root, Module):
            self.training = root.training
        self._graph = graph
        graph.owning_module = self
        self.recompile()

    def _take(self, root: Any, target: str) -> None:
        """Put what ``root`` (a module, or a dict by path) has at this path at the same path here."""
        *path, last = target.split(".")
        home, place = root, self  # type: Any, Any
        for name in path:
            home = home if isinstance(root, dict) else getattr(home, name)
            if not hasattr(place, name):
                place.add_module(name, Module())
            place = getattr(place, name)
        if hasattr(place, last):
            return
        value = root[target] if isinstance(root, dict) else getattr(home, last)
        if isinstance(home, Module) and last in home._buffers:
            place.register_buffer(last, value)
        else:
            setattr(place, last, value)

    @property
    def graph(self) -> Graph:
        """The steps."""
        return self._graph

    @graph.setter
    def graph(self, graph: Graph) -> None:
        self._graph = graph
        graph.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """The Python source of forward."""
        return self._code

    def recompile(self) -> Any:
        """Make forward anew from the graph."""
        made = self._graph.python_code()
        self._code = made.src
        file = f"<graph {next(_COUNT)}>"
        linecache.cache[file] = (len(made.src), None, made.src.splitlines(True), file)  # for tracebacks
        names = dict(made.globals)
        exec(compile(made.src, file, "exec"), names)  # the source is made above, of nodes
        function = names["forward"]
        weakref.finalize(function, linecache.cache.pop, file, None)  # the source goes with the function
        # a class of its own, so that forward is a method as any other
        self.__class__ = type(self._class_name, (GraphModule,), {"forward": function})
        return made

    def print_readable(self, print_output: bool = True, **settings: Any) -> str:
        """The code of forward, also printed."""
        if print_output:
            print(self._code)
        return self._code

    def __deepcopy__(self, memo: dict) -> "GraphModule":
        root = Module()
        root.__dict__.update(copy.deepcopy({k: v for k, v in self.__dict__.items() if k != "_graph"}, memo))
        return GraphModule(root, copy.deepcopy(self._graph), self._class_name)

    def __reduce__(self) -> Any:
        raise TypeError("a GraphModule cannot be pickled, its class is made of its graph; save its "
                        "state_dict")
