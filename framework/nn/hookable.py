"""The part of Module that takes hooks: of its calls, of saving and loading, and of all modules at once."""

import warnings
from collections.abc import Callable
from typing import Any

from .hooks import EVERYWHERE, Hooks, RemovableHandle, StateHooks, add


def _dict(box: str, field: str) -> Any:
    """The property that shows one dict of hooks and takes another for it."""
    def get(self: Any) -> dict:
        return getattr(getattr(self, box)(), field)

    def put(self: Any, value: dict) -> None:
        setattr(getattr(self, box)(), field, value)
    return property(get, put)


class Hookable:
    """What Module knows of hooks. Those of calls and those of the state are made when first asked for."""

    _hooks: Hooks | None
    _state_hooks: StateHooks | None

    _forward_pre_hooks = _dict("_own_hooks", "before")
    _forward_pre_hooks_with_kwargs = _dict("_own_hooks", "before_with_kwargs")
    _forward_hooks = _dict("_own_hooks", "after")
    _forward_hooks_with_kwargs = _dict("_own_hooks", "after_with_kwargs")
    _forward_hooks_always_called = _dict("_own_hooks", "after_always")
    _backward_pre_hooks = _dict("_own_hooks", "backward_before")
    _backward_hooks = _dict("_own_hooks", "backward")
    _is_full_backward_hook = _dict("_own_hooks", "full")
    _state_dict_pre_hooks = _dict("_own_state_hooks", "save_before")
    _state_dict_hooks = _dict("_own_state_hooks", "save_after")
    _load_state_dict_pre_hooks = _dict("_own_state_hooks", "load_before")
    _load_state_dict_post_hooks = _dict("_own_state_hooks", "load_after")

    def _own_hooks(self) -> Hooks:
        hooks = self._hooks
        if hooks is None:
            hooks = self.__dict__["_hooks"] = Hooks()
        return hooks

    def _own_state_hooks(self) -> StateHooks:
        hooks = self.__dict__.get("_state_hooks")
        if hooks is None:
            hooks = self.__dict__["_state_hooks"] = StateHooks()
        return hooks

    def register_forward_pre_hook(self, hook: Callable, *, prepend: bool = False,
                                  with_kwargs: bool = False) -> RemovableHandle:
        """Call ``hook(module, args)`` before forward; what it returns (not None) replaces the args.

        with_kwargs: call ``hook(module, args, kwargs)``, which may return ``(args, kwargs)``.
        """
        own = self._own_hooks()
        return add(own.before, hook, prepend, *[own.before_with_kwargs][:with_kwargs])

    def register_forward_hook(self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False,
                              always_call: bool = False) -> RemovableHandle:
        """Call ``hook(module, args, output)`` after forward; what it returns replaces the output.

        with_kwargs: call ``hook(module, args, kwargs, output)``. always_call: also when forward raised.
        """
        own = self._own_hooks()
        return add(own.after, hook, prepend, *[own.after_with_kwargs][:with_kwargs],
                   *[own.after_always][:always_call])

    def register_full_backward_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` when the gradients of the inputs are known.

        grad_input and grad_output are tuples, one entry per positional argument and output, None for
        those without gradient. A returned tuple replaces grad_input.
        """
        return self._add_backward(hook, prepend, True)

    def register_backward_hook(self, hook: Callable) -> RemovableHandle:
        """The old name of ``register_full_backward_hook``, with a FutureWarning.

        The hook sees the gradients of the module's inputs, not those of the last operation in it, which is
        what PyTorch shows it. One module takes hooks of one kind.
        """
        warnings.warn(f"{type(self).__name__}.register_backward_hook is deprecated and calls the hook "
                      f"as register_full_backward_hook does, with the gradients of the inputs; use that",
                      FutureWarning, stacklevel=2)
        return self._add_backward(hook, False, False)

    def _add_backward(self, hook: Callable, prepend: bool, full: bool) -> RemovableHandle:
        own = self._own_hooks()
        if own.full is not None and own.full != full and own.backward:
            raise RuntimeError(f"{type(self).__name__}: it has backward hooks of the other kind already; use "
                               f"register_full_backward_hook for all of them")
        own.full = full
        return add(own.backward, hook, prepend)

    def register_full_backward_pre_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_output)`` before backward; a returned tuple replaces it."""
        return add(self._own_hooks().backward_before, hook, prepend)

    def register_state_dict_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Call ``hook(module, prefix, keep_vars)`` before ``state_dict`` gathers this module's part."""
        return add(self._own_state_hooks().save_before, hook)

    def register_state_dict_post_hook(self, hook: Callable) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, local_metadata)`` when this module and those below are in
        the dict, which it may change in place."""
        own = self._own_state_hooks()
        return add(own.save_after, hook, False, own.save_after_plain)

    def _register_state_dict_hook(self, hook: Callable) -> RemovableHandle:
        """As ``register_state_dict_post_hook``; a dict that the hook returns takes the place of the other."""
        return add(self._own_state_hooks().save_after, hook)

    def register_load_state_dict_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
        error_msgs)`` before this module is loaded; it may change the dict and the lists."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(self, hook: Callable,
                                           with_module: bool = False) -> RemovableHandle:
        """As the public one, by default without the module as the first argument."""
        own = self._own_state_hooks()
        return add(own.load_before, hook, False, *[own.load_before_with_module][:with_module])

    def register_load_state_dict_post_hook(self, hook: Callable) -> RemovableHandle:
        """Call ``hook(module, incompatible_keys)`` when the values are in the model; it may change the two
        lists, from which ``strict`` judges then."""
        return add(self._own_state_hooks().load_after, hook)


# -- hooks of all modules ------------------------------------------------------------------------------------

def register_module_forward_pre_hook(hook: Callable) -> RemovableHandle:
    """Call ``hook(module, args)`` before every forward of every module, before the module's own hooks."""
    return EVERYWHERE.add(EVERYWHERE.before, hook)


def register_module_forward_hook(hook: Callable, *, with_kwargs: bool = False,
                                 always_call: bool = False) -> RemovableHandle:
    """Call ``hook(module, args, output)`` after every forward of every module, before the module's own."""
    own = EVERYWHERE
    return own.add(own.after, hook, *[own.after_with_kwargs][:with_kwargs],
                   *[own.after_always][:always_call])


def register_module_full_backward_pre_hook(hook: Callable) -> RemovableHandle:
    """Call ``hook(module, grad_output)`` before the backward of every module."""
    return EVERYWHERE.add(EVERYWHERE.backward_before, hook)


def register_module_full_backward_hook(hook: Callable) -> RemovableHandle:
    """Call ``hook(module, grad_input, grad_output)`` in the backward of every module."""
    return EVERYWHERE.add(EVERYWHERE.backward, hook)


def register_module_backward_hook(hook: Callable) -> RemovableHandle:
    """The old name of ``register_module_full_backward_hook``, with a FutureWarning."""
    warnings.warn("register_module_backward_hook is deprecated and calls the hook as "
                  "register_module_full_backward_hook does; use that", FutureWarning, stacklevel=2)
    return register_module_full_backward_hook(hook)


# by kind: functions that see (module, name, value) when something is registered and may give another value
REGISTRATION: dict[str, dict[int, Callable]] = {"parameter": {}, "buffer": {}, "module": {}}


def register_module_parameter_registration_hook(hook: Callable) -> RemovableHandle:
    """Call ``hook(module, name, parameter)`` when a parameter is registered; what it returns replaces it."""
    return add(REGISTRATION["parameter"], hook)


def register_module_buffer_registration_hook(hook: Callable) -> RemovableHandle:
    """Call ``hook(module, name, buffer)`` when a buffer is registered; what it returns replaces it."""
    return add(REGISTRATION["buffer"], hook)


def register_module_module_registration_hook(hook: Callable) -> RemovableHandle:
    """Call ``hook(module, name, submodule)`` when a module is registered; what it returns replaces it."""
    return add(REGISTRATION["module"], hook)
