"""Graph: steps in order, and the Python code that does the same."""

import builtins
import keyword
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from .node import Node, map_arg


class PythonCode(NamedTuple):
    """Source text, and what its names stand for."""

    src: str
    globals: dict[str, Any]


class Graph:
    """A list of nodes, each taking results of earlier ones; the last one is the output.

    >>> import operator
    >>> g = fw.fx.Graph()
    >>> x = g.placeholder("x")
    >>> y = g.call_function(operator.add, (x, 1))
    >>> z = g.output(y)
    >>> fw.fx.GraphModule(fw.nn.Module(), g)(2)
    3
    """

    def __init__(self, owning_module: Any = None, tracer_cls: Any = None) -> None:
        self._nodes: list[Node] = []
        self._names: set[str] = set()
        self._at: int | None = None
        self.owning_module, self._tracer_cls = owning_module, tracer_cls

    @property
    def nodes(self) -> list[Node]:
        """The steps in order."""
        return list(self._nodes)

    def _name(self, wanted: str) -> str:
        base = re.sub(r"\W", "_", wanted).strip() or "_"
        if base[0].isdigit() or keyword.iskeyword(base):
            base = f"_{base}"
        base, name, count = re.sub(r"_\d+$", "", base) or base, base, 0
        while name in self._names or name == "self" or hasattr(builtins, name):
            count += 1
            name = f"{base}_{count}"
        self._names.add(name)
        return name

    def create_node(self, op: str, target: Any, args: Any = None, kwargs: Any = None, name: str | None = None,
                    type_expr: Any = None) -> Node:
        """A new step at the end, or where `inserting_before` says."""
        if op not in ("placeholder", "get_attr", "call_function", "call_method", "call_module", "output"):
            raise ValueError(f"create_node: there is no op {op!r}")
        known = set(self._nodes)

        def check(node: Node) -> Node:
            if node not in known:
                raise RuntimeError(f"create_node: the argument {node} is of another graph, or erased")
            return node
        map_arg((args or (), kwargs or {}), check)
        wanted: str = name or (target if isinstance(target, str) else getattr(target, "__name__", "value"))  # type: ignore[assignment]
        node = Node(self, self._name(wanted if isinstance(target, str) else wanted.strip("_")), op, target,
                    tuple(args or ()), dict(kwargs or {}), type_expr)
        if self._at is None:
            self._nodes.append(node)
        else:
            self._nodes.insert(self._at, node)
            self._at += 1
        return node

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = ...) -> Node:
        """An argument of the function."""
        return self.create_node("placeholder", name, () if default_value is ... else (default_value,),
                                type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """A parameter, buffer or attribute of the module."""
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(self, module_name: str, args: Any = None, kwargs: Any = None,
                    type_expr: Any = None) -> Node:
        """A call of a module inside."""
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(self, method_name: str, args: Any = None, kwargs: Any = None,
                    type_expr: Any = None) -> Node:
        """A call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(self, the_function: Callable, args: Any = None, kwargs: Any = None,
                      type_expr: Any = None,
                      name: str | None = None) -> Node:
        """A call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def output(self, result: Any, type_expr: Any = None) -> Node:
        """What is returned."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def output_node(self) -> Node:
        """The output."""
        return next(node for node in reversed(self._nodes) if node.op == "output")

    def find_nodes(self, *, op: str, target: Any = None, sort: bool = True) -> list[Node]:
        """The nodes of this op and target."""
        return [n for n in self._nodes if n.op == op and (target is None or n.target == target)]

    @contextmanager
    def _inserting(self, place: int) -> Iterator[None]:
        before, self._at = self._at, place
        try:
            yield
        finally:
            self._at = before

    def inserting_before(self, n: Node | None = None) -> Any:
        """A block in which new nodes come before ``n`` (default: first)."""
        return self._inserting(0 if n is None else self._nodes.index(n))

    def inserting_after(self, n: Node | None = None) -> Any:
        """A block in which new nodes come after ``n`` (default: last)."""
        return self._inserting(len(self._nodes) if n is None else self._nodes.index(n) + 1)

    def erase_node(self, to_erase: Node) -> None:
        """Remove a node; raises RuntimeError where others take its result."""
        if to_erase.users:
            raise RuntimeError(f"erase_node: {to_erase} is still used by "
                               f"{', '.join(map(str, to_erase.users))}; "
                               f"replace its uses first")
        to_erase._set((), {})
        self._nodes.remove(to_erase)
        to_erase._erased = True

    def eliminate_dead_code(self, is_impure_node: Callable | None = None) -> bool:
        """Remove the nodes whose result nobody takes; whether there were any."""
        impure = is_impure_node or Node.is_impure
        before = len(self._nodes)
        for node in list(reversed(self._nodes)):
            if not node.users and not impure(node):
                self.erase_node(node)
        return len(self._nodes) < before

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Any] = lambda x: x) -> Node:
        """A copy of a node of another graph at the end of this one."""
        copied = self.create_node(node.op, node.target, map_arg(node.args, arg_transform),
                                  map_arg(node.kwargs, arg_transform), node.name, node.type)
        copied.meta = dict(node.meta)
        return copied

    def graph_copy(self, g: "Graph", val_map: dict[Node, Node], return_output_node: bool = False) -> Any:
        """Copy the nodes of ``g`` into this graph; its output, as a value of this graph, is returned."""
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], lambda n: val_map[n])
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def __deepcopy__(self, memo: dict) -> "Graph":
        copied = Graph(tracer_cls=self._tracer_cls)
        places: dict[Node, Node] = {}
        for node in self._nodes:
            places[node] = copied.node_copy(node, lambda n: places[n])
        return copied

    def lint(self) -> None:
        """Raise RuntimeError unless every node takes results of earlier nodes of this graph only."""
        seen: set[Node] = set()
        for node in self._nodes:
            for other in node.all_input_nodes:
                if other not in seen:
                    raise RuntimeError(f"lint: {node} takes {other}, which is not before it in the graph")
            seen.add(node)

    def python_code(self, root_module: str = "self") -> PythonCode:
        """The function ``forward`` as Python source, with what its names stand for."""
        known: dict[str, Any] = {}

        def word(value: Any) -> str:
            base = re.sub(r"\W", "_", getattr(value, "__name__", type(value).__name__))
            name, count = f"_{base}", 0
            while name in known and known[name] is not value:
                count += 1
                name = f"_{base}_{count}"
            known[name] = value
            return name

        def show(a: Any) -> str:
            if isinstance(a, Node):
                return a.name
            if type(a) is tuple:
                return f"({''.join(show(x) + ', ' for x in a)})"
            if type(a) is list:
                return f"[{', '.join(map(show, a))}]"
            if type(a) is dict:
                return f"{{{', '.join(f'{k!r}: {show(v)}' for k, v in a.items())}}}"
            if type(a) is slice:
                return f"slice({show(a.start)}, {show(a.stop)}, {show(a.step)})"
            plain = a is None or a is ... or type(a) in (bool, int, str) or type(a) is float and a - a == 0
            return ("..." if a is ... else repr(a)) if plain else word(a)

        def call(node: Node, args: tuple) -> str:
            return ", ".join([*map(show, args), *(f"{k}={show(v)}" for k, v in node.kwargs.items())])

        def path(target: str) -> str:
            found = root_module
            for name in target.split("."):
                found = f"{found}.{name}" if name.isidentifier() else f"getattr({found}, {name!r})"
            return found
        heads, lines = [root_module], []
        for node in self._nodes:
            if node.op == "placeholder":
                if not node.args and "=" in heads[-1]:
                    heads.append("*")  # it was one that is given by name only
                heads.append(node.target + (f" = {show(node.args[0])}" if node.args else ""))
                if (argument := node.target.lstrip("*")) != node.name:  # callers know it by that name
                    lines.append(f"{node.name} = {argument}")
            elif node.op == "get_attr":
                lines.append(f"{node.name} = {path(node.target)}")
            elif node.op == "call_module":
                lines.append(f"{node.name} = {path(node.target)}({call(node, node.args)})")
            elif node.op == "call_method":
                lines.append(f"{node.name} = {show(node.args[0])}.{node.target}({call(node, node.args[1:])})")
            elif node.op == "call_function":
                lines.append(f"{node.name} = {word(node.target)}({call(node, node.args)})")
            else:
                lines.append(f"return {show(node.args[0])}")
        body = "".join(f"    {line}\n" for line in lines or ["pass"])
        return PythonCode(f"def forward({', '.join(heads)}):\n{body}", known)

    def print_tabular(self) -> None:
        """Print a line for each node."""
        for node in self._nodes:
            print(f"{node.op:<15}{node.name:<20}{getattr(node.target, '__name__', node.target)!s:<25}"
                  f"{node.args!s:<30}{node.kwargs}")

    def __str__(self) -> str:
        return "graph():\n" + "\n".join(f"    {node.format_node()}" for node in self._nodes)
