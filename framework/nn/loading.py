"""A module's state as a dict, and back: ``state_dict`` and ``load_state_dict``.

Loading goes through the tree twice: first every module looks up its part and notes what is to be written
where, then, if nothing is wrong, everything is written; so a failure changes nothing. A class that overrides
``_load_from_state_dict`` takes part by calling the inherited one.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from .. import dtypes
from ..autograd.mode import no_grad
from ..errors import CheckpointError
from ..sparse_door import is_sparse
from ..tensor import Tensor, wrap
from .parameter import Parameter, is_lazy

EXTRA = "_extra_state"
_PLAIN = (Tensor, Parameter)
_PLAN = "plan"  # what a load under way has found so far; stands in the metadata, which overrides pass on


class IncompatibleKeys(NamedTuple):
    """The names that ``load_state_dict(strict=False)`` passed over."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return (f"IncompatibleKeys(missing_keys={self.missing_keys}, "
                f"unexpected_keys={self.unexpected_keys})")


class Found(NamedTuple):
    """One value that is to be loaded: into ``target``, which the module ``owner`` has under ``name``."""

    owner: Any
    name: str
    target: Tensor
    value: Tensor
    assign: bool


def _tensors(module: Any) -> list[tuple[str, Any]]:
    """This module's own parameters and persistent buffers."""
    found = module._own("parameter")
    if module._buffers:
        found += [b for b in module._own("buffer") if b[0] not in module._non_persistent_buffers_set]
    return found


def _keeps_more(module: Any, method: str) -> bool:
    return getattr(type(module), method) is not module._plain_extra[method]


# -- saving --------------------------------------------------------------------------------------------------

def state_dict(module: Any, destination: Any, prefix: str, keep_vars: bool) -> Any:
    """See ``Module.state_dict``."""
    if destination is None:
        destination = OrderedDict()
        destination._metadata = OrderedDict()
    about = {"version": module._version}
    if hasattr(destination, "_metadata"):
        destination._metadata[prefix[:-1]] = about
    hooks = module.__dict__.get("_state_hooks")
    for hook in () if hooks is None else list(hooks.save_before.values()):
        hook(module, prefix, keep_vars)
    module._save_to_state_dict(destination, prefix, keep_vars)
    if module._modules:
        for name, child in module._own("module"):
            child.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
    for key, hook in () if hooks is None else list(hooks.save_after.items()):
        new = hook(module, destination, prefix, about)
        if new is not None:
            if key in hooks.save_after_plain:
                raise RuntimeError(f"{type(module).__name__}: a state_dict post-hook must change the dict in "
                                   f"place and return None, got {type(new).__name__}")
            destination = new
    return destination


def save_own(module: Any, destination: Any, prefix: str, keep_vars: bool) -> None:
    """See ``Module._save_to_state_dict``."""
    for name, value in _tensors(module):
        destination[prefix + name] = value if keep_vars or is_lazy(value) else value.detach()
    if _keeps_more(module, "get_extra_state"):
        destination[prefix + EXTRA] = module.get_extra_state()


# -- loading -------------------------------------------------------------------------------------------------

def load_state_dict(module: Any, given: Mapping[str, Any], strict: bool, assign: bool) -> IncompatibleKeys:
    """See ``Module.load_state_dict``."""
    if not isinstance(given, Mapping):
        raise TypeError(f"load_state_dict: state_dict must be a dict of tensors, got "
                        f"{type(given).__name__}")
    about = getattr(given, "_metadata", None)
    state = OrderedDict(given)
    keys = IncompatibleKeys([], [path for path in state if not isinstance(path, str)])
    errors: list[str] = []
    plan: list[Found | Callable] = []
    after: list[tuple[Any, Callable]] = []

    def visit(owner: Any, part: dict, prefix: str) -> None:
        local = dict(about.get(prefix[:-1], {})) if about is not None else {}
        local["assign_to_params_buffers"] = assign
        local[_PLAN] = plan
        owner._load_from_state_dict(part, prefix, local, True, keys.missing_keys, keys.unexpected_keys,
                                    errors)
        for name, child in owner._own("module"):
            start = f"{prefix}{name}."
            visit(child, {k: v for k, v in part.items() if isinstance(k, str) and k.startswith(start)}, start)
        hooks = owner.__dict__.get("_state_hooks")
        after.extend((owner, hook) for hook in (() if hooks is None else hooks.load_after.values()))

    visit(module, state, "")
    if errors or not after:  # hooks may still mend the names
        _judge(module, state, keys, errors, strict, "unchanged")
    commit(plan)
    for owner, hook in after:
        if hook(owner, keys) is not None:
            raise RuntimeError(f"{type(owner).__name__}: a load_state_dict post-hook must change the keys in "
                               f"place and return None")
    if after:
        _judge(module, state, keys, errors, strict, "loaded as far as it goes")
    return keys


def _judge(module: Any, state: dict, keys: IncompatibleKeys, errors: list[str], strict: bool,
           now: str) -> None:
    problems: list[str] = []
    if strict and (keys.missing_keys or keys.unexpected_keys):
        own = dict(_all(module))
        problems += [f"missing in the checkpoint: '{path}' (model: {_meta(own.get(path))})"
                     for path in keys.missing_keys]
        problems += [f"unknown to the model: '{path}' (checkpoint: {_meta(state.get(path))})"
                     for path in keys.unexpected_keys]
    problems += errors
    if problems:
        hint = "; strict=False passes over missing and unknown names" if strict else ""
        raise CheckpointError(
            f"load_state_dict: the checkpoint does not fit the model {type(module).__name__}, which is "
            f"{now}:\n  " + "\n  ".join(problems) + f"\nbuild the model with the settings it was "
            f"saved with{hint}")


