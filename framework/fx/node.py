"""Node: one step of a graph."""

from collections.abc import Callable
from typing import Any


def map_arg(a: Any, fn: Callable[["Node"], Any]) -> Any:
    """The nest of tuples, lists, dicts and slices with ``fn(node)`` in place of each node.

    >>> from framework.fx import map_arg
    >>> map_arg([1, (2,)], lambda node: 0)
    [1, (2,)]
    """
    return map_aggregate(a, lambda x: fn(x) if isinstance(x, Node) else x)


def map_aggregate(a: Any, fn: Callable[[Any], Any]) -> Any:
    """The nest of tuples, lists, dicts and slices with ``fn`` of each leaf."""
    if isinstance(a, tuple):
        parts = [map_aggregate(x, fn) for x in a]
        return type(a)(*parts) if hasattr(a, "_fields") else tuple(parts)
    if isinstance(a, list):
        return [map_aggregate(x, fn) for x in a]
    if isinstance(a, dict):
        return {k: map_aggregate(v, fn) for k, v in a.items()}
    if isinstance(a, slice):
        return slice(*[map_aggregate(x, fn) for x in (a.start, a.stop, a.step)])
    return fn(a)


_EFFECTS: set[Callable] = set()
Target = Callable[..., Any] | str
Argument = Any


def has_side_effect(fn: Any) -> Any:
    """Mark a function: a step that calls it stays although nobody takes its result. Also a decorator."""
    _EFFECTS.add(fn)
    return fn


class Node:
    """A step: ``op`` says what ``target`` is, ``args`` and ``kwargs`` hold values and other nodes.

    op: "placeholder" (an argument), "get_attr" (a parameter of the module), "call_function", "call_method",
    "call_module", "output". ``users`` are the nodes that take its result.
    """

    def __init__(self, graph: Any, name: str, op: str, target: Any, args: tuple, kwargs: dict,
                 return_type: Any = None) -> None:
        self.graph, self.name, self.op, self.target, self.type = graph, name, op, target, return_type
        self._args: tuple = ()
        self._kwargs: dict = {}
        self.users: dict[Node, None] = {}
        self._input_nodes: dict[Node, None] = {}
        self._erased = False
        self.meta: dict[str, Any] = {}
        self._set(args, kwargs)

    def _set(self, args: Any, kwargs: Any) -> None:
        for old in self._input_nodes:
            old.users.pop(self, None)
        self._input_nodes = {}

        def note(node: "Node") -> "Node":
            self._input_nodes[node] = None
            node.users[self] = None
            return node
        self._args, self._kwargs = map_arg(tuple(args), note), map_arg(dict(kwargs), note)

    @property
    def args(self) -> tuple:
        """What is passed by position."""
        return self._args

    @args.setter
    def args(self, args: tuple) -> None:
        self._set(args, self._kwargs)

    @property
    def kwargs(self) -> dict:
        """What is passed by name."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, kwargs: dict) -> None:
        self._set(self._args, kwargs)

    @property
    def all_input_nodes(self) -> list["Node"]:
        """The nodes whose results it takes."""
        return list(self._input_nodes)

    @property
    def next(self) -> "Node":
        """The step after it."""
        return self.graph._nodes[self.graph._nodes.index(self) + 1]

    @property
    def prev(self) -> "Node":
        """The step before it."""
        return self.graph._nodes[self.graph._nodes.index(self) - 1]

    def prepend(self, x: "Node") -> None:
        """Move ``x`` to the place before this node."""
        self.graph._nodes.remove(x)
        self.graph._nodes.insert(self.graph._nodes.index(self), x)

    def append(self, x: "Node") -> None:
        """Move ``x`` to the place after this node."""
        self.graph._nodes.remove(x)
        self.graph._nodes.insert(self.graph._nodes.index(self) + 1, x)

    def replace_input_with(self, old_input: "Node", new_input: "Node") -> None:
        """Take the result of another node instead of that of ``old_input``."""
        swap = lambda node: new_input if node is old_input else node
        self._set(map_arg(self._args, swap), map_arg(self._kwargs, swap))

    def replace_all_uses_with(self, replace_with: "Node", delete_user_cb: Callable = lambda user: True,
                              propagate_meta: bool = False) -> list["Node"]:
        """Let the users of this node (those for which the function is true) take another one's result."""
        changed = [user for user in list(self.users) if delete_user_cb(user)]
        for user in changed:
            user.replace_input_with(self, replace_with)
        if propagate_meta:
            replace_with.meta.update(self.meta)
        return changed

    def update_arg(self, idx: int, arg: Any) -> None:
        """Set one argument passed by position."""
        args = list(self._args)
        args[idx] = arg
        self.args = tuple(args)

    def update_kwarg(self, key: str, arg: Any) -> None:
        """Set one argument passed by name."""
        self.kwargs = {**self._kwargs, key: arg}

    def format_node(self) -> str:
        """One line: ``%add : [num_users=1] = call_function[target=add](args = (%x, 1), kwargs = {})``."""
        if self.op == "output":
            return f"return {_shown(self.args[0])}"
        name = getattr(self.target, "__name__", self.target)
        head = f"%{self.name} : [num_users={len(self.users)}] = {self.op}[target={name}]"
        if self.op in ("placeholder", "get_attr"):
            return head
        return f"{head}(args = {_shown(self.args)}, kwargs = {_shown(self.kwargs)})"

    def is_impure(self) -> bool:
        """Whether it must stay although nobody takes its result."""
        return self.op in ("placeholder", "output") or self.target in _EFFECTS or (
            isinstance(self.target, str) and self.op == "call_method" and self.target.endswith("_"))

    def __repr__(self) -> str:
        return self.name


class _Shown:
    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"%{self.name}"


def _shown(a: Any) -> str:
    return repr(map_arg(a, lambda node: _Shown(node.name)))
