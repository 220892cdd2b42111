"""Hooks on the gradients of tensors, and ``retain_grad``, which is one."""

import weakref
from collections.abc import Callable
from typing import Any

from ..errors import AutogradError
from ..node import Leaf
from ..tensor import Tensor


class RemovableHandle:
    """Takes back a registered hook: ``handle.remove()``, or the end of a ``with`` block."""

    def __init__(self, hooks: Any, key: Any, *marks: dict) -> None:
        self._hooks, self._key, self._marks = hooks, key, marks

    @property
    def id(self) -> Any:
        """The key of the hook in its dict."""
        return self._key

    def remove(self) -> None:
        """Take the hook out; a second call does nothing."""
        hooks, key, marks = self._hooks, self._key, self._marks
        self._hooks, self._key, self._marks = {}, None, ()  # the hook may hold what it hung on
        for mark in marks:
            mark.pop(key, None)
        if isinstance(hooks, dict):
            hooks.pop(key, None)
            return
        for i, hook in enumerate(hooks):
            if hook is key:
                del hooks[i]
                return

    def __enter__(self) -> "RemovableHandle":
        return self

    def __exit__(self, *exception: Any) -> None:
        self.remove()


def _register_hook(self: Tensor, hook: Callable) -> RemovableHandle:
    """Call ``hook(grad)`` when this tensor's gradient is known; what it returns replaces it."""
    if not self.requires_grad:
        raise AutogradError("register_hook: this tensor does not require grad")
    node: Any = self._node
    hooks = node.hooks
    if hooks is None:
        hooks = node.hooks = []
    insert_hook(hooks, hook)
    return RemovableHandle(hooks, hook)


def insert_hook(hooks: list, hook: Callable) -> None:
    """Put a hook behind the others, but before those that retain: they keep what all hooks have made."""
    first = next((i for i, h in enumerate(hooks) if getattr(h, "retains", False)), len(hooks))
    hooks.insert(first, hook)


def _register_post_accumulate_grad_hook(self: Tensor, hook: Callable) -> RemovableHandle:
    """Call ``hook(tensor)`` after a backward has added to this leaf's ``.grad``."""
    if type(self._node) is not Leaf:
        raise AutogradError("register_post_accumulate_grad_hook: only for leaf tensors that require grad")
    me = weakref.ref(self)

    def call() -> None:
        tensor = me()
        if tensor is not None:
            hook(tensor)
    hooks = self._node.after
    if hooks is None:
        hooks = self._node.after = []
    hooks.append(call)
    return RemovableHandle(hooks, call)


def _retain_grad(self: Tensor) -> None:
    """Keep the gradient of this computed tensor in ``.grad`` too."""
    if not self.requires_grad:
        raise AutogradError("retain_grad: this tensor does not require grad")
    if type(self._node) is Leaf or self.retains_grad:
        return
    me = weakref.ref(self)

    def keep(g: Tensor) -> None:
        tensor = me()
        if tensor is not None:
            more = tensor._extras()
            more.grad = g.clone() if more.grad is None else more.grad + g  # type: ignore
    keep.retains = True  # type: ignore[attr-defined]
    _register_hook(self, keep)


def _retains_grad(self: Tensor) -> bool:
    """Whether ``retain_grad`` was called on this computed tensor."""
    return (self._node is not None and type(self._node) is not Leaf
            and any(getattr(h, "retains", False) for h in self._node.hooks or ()))


for _name, _method in (("register_hook", _register_hook),
                       ("register_post_accumulate_grad_hook", _register_post_accumulate_grad_hook),
                       ("retain_grad", _retain_grad), ("retains_grad", property(_retains_grad))):
    setattr(Tensor, _name, _method)
