"""Parts of a graph found by a pattern and put in place of another."""

from collections.abc import Callable
from typing import Any, NamedTuple

from ..nn.module import Module
from .graph import Graph
from .graph_module import GraphModule
from .node import Node
from .tracer import Tracer


class Match(NamedTuple):
    """A place where a pattern was found: its last node, and the node of the graph for each of the pattern."""

    anchor: Node
    nodes_map: dict[Node, Node]


def _graph_of(program: Callable | Graph | GraphModule) -> Graph:
    if isinstance(program, Graph):
        return program
    return program.graph if isinstance(program, GraphModule) else Tracer().trace(program)


def _fits(pattern: Any, found: Any, nodes: dict[Node, Node]) -> bool:
    """Whether an argument of the pattern fits one of the graph; ``nodes`` notes what stands for what."""
    if isinstance(pattern, Node):
        if pattern in nodes:
            return nodes[pattern] is found
        if pattern.op == "placeholder":
            if not isinstance(found, Node):
                return False
            nodes[pattern] = found
            return True
        if not isinstance(found, Node) or found in nodes.values() or pattern.op != found.op \
                or pattern.target != found.target:
            return False
        nodes[pattern] = found
        return _fits(pattern.args, found.args, nodes) and _fits(pattern.kwargs, found.kwargs, nodes)
    if isinstance(pattern, (tuple, list)):
        return type(found) is type(pattern) and len(found) == len(pattern) and all(
            _fits(p, f, nodes) for p, f in zip(pattern, found))
    if isinstance(pattern, dict):
        return isinstance(found, dict) and pattern.keys() == found.keys() and all(
            _fits(p, found[k], nodes) for k, p in pattern.items())
    return not isinstance(found, Node) and type(pattern) is type(found) and pattern == found


def _match(last: Node, anchor: Node) -> dict[Node, Node] | None:
    """What stands for the nodes of a pattern that ends in ``anchor``; None if it does not fit there."""
    nodes: dict[Node, Node] = {}
    if not _fits(last, anchor, nodes):
        return None
    inside = {found for p, found in nodes.items() if p.op != "placeholder"}
    escapes = any(user not in inside for found in inside - {anchor} for user in found.users)
    return None if escapes else nodes  # what is used outside cannot be taken away


def replace_pattern(gm: GraphModule, pattern: Callable | GraphModule | Graph,
                    replacement: Callable | GraphModule | Graph) -> list[Match]:
    """Put ``replacement`` in place of ``pattern`` wherever that is found; returns where it was.

    Both are functions (or graphs) of the same number of arguments with one result. Constants, functions,
    methods and paths of modules must be equal; what the pattern computes in between must be used nowhere
    else. Places that lie over each other are taken from the front. Raises ValueError for a pattern without
    a step or with several results.

    >>> traced = fw.fx.symbolic_trace(lambda x, y: (x + y).relu() * 2)
    >>> found = fw.fx.replace_pattern(traced, lambda a, b: (a + b).relu(), lambda a, b: a - b)
    >>> len(found), traced(fw.tensor([3.0]), fw.tensor([1.0]))
    (1, tensor([4.]))
    """
    wanted, new = _graph_of(pattern), _graph_of(replacement)
    last, result = wanted.output_node().args[0], new.output_node().args[0]
    if not isinstance(last, Node) or last.op == "placeholder" or not isinstance(result, Node):
        raise ValueError("replace_pattern: the pattern must compute one value, and so must what replaces it")
    arguments = [n for n in wanted.nodes if n.op == "placeholder"]
    names = [n for n in new.nodes if n.op == "placeholder"]
    if len(arguments) != len(names):
        raise ValueError(f"replace_pattern: the pattern has {len(arguments)} arguments, what replaces it "
                         f"{len(names)}")
    matches: list[Match] = []
    taken: set[Node] = set()
    for node in gm.graph.nodes:
        nodes = None if node in taken else _match(last, node)
        inside = set() if nodes is None else {found for p, found in nodes.items() if p.op != "placeholder"}
        if nodes is not None and not inside & taken and all(a in nodes for a in arguments):
            taken |= inside
            matches.append(Match(node, nodes))
    changed: dict[Node, Node] = {}  # anchors of places before, and what stands for them now
    for anchor, nodes in matches:
        values = {name: changed.get(nodes[a], nodes[a]) for name, a in zip(names, arguments)}
        with gm.graph.inserting_before(anchor):
            for step in new.nodes:
                if step.op not in ("placeholder", "output"):
                    values[step] = gm.graph.node_copy(step, lambda n: values[n])
        changed[anchor] = values[result]
        anchor.replace_all_uses_with(values[result])
        for found in reversed([n for n in gm.graph.nodes if n in nodes.values() and n in taken]):
            gm.graph.erase_node(found)
    if isinstance(replacement, Module):
        for step in new.nodes:
            if step.op in ("call_module", "get_attr"):
                gm._take(replacement, step.target)
    gm.recompile()
    return matches
