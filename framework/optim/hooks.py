"""Hooks around an optimizer's steps, whoever wrote ``step``; the seam (``seam.py``) sees a step from here."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from ..autograd.hooks import RemovableHandle
from ..quiet import quiet
from ..seam import STEP, Event, intercepted

EVERY_PRE: dict[int, Callable] = {}  # hooks of all optimizers
EVERY_POST: dict[int, Callable] = {}


def register(hooks: dict[int, Callable], hook: Callable, prepend: bool = False) -> RemovableHandle:
    """Put a hook behind the others, or with ``prepend`` before them."""
    key = max(hooks, default=-1) + 1
    others = dict(hooks) if prepend else {}
    if prepend:
        hooks.clear()
    hooks[key] = hook
    hooks.update(others)
    return RemovableHandle(hooks, key)


def register_optimizer_step_pre_hook(hook: Callable) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` before each step of every optimizer.

    >>> handle = fw.optim.optimizer.register_optimizer_step_pre_hook(lambda *args: print("step"))
    >>> fw.optim.SGD([fw.ones(1, requires_grad=True)]).step()
    step
    >>> handle.remove()
    """
    return register(EVERY_PRE, hook)


def register_optimizer_step_post_hook(hook: Callable) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` after each step of every optimizer.

    >>> handle = fw.optim.optimizer.register_optimizer_step_post_hook(lambda *args: print("done"))
    >>> fw.optim.SGD([fw.ones(1, requires_grad=True)]).step()
    done
    >>> handle.remove()
    """
    return register(EVERY_POST, hook)


def hooked(step: Callable) -> Callable:
    """``step`` with the optimizer's hooks around it; a step that calls its parent's runs them once."""
    if getattr(step, "hooked", False):
        return step

    @wraps(step)
    def hooked_step(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self._stepping:
            return step(self, *args, **kwargs)
        self._opt_called = self._stepping = True
        try:
            if EVERY_PRE or self._optimizer_step_pre_hooks:
                for hook in (*EVERY_PRE.values(), *self._optimizer_step_pre_hooks.values()):
                    changed = hook(self, args, kwargs)
                    if changed is not None:
                        args, kwargs = _checked(self, changed)
            if quiet.settle is not None:  # calls put off read the parameters as they are now
                quiet.settle()
            if quiet.run is not None:
                result = step(self, *args, **kwargs)
            else:
                params = tuple([p for group in self.param_groups for p in group["params"]])
                result = intercepted(Event(STEP, self, params, {}), lambda *_: step(self, *args, **kwargs))
            if EVERY_POST or self._optimizer_step_post_hooks:
                for hook in (*self._optimizer_step_post_hooks.values(), *EVERY_POST.values()):
                    hook(self, args, kwargs)
            return result
        finally:
            self._stepping = False

    hooked_step.hooked = True  # type: ignore[attr-defined]
    return hooked_step


def _checked(optimizer: Any, changed: Any) -> tuple:
    if not (isinstance(changed, tuple) and len(changed) == 2):
        raise TypeError(f"{type(optimizer).__name__}.step: a pre-hook must return None or (args, kwargs), "
                        f"got {changed!r}")
    return changed
