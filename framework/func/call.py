"""Modules as functions of their parameters."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..autograd.mode import no_grad
from ..nn.module import Module
from ..nn.utils import stateless
from ..ops.shape.join import stack
from ..tensor import Tensor


def functional_call(module: Module, parameter_and_buffer_dicts: Any, args: Any = None,
                    kwargs: dict[str, Any] | None = None, *, tie_weights: bool = True,
                    strict: bool = False) -> Any:
    """``module(*args, **kwargs)`` with other parameters and buffers: a dict of tensors, or several dicts.

    As ``nn.utils.stateless.functional_call``; ValueError if a name is in two of the dicts.

    >>> layer = fw.nn.Linear(2, 1, bias=False)
    >>> loss = lambda params, x: fw.func.functional_call(layer, params, x).sum()
    >>> fw.func.grad(loss)({"weight": fw.ones(1, 2)}, fw.tensor([3.0, 4.0]))
    {'weight': tensor([[3., 4.]])}
    """
    given = parameter_and_buffer_dicts
    if not isinstance(given, Mapping):
        if not isinstance(given, (tuple, list)) or not all(isinstance(one, Mapping) for one in given):
            raise TypeError(f"functional_call: the parameters and buffers must be a dict of Tensors by name, "
                            f"or a sequence of such dicts, got {type(given).__name__}")
        names = [name for one in given for name in one]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"functional_call: {twice} stand in more than one of the dicts")
        given = {name: value for one in given for name, value in one.items()}
    return stateless.functional_call(module, given, args, kwargs, tie_weights=tie_weights, strict=strict)


def stack_module_state(models: Sequence[Module]) -> tuple[dict[str, Any], dict[str, Any]]:
    """(parameters, buffers) of models of one kind, each stacked along a new first dimension.

    The stacked parameters are new leaves that require grad if those of the models do.

    >>> params, buffers = fw.func.stack_module_state([fw.nn.Linear(2, 1) for _ in range(3)])
    >>> params["weight"].shape
    (3, 1, 2)
    """
    models = list(models)
    if not models:
        raise ValueError("stack_module_state: wanted at least one model")
    if any(type(m) is not type(models[0]) for m in models):
        raise TypeError("stack_module_state: the models must be of one class, got "
                        + ", ".join(sorted({type(m).__name__ for m in models})))
    if any(m.training != models[0].training for m in models):
        raise ValueError("stack_module_state: the models must all be in training mode, or all in eval mode")
    return (_stacked([dict(m.named_parameters()) for m in models]),
            _stacked([dict(m.named_buffers()) for m in models]))


def _stacked(states: list[dict[str, Tensor]]) -> dict[str, Any]:
    with no_grad():
        found = {name: stack([one[name] for one in states]) for name in states[0]}
    for name, value in found.items():
        wants = {one[name].requires_grad for one in states}
        if len(wants) > 1:
            raise ValueError(f"stack_module_state: '{name}' requires grad in some of the models only")
        value.requires_grad_(wants.pop())
    return found
