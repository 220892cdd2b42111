"""Hooks of a Module: functions called around ``forward`` and when gradients pass through it.

A module without hooks holds None here and pays one test. Hooks of all modules are looked at only while there
are some: the class has another ``__call__`` then. Backward hooks stand on two graph nodes that
pass gradients on: one behind the module's inputs, one behind its outputs.
"""

from collections.abc import Callable
from itertools import count
from typing import Any

from ..autograd.forward import carry
from ..autograd.hooks import RemovableHandle
from ..autograd.mode import state
from ..creation import zeros
from ..node import GraphOp, Node, Pick
from ..seam import settled
from ..tensor import Tensor, as_tensor, counter_of, wrap

_next_key = count().__next__


class Hooks:
    """The hooks of one module around its calls, by number, in the order of their calls.

    What else is known of a hook stands under its number in further dicts, so that these hold functions only.
    """

    def __init__(self) -> None:
        self.before: dict[int, Callable] = {}
        self.before_with_kwargs: dict[int, bool] = {}
        self.after: dict[int, Callable] = {}
        self.after_with_kwargs: dict[int, bool] = {}
        self.after_always: dict[int, bool] = {}
        self.backward_before: dict[int, Callable] = {}
        self.backward: dict[int, Callable] = {}
        self.full: bool | None = None  # whether backward hooks were registered as full ones

    def __bool__(self) -> bool:
        """Whether there are any: they may all have been removed."""
        return bool(self.before or self.after or self.backward or self.backward_before)


class StateHooks:
    """The hooks of one module around saving and loading its state, by number."""

    def __init__(self) -> None:
        self.save_before: dict[int, Callable] = {}
        self.save_after: dict[int, Callable] = {}
        self.save_after_plain: dict[int, bool] = {}  # those that must not replace the dict
        self.load_before: dict[int, Callable] = {}
        self.load_before_with_module: dict[int, bool] = {}
        self.load_after: dict[int, Callable] = {}


class _Everywhere(Hooks):
    """The hooks of all modules; ``begin``, called when one is added, makes calls look at them."""

    begin: Callable[[], None]
    on = False  # whether they are looked at

    def add(self, hooks: dict[int, Callable], hook: Callable, *marks: dict[int, bool]) -> RemovableHandle:
        """As ``add`` below."""
        self.begin()
        return add(hooks, hook, False, *marks)


EVERYWHERE = _Everywhere()


def watched() -> bool:
    """Whether there are hooks of all modules."""
    return bool(EVERYWHERE)


def add(hooks: dict[int, Callable], hook: Callable, prepend: bool = False,
        *marks: dict[int, bool]) -> RemovableHandle:
    """Put a hook last (or first), and its number into ``marks``; the handle takes it out of all."""
    key = _next_key()
    for mark in marks:
        mark[key] = True
    if prepend:
        rest = dict(hooks)
        hooks.clear()
        hooks[key] = hook
        hooks.update(rest)
    else:
        hooks[key] = hook
    return RemovableHandle(hooks, key, *marks)


def call(module: Any, hooks: Hooks, args: tuple, kwargs: dict) -> Any:
    """``module.forward`` with its hooks around it."""
    output: Any = None
    finished: set[int] = set()
    try:
        for key, hook in list(hooks.before.items()):
            args, kwargs = _before(module, hook, key in hooks.before_with_kwargs, args, kwargs)
        watch = None
        if (hooks.backward or hooks.backward_before) and state.recording:
            watch = Watch(module, hooks)
            args = watch.inputs(args)
        output = module.forward(*args, **kwargs)
        for key, hook in list(hooks.after.items()):
            finished.add(key)
            new = hook(module, args, kwargs, output) if key in hooks.after_with_kwargs \
                else hook(module, args, output)
            output = output if new is None else new
        return output if watch is None else watch.outputs(output)
    except Exception:
        for key, hook in list(hooks.after.items()):
            if key in hooks.after_always and key not in finished:
                hook(module, args, kwargs, output) if key in hooks.after_with_kwargs \
                    else hook(module, args, output)
        raise


def both(own: Hooks | None) -> Hooks:
    """The hooks of all modules and one module's, as they are called: those of all first."""
    merged = Hooks()
    for part in (EVERYWHERE, own):
        if part is not None:
            for name, hooks in vars(part).items():
                if isinstance(hooks, dict):
                    getattr(merged, name).update(hooks)
    return merged