def _all(module: Any) -> Iterable[tuple[str, Any]]:
    for path, owner in module.named_modules(remove_duplicate=False):
        for name, value in _tensors(owner):
            yield (f"{path}.{name}" if path else name), value


def load_own(module: Any, state: Any, prefix: str, about: dict, strict: bool, missing: list[str],
             unexpected: list[str], errors: list[str]) -> None:
    """See ``Module._load_from_state_dict``."""
    hooks = module.__dict__.get("_state_hooks")
    for key, hook in () if hooks is None else list(hooks.load_before.items()):
        lead = (module,) if key in hooks.load_before_with_module else ()
        hook(*lead, state, prefix, about, strict, missing, unexpected, errors)
    under_way = about.get(_PLAN)
    plan: list[Found | Callable] = [] if under_way is None else under_way
    assign = about.get("assign_to_params_buffers", False)
    names = set(module._own_names("module"))
    own_modules, found = set(names), 0
    for name, target in _tensors(module):
        names.add(name)
        path = prefix + name
        if path not in state:
            if strict:
                missing.append(path)
            continue
        value = state[path]
        found += 1
        problem = _problem(target, value, assign)
        if problem:
            errors.append(f"{problem}: '{path}' (checkpoint: {_meta(value)}, model: {_meta(target)})")
        else:
            plan.append(Found(module, name, target, value if isinstance(value, Tensor) else wrap(value),
                              assign))
    if _keeps_more(module, "set_extra_state"):
        if prefix + EXTRA in state:
            more = state[prefix + EXTRA]
            found += 1
            plan.append(lambda: module.set_extra_state(more))
        elif strict:
            missing.append(prefix + EXTRA)
        names.add(EXTRA)
    if strict and len(state) > found:
        for path in state:
            if isinstance(path, str) and path.startswith(prefix):
                first, dot, _ = path[len(prefix):].partition(".")
                if first not in names or bool(dot) != (first in own_modules):
                    unexpected.append(path)
    if under_way is None:
        commit(plan)


def _meta(value: Any) -> str:
    if is_lazy(value):
        return f"{type(value).__name__}"
    if not hasattr(value, "shape"):
        return type(value).__name__
    name = getattr(value.dtype, "name", value.dtype)
    return f"{name}{list(value.shape)}"


def _alike(target: Tensor, value: Any) -> bool:
    """Whether both are plain tensors in memory, of one shape and dtype."""
    if type(value) not in _PLAIN or type(target) not in _PLAIN:
        return False
    a, b = target._array, value._array
    return type(a) is type(b) is np.ndarray and a.shape == b.shape and a.dtype is b.dtype


def _problem(target: Tensor, value: Any, assign: bool) -> str:
    """Why ``value`` cannot be loaded into ``target``, or an empty text."""
    if _alike(target, value) and (assign or target._array.flags.writeable):
        return ""
    if not isinstance(value, Tensor):
        if not (isinstance(value, np.ndarray) and value.dtype in dtypes.BY_NUMPY):
            return "not a tensor"
        value = wrap(value)
    if is_lazy(value):
        return "" if is_lazy(target) else "not initialised in the checkpoint"
    if is_lazy(target):
        return ""
    if value.shape != target.shape:
        return "shape differs"
    if value.dtype.category != target.dtype.category:  # another width of the same kind is converted
        return "dtype differs"
    if is_sparse(target) or is_sparse(value):
        return "" if target.layout is value.layout else "layout differs"  # type: ignore[attr-defined]
    if not assign and not getattr(target._array.flags, "writeable", True):
        return "the model's memory is read-only"
    return ""


@no_grad()
def commit(plan: list) -> None:
    """Write what was found into the model: first make all values ready, then write."""
    tensors = [step for step in plan if isinstance(step, Found) and not is_lazy(step.value)]
    for step in tensors:
        if is_lazy(step.target):
            step.target.materialize(step.value.shape)  # type: ignore[attr-defined]
    made: dict[int, Tensor] = {}  # one new tensor for all names of a shared one
    ready = []
    for step in tensors:
        value, target = step.value, step.target
        if not step.assign and _alike(target, value):
            ready.append((step, value))
            continue
        value = value.detach()
        if not step.assign:
            if value.dtype is not target.dtype or value.device != target.device:
                value = value.to(device=target.device, dtype=target.dtype)  # type: ignore[attr-defined]
        elif id(target) not in made:
            made[id(target)] = Parameter(value, target.requires_grad) if isinstance(target, Parameter) \
                else value
        ready.append((step, made[id(target)] if step.assign else value))
    for step, value in ready:
        if step.assign:
            getattr(step.owner, "_parameters" if isinstance(step.target, Parameter) else "_buffers")[
                step.name] = value
        else:
            step.target.copy_(value)  # type: ignore[attr-defined]
    for step in plan:
        if not isinstance(step, Found):
            step()
