"""What is done to all tensors of a module at once: save, load, convert, clear gradients.

Each of them prepares everything before it changes anything, so that a failure changes nothing.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from .. import dtypes
from ..autograd.mode import no_grad
from ..creation import zeros_like
from ..device import Device, as_device
from ..errors import CheckpointError
from ..layouts import MemoryFormat, checked
from ..ops.share import share
from ..tensor import Tensor, wrap
from .parameter import Parameter


class IncompatibleKeys(NamedTuple):
    """The names that ``load_state_dict(strict=False)`` passed over."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return (f"IncompatibleKeys(missing_keys={self.missing_keys}, "
                f"unexpected_keys={self.unexpected_keys})")


def _slots(module: Any) -> Iterable[tuple[str, Any, str]]:
    """(dotted name, owning module, attribute) of every tensor that belongs to the state."""
    for path, m in module.named_modules(remove_duplicate=False):
        start = f"{path}." if path else ""
        for kind in ("parameter", "buffer"):
            for name, _ in m._own(kind):
                if name not in m._transient:
                    yield start + name, m, name


def state_dict(module: Any, destination: Any, prefix: str, keep_vars: bool) -> OrderedDict:
    """See ``Module.state_dict``."""
    found = OrderedDict() if destination is None else destination
    for path, owner, name in _slots(module):
        value = owner.__dict__[name]
        found[prefix + path] = value if keep_vars else value.detach()
    return found


def share_memory(module: Any) -> Any:
    """See ``Module.share_memory``."""
    parameters = list(module.parameters())
    share([*parameters, *(p.grad for p in parameters if p.grad is not None), *module.buffers()])
    return module


def load_state_dict(module: Any, given: Mapping[str, Any], strict: bool, assign: bool) -> IncompatibleKeys:
    """See ``Module.load_state_dict``."""
    if not isinstance(given, Mapping):
        raise TypeError(f"load_state_dict: state_dict must be a dict of tensors, got "
                        f"{type(given).__name__}")
    slots = list(_slots(module))
    names = {path for path, _, _ in slots}
    keys = IncompatibleKeys([path for path, _, _ in slots if path not in given],
                            [path for path in given if path not in names])
    problems: list[str] = []
    if strict:
        problems += [f"missing in the checkpoint: '{path}' (model: {_meta(owner.__dict__[name])})"
                     for path, owner, name in slots if path not in given]
        problems += [f"unknown to the model: '{path}' (checkpoint: {_meta(given[path])})"
                     for path in keys.unexpected_keys]
    plan = []
    for path, owner, name in slots:
        if path in given:
            target, value = owner.__dict__[name], given[path]
            problem = _problem(target, value, assign)
            if problem:
                problems.append(f"{problem}: '{path}' (checkpoint: {_meta(value)}, "
                                f"model: {_meta(target)})")
            else:
                plan.append((owner, name, target, value if isinstance(value, Tensor) else wrap(value)))
    if problems:
        hint = "; strict=False passes over missing and unknown names" if strict else ""
        raise CheckpointError(
            f"load_state_dict: the checkpoint does not fit the model {type(module).__name__}, which is "
            f"unchanged:\n  " + "\n  ".join(problems) + f"\nbuild the model with the settings it was "
            f"saved with{hint}")
    (_assign if assign else _copy)(plan)
    return keys


def _meta(value: Any) -> str:
    if not hasattr(value, "shape"):
        return type(value).__name__
    name = getattr(value.dtype, "name", value.dtype)
    return f"{name}{list(value.shape)}"


def _problem(target: Tensor, value: Any, assign: bool) -> str:
    """Why ``value`` cannot be loaded into ``target``, or an empty text."""
    if not isinstance(value, Tensor):
        if not (isinstance(value, np.ndarray) and value.dtype in dtypes.BY_NUMPY):
            return "not a tensor"
        value = wrap(value)
    if value.shape != target.shape:
        return "shape differs"
    if value.dtype.category != target.dtype.category:  # another width of the same kind is converted
        return "dtype differs"
    if not assign and not getattr(target._array.flags, "writeable", True):
        return "the model's memory is read-only"
    return ""


def _copy(plan: list) -> None:
    with no_grad():
        ready = [(target, value.detach().to(device=target.device, dtype=target.dtype))
                 for _, _, target, value in plan]
        for target, value in ready:
            target.copy_(value)


def _assign(plan: list) -> None:
    made: dict[int, Tensor] = {}  # one new tensor for all names of a shared one
    ready = []
    for owner, name, target, value in plan:
        if id(target) not in made:
            new = value.detach()
            made[id(target)] = Parameter(new, target.requires_grad) if isinstance(target, Parameter) \
                else new
        ready.append((owner, name, made[id(target)]))
    for owner, name, new in ready:
        owner.__dict__[name] = new


def convert(module: Any, function: Callable[[Tensor], Tensor]) -> Any:
    """Give every parameter, gradient and buffer the memory of ``function`` of it."""
    tensors = {id(t): t for walk in (module.parameters(), module.buffers()) for t in walk}
    with no_grad():
        ready = [(t, function(t.detach()), None if t.grad is None else function(t.grad.detach()))
                 for t in tensors.values()]
    for t, new, grad in ready:
        if new._array is not t._array:
            if grad is not None:
                t.grad = None
            t.data = new
            if grad is not None:
                t.grad = grad
    return module


def to(module: Any, *args: Any, dtype: Any = None, device: Any = None, non_blocking: bool = False,
       memory_format: MemoryFormat | None = None) -> Any:
    """See ``Module.to``."""
    for arg in args:
        if isinstance(arg, Tensor):
            dtype, device = arg.dtype, arg.device
        elif isinstance(arg, (str, Device, int)) and not isinstance(arg, bool):
            device = arg
        elif arg is not None and not isinstance(arg, bool):
            dtype = arg
    kind = None if dtype is None else dtypes.as_dtype(dtype)
    if memory_format is not None:
        checked(memory_format, f"{type(module).__name__}.to")
    if kind is not None and kind.category < 2:
        raise TypeError(f"{type(module).__name__}.to: dtype must be floating, got {kind}; "
                        f"use .type({kind}) to convert everything")
    place = None if device is None else as_device(device)

    def move(t: Tensor) -> Tensor:
        new = kind if kind is None or t.dtype.category >= dtypes.FLOAT else t.dtype
        if new is not None and t.is_complex():
            new = new.to_complex()  # a real dtype names the precision, not the loss of imaginary parts
        order = memory_format if memory_format is not None and memory_format.ndim in (0, t.ndim) else None
        return t.to(device=place, dtype=new, memory_format=order)  # type: ignore[attr-defined]
    return convert(module, move)


def zero_grad(parameters: Iterable[Tensor], set_to_none: bool) -> None:
    """See ``Module.zero_grad``."""
    for p in parameters:
        if p.grad is not None:
            p.grad = None if set_to_none else zeros_like(p.grad)
