"""A module called with other parameters and buffers than its own."""

from collections.abc import Mapping
from typing import Any

from ...config.listing import own as _own
from ...errors import kind_of
from ...tensor import Tensor
from ..module import Module


def functional_call(module: Module, parameters_and_buffers: dict[str, Tensor], args: Any = None,
                    kwargs: dict[str, Any] | None = None, *, tie_weights: bool = True,
                    strict: bool = False) -> Any:
    """``module(*args, **kwargs)`` with tensors of these dotted names in the place of its own.

    The module has its own ones back when the call ends, also after an error. A value for one of several
    tied names counts for all of them, unless ``tie_weights=False``. What ``forward`` changes in place it
    changes in the tensors given; what it assigns to a replaced name is put into the dictionary.
    args: a tuple, or the one argument. strict: every parameter and buffer must be given, and nothing else.
    Raises TypeError for what is not a Tensor, RuntimeError under ``strict``, ValueError if tied names are
    given different values. Two threads must not call one module so at the same time.

    >>> layer = fw.nn.Linear(2, 1, bias=False)
    >>> fw.nn.utils.stateless.functional_call(layer, {"weight": fw.ones(1, 2)}, fw.tensor([3.0, 4.0]))
    tensor([7.])
    """
    if not isinstance(module, Module):
        raise TypeError(f"functional_call: module must be a Module, got {type(module).__name__}")
    if not isinstance(parameters_and_buffers, Mapping):
        raise TypeError(f"functional_call: the parameters and buffers must be a dict of Tensors by name, got "
                        f"{type(parameters_and_buffers).__name__}")
    for name, value in parameters_and_buffers.items():
        if not isinstance(value, Tensor):
            raise TypeError(f"functional_call: '{name}' must be a Tensor, got {kind_of(value)}")
    slots = {path: (owner, name) for path, owner, name in _slots(module)}
    if strict:
        _check_names(module, slots, parameters_and_buffers)
    given = args if isinstance(args, tuple) else () if args is None else (args,)
    plan = _tied(slots, parameters_and_buffers) if tie_weights else dict(parameters_and_buffers)
    plan = {path: value for path, value in plan.items() if path in slots}
    before = [(*slots[path], slots[path][0].__dict__[slots[path][1]]) for path in plan]
    try:
        for path, value in plan.items():
            owner, name = slots[path]
            _put(owner, name, value)
        output = module(*given, **(kwargs or {}))
        for path in parameters_and_buffers.keys() & plan.keys():
            owner, name = slots[path]
            _note(parameters_and_buffers, path, owner.__dict__.get(name))
        return output
    finally:
        for owner, name, value in before:
            _put(owner, name, value)


def _put(owner: Module, name: str, value: Tensor) -> None:
    """Any tensor in the place of a parameter or buffer."""
    (owner._parameters if name in owner._parameters else owner._buffers)[name] = value


def _slots(module: Module) -> list[tuple[str, Module, str]]:
    """(dotted name, owner, attribute) of every parameter and buffer, under each of its names."""
    return [(f"{path}.{name}" if path else name, owner, name)
            for path, owner in module.named_modules(remove_duplicate=False)
            for kind in ("parameter", "buffer") for name, _ in owner._own(kind)]


def _check_names(module: Module, slots: dict, given: Mapping) -> None:
    unknown = [path for path in given if path not in slots]
    done = {id(slots[path][0].__dict__[slots[path][1]]) for path in given if path in slots}
    missing = [path for path, (owner, name) in slots.items()
               if path not in given and id(owner.__dict__[name]) not in done]
    problems = [f"{what} are {names}"
                for what, names in (("missing", missing), ("unknown", unknown)) if names]
    if problems:
        raise RuntimeError(f"functional_call: strict=True wants every name of {type(module).__name__} and no "
                           f"other; {', '.join(problems)}")


def _tied(slots: dict, given: Mapping) -> dict[str, Tensor]:
    """The plan, with a value given for one of several tied names under all of them."""
    if len({id(owner.__dict__[name]) for owner, name in slots.values()}) == len(slots):
        return dict(given)  # as nearly always: no tensor has two names
    names: dict[int, list[str]] = {}
    for path, (owner, name) in slots.items():
        names.setdefault(id(owner.__dict__[name]), []).append(path)
    plan = dict(given)
    for paths in names.values():
        own = [path for path in paths if path in given]
        if any(given[path] is not given[own[0]] for path in own):
            raise ValueError(f"functional_call: {own} are one tied tensor but were given different values; "
                             f"give one of them, or pass tie_weights=False")
        plan.update({path: given[own[0]] for path in paths if own})
    return plan


def _note(given: Any, path: str, value: Any) -> None:
    if isinstance(value, Tensor) and value is not given[path]:
        given[path] = value


__dir__ = _own(globals())
