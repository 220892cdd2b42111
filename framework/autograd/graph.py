"""The graph of a computation, for those who look at it or stand in its way.

Hooks on the tensors that backward keeps, hooks on several gradients at once, hooks on nodes, places in
the graph. What hooks need hangs on the nodes that have hooks; all others pay nothing for it.
"""

import threading
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import Any

from ..config.listing import own as _own
from ..errors import AutogradError
from ..node import Leaf, Pick, PlainNode, place_of
from ..node import Node as Node
from ..seam import settled
from ..tensor import Tensor, bump
from .arguments import GradientEdge as GradientEdge
from .around import around, pack_node
from .engine import Walk
from .hooks import RemovableHandle as RemovableHandle
from .hooks import insert_hook
from .listen import listen, unlisten
from .mode import state

_next_key = count().__next__
_lock = threading.Lock()


# -- tensors that backward keeps ------------------------------------------------------------------


class saved_tensors_hooks:
    """Inside the block, ``pack`` gets every tensor that is kept for backward, and what it returns is kept.

    ``unpack`` gets that back when backward needs the tensor and must return one of the same shape and dtype.
    The tensor ``pack`` gets is outside the graph and must not be changed; the innermost block counts. A
    tensor that ``pack`` returns as it is stays under watch: if it is changed in place, backward says so.
    Raises TypeError if ``unpack`` returns no Tensor, AutogradError for a shape or dtype that is not the
    saved one's.

    >>> x = fw.tensor([1.0, 2.0], requires_grad=True)
    >>> with fw.autograd.graph.saved_tensors_hooks(lambda t: t.half(), lambda t: t.float()):
    ...     y = (x * x).sum()
    >>> y.backward()
    >>> x.grad
    tensor([2., 4.])
    """

    def __init__(self, pack_hook: Callable, unpack_hook: Callable) -> None:
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def __enter__(self) -> None:
        if state.hooks_forbidden is not None:
            raise AutogradError(state.hooks_forbidden)
        if not state.saved_hooks:
            listen(pack_node)
        state.saved_hooks += ((self.pack_hook, self.unpack_hook),)

    def __exit__(self, *exception: Any) -> None:
        state.saved_hooks = state.saved_hooks[:-1]
        if not state.saved_hooks:
            unlisten(pack_node)


class save_on_cpu(saved_tensors_hooks):
    """Inside the block, what is kept for backward is kept in the host's memory, and comes back when needed.

    pin_memory is taken for PyTorch's sake; the copies are pageable. Tensors on the CPU stay where they are.

    >>> x = fw.tensor([3.0], requires_grad=True)
    >>> with fw.autograd.graph.save_on_cpu():
    ...     y = x * x
    >>> y.backward()
    >>> x.grad
    tensor([6.])
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__(_to_host, _from_host)


def _to_host(t: Tensor) -> Any:
    return (t.device, t.cpu()) if t.is_cuda else t  # type: ignore[attr-defined]


def _from_host(packed: Any) -> Tensor:
    return packed if isinstance(packed, Tensor) else packed[1].to(packed[0])


class disable_saved_tensors_hooks:
    """Inside the block, ``saved_tensors_hooks`` raises AutogradError with this message.

    >>> with fw.autograd.graph.disable_saved_tensors_hooks("not here"):
    ...     with fw.autograd.graph.save_on_cpu():
    ...         pass
    Traceback (most recent call last):
    framework.errors.AutogradError: not here
    """

    def __init__(self, error_message: str) -> None:
        self.error_message = error_message
        self._before: list[str | None] = []

    def __enter__(self) -> None:
        if state.saved_hooks:
            raise AutogradError("disable_saved_tensors_hooks: saved_tensors_hooks are in use around this "
                                "block")
        self._before.append(state.hooks_forbidden)
        state.hooks_forbidden = self.error_message

    def __exit__(self, *exception: Any) -> None:
        state.hooks_forbidden = self._before.pop()


def increment_version(tensor: Tensor | Sequence[Tensor]) -> None:
    """Note that a tensor (or each of several) was changed in place by means that autograd did not see.

    A backward that kept it then says so instead of giving wrong gradients.

    >>> x = fw.ones(2)
    >>> fw.autograd.graph.increment_version(x)
    >>> x._version
    1
    """
    for t in (tensor,) if isinstance(tensor, Tensor) else tensor:
        if not isinstance(t, Tensor):
            raise TypeError(f"increment_version: wanted Tensors, got {type(t).__name__}")
        settled((t,))
        bump(t, "increment_version")


# -- places and nodes -----------------------------------------------------------------------------


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """Where the gradient of ``tensor`` passes: (node, number of its output), good for ``autograd.grad``.

    It keeps the graph alive, but not the tensor. Raises AutogradError if the tensor requires no grad.

    >>> x = fw.tensor([2.0], requires_grad=True)
    >>> y = x * x
    >>> edge = fw.autograd.graph.get_gradient_edge(y)
    >>> fw.autograd.grad((y * 3).sum(), edge)
    (tensor([3.]),)
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"get_gradient_edge: wanted a Tensor, got {type(tensor).__name__}")
    if tensor._node is None:
        raise AutogradError("get_gradient_edge: this tensor does not require grad")
    node, number = place_of(tensor._node)
    return GradientEdge(node, number, tensor._node)


def _register_hook(self: Any, fn: Callable) -> RemovableHandle:
    """Call ``fn(grad_inputs, grad_outputs)`` after this node's turn; what it returns replaces grad_inputs."""
    hooks, key = around(self).after, _next_key()
    hooks[key] = fn
    return RemovableHandle(hooks, key)