def _before(module: Any, hook: Callable, with_kwargs: bool, args: tuple, kwargs: dict) -> tuple:
    if not with_kwargs:
        new = hook(module, args)
        return (args if new is None else new if isinstance(new, tuple) else (new,)), kwargs
    new = hook(module, args, kwargs)
    if new is None:
        return args, kwargs
    if not (isinstance(new, tuple) and len(new) == 2):
        raise TypeError(f"forward pre-hook with kwargs must return None or (args, kwargs), got "
                        f"{type(new).__name__}")
    return new


class _Relay(GraphOp):
    """The op of a hook's node: passes gradients on, through a function."""

    name = "module_hook"

    def __init__(self, n: int, likes: list, function: Callable) -> None:
        self.differentiable = n
        self.likes = likes
        self.function = function

    def pull(self, node: Node, parts: list, edges: tuple, live: bool) -> list:
        """The gradients of the node's inputs; ``parts`` has None for outputs that were not used.

        With ``likes`` those become zeros: an input that the module ignored has a gradient, 0.
        """
        full = [_zeros(like) if g is None else as_tensor(g) for g, like in zip(parts, self.likes)] \
            if self.likes else [g if g is None else as_tensor(g) for g in parts]
        return [g if g is None or live else g._array for g in self.function(full)]


def _zeros(like: tuple) -> Tensor:
    shape, dtype, device = like
    return zeros(shape, dtype=dtype, device=device)


def _relay(tensors: list[Tensor], function: Callable, fill: bool) -> list[Tensor]:
    """The same tensors behind one new node, which calls ``function`` on their gradients."""
    settled(tensors)
    likes = [(t.shape, t.dtype, t.device) for t in tensors] if fill else []
    op = _Relay(len(tensors), likes, function)
    node = Node(op, tuple(t._node for t in tensors), None, None, {}, None)
    carry(node.edges, node)
    behind = []
    for i, t in enumerate(tensors):
        new = wrap(t._array, node=Pick(node, i))
        new._counter = counter_of(t)
        behind.append(new)
    return behind


class Watch:
    """The backward hooks of one call: catches the gradients of its outputs, then of its inputs."""

    def __init__(self, module: Any, hooks: Hooks) -> None:
        self.module = module
        self.hooks = hooks
        self.grad_output: tuple = ()
        self.places: list[int] = []
        self.out_places: list[int] = []
        self.width = 0
        self.out_width = 0

    def inputs(self, args: tuple) -> tuple:
        """The arguments, those that require grad behind a node of ours."""
        self.width = len(args)
        self.places = [i for i, a in enumerate(args) if isinstance(a, Tensor) and a.requires_grad]
        if not self.places:
            return args
        new = list(args)
        for i, t in zip(self.places, _relay([args[i] for i in self.places], self._at_inputs, True)):
            new[i] = t
        return tuple(new)

    def outputs(self, output: Any) -> Any:
        """The output (a tensor, or a tuple or list of some), behind a node of ours."""
        alone = isinstance(output, Tensor)
        if not alone and not isinstance(output, (tuple, list)):
            raise TypeError(f"{type(self.module).__name__}: backward hooks need forward to return a "
                            f"Tensor or a tuple of them, got {type(output).__name__}")
        items = [output] if alone else list(output)
        self.out_width = len(items)
        self.out_places = [i for i, t in enumerate(items)
                           if isinstance(t, Tensor) and t.requires_grad]
        if not self.out_places:
            return output
        watched = [items[i] for i in self.out_places]
        for i, t in zip(self.out_places, _relay(watched, self._at_outputs, False)):
            items[i] = t
        if alone:
            return items[0]
        return type(output)(*items) if hasattr(output, "_fields") else type(output)(items)

    def _at_outputs(self, grads: list) -> list:
        outs = _spread(grads, self.out_places, self.out_width)
        for hook in list(self.hooks.backward_before.values()):
            outs = _replaced(outs, hook(self.module, outs), "full backward pre-hook")
        self.grad_output = outs
        if not self.places:
            for hook in list(self.hooks.backward.values()):
                hook(self.module, (None,) * self.width, outs)
        return [outs[i] for i in self.out_places]

    def _at_inputs(self, grads: list) -> list:
        ins = _spread(grads, self.places, self.width)
        for hook in list(self.hooks.backward.values()):
            ins = _replaced(ins, hook(self.module, ins, self.grad_output), "full backward hook")
        return [ins[i] for i in self.places]


def _spread(grads: list, places: list[int], width: int) -> tuple:
    full: list[Any] = [None] * width
    for i, g in zip(places, grads):
        full[i] = g
    return tuple(full)


def _replaced(old: tuple, new: Any, what: str) -> tuple:
    if new is None:
        return old
    new = new if isinstance(new, tuple) else (new,)
    if len(new) != len(old):
        raise ValueError(f"a {what} returned {len(new)} gradients where {len(old)} were wanted")
    return new