def _register_prehook(self: Any, fn: Callable) -> RemovableHandle:
    """Call ``fn(grad_outputs)`` before this node's turn; what it returns replaces grad_outputs."""
    hooks, key = around(self).before, _next_key()
    hooks[key] = fn
    return RemovableHandle(hooks, key)


for _kind in (Node, PlainNode):
    _kind.register_hook, _kind.register_prehook = _register_hook, _register_prehook  # type: ignore
Pick.register_hook = lambda self, fn: self.edges[0].register_hook(fn)  # type: ignore[attr-defined]
Pick.register_prehook = lambda self, fn: self.edges[0].register_prehook(fn)  # type: ignore[attr-defined]


class _LeafHandle(RemovableHandle):
    """Takes back both halves of a hook on a leaf."""

    def __init__(self, leaf: Leaf, hook: Callable, after: Callable) -> None:
        self._parts = [RemovableHandle(leaf.hooks, hook), RemovableHandle(leaf.after, after)]

    def remove(self) -> None:
        for part in self._parts:
            part.remove()


def _register_leaf_hook(self: Leaf, fn: Callable) -> RemovableHandle:
    """Call ``fn((), (grad,))`` after ``grad`` was added to the leaf's ``.grad``."""
    seen: list = []

    def note(g: Tensor) -> None:
        seen[:] = [g]
    note.retains = True  # type: ignore[attr-defined]

    def call() -> None:
        fn((), (seen.pop(),))
    self.hooks = [] if self.hooks is None else self.hooks
    self.after = [] if self.after is None else self.after
    self.hooks.append(note)
    self.after.append(call)
    return _LeafHandle(self, note, call)


def _register_leaf_prehook(self: Leaf, fn: Callable) -> RemovableHandle:
    """Call ``fn((grad,))`` before ``grad`` is added to the leaf's ``.grad``; its result replaces it."""
    def hook(g: Tensor) -> Any:
        new = fn((g,))
        return new[0] if isinstance(new, tuple) else new
    self.hooks = [] if self.hooks is None else self.hooks
    insert_hook(self.hooks, hook)
    return RemovableHandle(self.hooks, hook)


Leaf.register_hook, Leaf.register_prehook = _register_leaf_hook, _register_leaf_prehook  # type: ignore


# -- several gradients ----------------------------------------------------------------------------


def register_multi_grad_hook(tensors: Sequence[Tensor], fn: Callable, *,
                             mode: str = "all") -> RemovableHandle:
    """Call ``fn`` once per backward, when gradients of these tensors are known.

    mode "all": ``fn(grads)`` when all gradients that this backward computes are known, with None for
    tensors it does not come by. mode "any": ``fn(grad)`` with the first. What ``fn`` returns is not used.
    Backwards that run in several threads, or inside each other, count on their own. Raises ValueError for
    another mode, AutogradError for a tensor that requires no grad.

    >>> x, y = fw.ones(2, requires_grad=True), fw.ones(2, requires_grad=True)
    >>> handle = fw.autograd.graph.register_multi_grad_hook([x, y], print)
    >>> (x * 2 + y * 3).sum().backward()
    [tensor([2., 2.]), tensor([3., 3.])]
    """
    if mode not in ("all", "any"):
        raise ValueError(f"register_multi_grad_hook: mode must be 'all' or 'any', got {mode!r}")
    tensors = list(tensors)
    for i, t in enumerate(tensors):
        if not isinstance(t, Tensor) or t._node is None:
            what = "requires no grad" if isinstance(t, Tensor) else f"is a {type(t).__name__}, not a Tensor"
            raise AutogradError(f"register_multi_grad_hook: tensors[{i}] {what}")
    gather = _Gather([t._node.seq for t in tensors], fn, mode)  # type: ignore[union-attr]
    return _ManyHandles([t.register_hook(partial(gather, i))  # type: ignore[attr-defined]
                         for i, t in enumerate(tensors)])


class _ManyHandles(RemovableHandle):
    def __init__(self, handles: list[RemovableHandle]) -> None:
        self._handles = handles

    def remove(self) -> None:
        for handle in self._handles:
            handle.remove()


class _Gather:
    """The gradients of one multi-grad hook, gathered per backward.

    It knows the nodes by their numbers: they hold it, so references from here would be circles.
    """

    def __init__(self, places: list[int], fn: Callable, mode: str) -> None:
        self.places = places
        self.fn, self.mode = fn, mode
        self.walks: dict[Walk, _Round] = {}

    def __call__(self, index: int, g: Tensor) -> None:
        walk = state.walk
        with _lock:
            first = walk not in self.walks
            if first:
                self.walks[walk] = _Round(len(self.places))
        here = self.walks[walk]
        if first:
            walk.ends = [*(walk.ends or ()), partial(self._end, walk)]
            reached = set() if self.mode == "any" else walk.reaches(set(self.places))
            here.awaited = {i for i, place in enumerate(self.places) if place in reached}
        here.grads[index] = g
        if self.mode == "any":
            if first:
                self.fn(g)
            return
        here.awaited.discard(index)
        if not here.awaited and not here.done:
            self._fire(here)

    def _fire(self, here: "_Round") -> None:
        here.done = True
        self.fn(here.grads)

    def _end(self, walk: Walk) -> None:
        """A node that was expected may have been given no gradient."""
        here = self.walks.pop(walk)
        if here.awaited and not here.done:
            self._fire(here)


class _Round:
    """One backward's gradients; ``awaited``: the places still to come; ``done``: the hook was called."""

    def __init__(self, n: int) -> None:
        self.grads: list[Tensor | None] = [None] * n
        self.awaited: set = set()
        self.done = False


__dir__ = _own(globals(), "GradientEdge Node RemovableHandle")
