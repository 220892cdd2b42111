"""Parameters that are computed from others: ``layer.weight = f(original)``, with f a module.

A parametrized module gets a class of its own, which has a property under the tensor's name; the original
stands in ``module.parametrizations.<name>.original`` (``original0``, ``original1``... where
``right_inverse`` gives several).
"""

import copy
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...autograd.mode import no_grad
from ...config.listing import own as _own
from ...tensor import Tensor
from ..container import ModuleDict, ModuleList
from ..module import Module
from ..parameter import Parameter


class _Cache(threading.local):
    """What a thread keeps in ``cached``: {(id of a module, name): (the module, whose id stays so, value)}."""

    def __init__(self) -> None:
        self.depth = 0
        self.values: dict[tuple[int, str], tuple[Module, Any]] = {}


_cache = _Cache()


@contextmanager
def cached() -> Iterator[None]:
    """Within the block every parametrized tensor is computed once, at its first use.

    >>> layer = fw.nn.utils.parametrizations.weight_norm(fw.nn.Linear(2, 2))
    >>> with fw.nn.utils.parametrize.cached():
    ...     layer.weight is layer.weight
    True
    """
    _cache.depth += 1
    try:
        yield
    finally:
        _cache.depth -= 1
        if not _cache.depth:
            _cache.values.clear()


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, in the order of their use, and the tensor or tensors they start
    from."""

    def __init__(self, modules: Any, original: Tensor, unsafe: bool = False) -> None:
        modules = list(modules)
        if not modules:
            raise ValueError("ParametrizationList: wanted at least one module")
        super().__init__(modules)
        self.unsafe = unsafe
        start: Any = original
        with no_grad():
            for module in reversed(modules):
                if hasattr(module, "right_inverse"):
                    start = module.right_inverse(start)
        self.is_tensor = isinstance(start, Tensor)
        if not self.is_tensor and not (
                isinstance(start, (list, tuple)) and all(isinstance(t, Tensor) for t in start)):
            raise ValueError(f"right_inverse of {type(modules[0]).__name__} must give a Tensor or a "
                             f"sequence of Tensors, got {type(start).__name__}")
        self.ntensors = 1 if self.is_tensor else len(start)
        before = original.data if isinstance(original, Parameter) else None
        try:
            self._start_from(start, original)
            if not unsafe:
                self._compare(original, before)
        except BaseException:
            if before is not None:
                original.data = before
            raise

    def _start_from(self, start: Any, original: Tensor) -> None:
        if self.is_tensor:
            if start.dtype != original.dtype:
                raise ValueError(f"right_inverse gives {start.dtype}, but the tensor is {original.dtype}")
            if isinstance(original, Parameter) and start.shape == original.shape:
                with no_grad():
                    if start._array is not original._array:
                        original.data = start.detach()
                self._take("original", original)
            else:
                self._take("original", _like(start, original))
        else:
            for i, part in enumerate(start):
                if part.dtype != original.dtype:
                    raise ValueError(f"right_inverse gives {part.dtype} at {i}, but the tensor is "
                                     f"{original.dtype}")
                self._take(f"original{i}", _like(part, original))

    def _compare(self, original: Tensor, before: Tensor | None) -> None:
        made, wanted = self(), original if before is None else before
        if not isinstance(made, Tensor):
            raise ValueError(f"a parametrization must give a Tensor, got {type(made).__name__}")
        for what in ("dtype", "shape"):
            if getattr(made, what) != getattr(wanted, what):
                raise ValueError(f"a parametrization must not change the {what} of its tensor: it gives "
                                 f"{getattr(made, what)} for {getattr(wanted, what)}; "
                                 f"unsafe=True allows it")

    def _take(self, name: str, value: Tensor) -> None:
        if isinstance(value, Parameter):
            self.register_parameter(name, value)
        else:
            self.register_buffer(name, value)

    def _originals(self) -> list[Any]:
        return [self.original] if self.is_tensor else [getattr(self, f"original{i}")
                                                       for i in range(self.ntensors)]

    def right_inverse(self, value: Tensor) -> None:
        """Set the originals so that the tensor becomes ``value``, by ``right_inverse`` of all in turn."""
        with no_grad():
            new: Any = value
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"{type(module).__name__} has no right_inverse(), which assigning to "
                                       f"the parametrized tensor needs")
                new = module.right_inverse(new)
            parts = [new] if self.is_tensor else list(new)
            if len(parts) != self.ntensors:
                raise ValueError(f"right_inverse must give {self.ntensors} tensors, got {len(parts)}")
            for old, part in zip(self._originals(), parts):
                if part.dtype != old.dtype:
                    raise ValueError(f"right_inverse gives {part.dtype}, but the original is {old.dtype}")
            for old, part in zip(self._originals(), parts):
                if part.shape != old.shape:
                    old.data = part.detach().clone()
                else:
                    old.copy_(part)

    def forward(self) -> Any:
        """The parametrized tensor."""
        first, *rest = list(self)
        x = first(*self._originals())
        for module in rest:
            x = module(x)
        return x


def _like(value: Tensor, original: Tensor) -> Tensor:
    value = value.detach()
    return Parameter(value.clone(), original.requires_grad) if isinstance(  # type: ignore[attr-defined]
        original, Parameter) else value


def _property(name: str) -> property:
    def get(self: Any) -> Any:
        if not _cache.depth:
            return self.parametrizations[name]()
        key = (id(self), name)
        if key not in _cache.values:
            _cache.values[key] = self, self.parametrizations[name]()
        return _cache.values[key][1]

    def put(self: Any, value: Tensor) -> None:
        _cache.values.pop((id(self), name), None)
        self.parametrizations[name].right_inverse(value)
    return property(get, put)


class _Parametrized:
    """What the classes of parametrized modules have beside the properties."""

    def __deepcopy__(self, memo: dict) -> Any:
        if id(self) in memo:
            return memo[id(self)]
        cls = _class_for(type(self)._plain_class, tuple(self.parametrizations))  # type: ignore[attr-defined]
        twin: Any = cls.__new__(cls)
        memo[id(self)] = twin
        twin.__setstate__(copy.deepcopy(self.__dict__, memo))
        return twin

    def __reduce__(self) -> tuple:
        names = tuple(self.parametrizations)  # type: ignore[attr-defined]
        return _remake, (type(self)._plain_class, names), self.__dict__  # type: ignore[attr-defined]

    def __reduce_ex__(self, protocol: Any) -> tuple:
        return self.__reduce__()


def _class_for(plain: type, names: tuple[str, ...]) -> Any:
    cls = type(f"Parametrized{plain.__name__}", (_Parametrized, plain),
               {"_plain_class": plain, "__module__": plain.__module__, **{n: _property(n) for n in names}})
    return cls


def _remake(plain: type, names: tuple[str, ...]) -> Any:
    cls = _class_for(plain, names)
    return cls.__new__(cls)


def register_parametrization(module: Module, tensor_name: str, parametrization: Module, *,
                             unsafe: bool = False) -> Module:
    """Make a parameter or buffer of ``module`` the output of ``parametrization``; further ones come after
    those that are there. Returns the module.

    ``parametrization.right_inverse(value)``, if there is one, gives what to start from. unsafe: do not check
    that shape and dtype stay. Raises ValueError for a name that is none of its tensors, and for what changes
    them.

    >>> class Symmetric(fw.nn.Module):
    ...     def forward(self, x):
    ...         return x.triu() + x.triu(1).mT
    >>> layer = fw.nn.Linear(3, 3)
    >>> _ = fw.nn.utils.parametrize.register_parametrization(layer, "weight", Symmetric())
    >>> fw.equal(layer.weight, layer.weight.mT)
    True
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        chain: Any = module.parametrizations[tensor_name]  # type: ignore[index]
        if not unsafe:
            with no_grad():
                now = getattr(module, tensor_name)
                new = parametrization(now)
                if not isinstance(new, Tensor) or new.shape != now.shape or new.dtype != now.dtype:
                    raise ValueError(f"register_parametrization: the tensor '{tensor_name}' must keep its "
                                     f"shape "
                                     f"{list(now.shape)} and dtype {now.dtype}; unsafe=True allows otherwise")
        if all(hasattr(step, "right_inverse") for step in (*chain, parametrization)):
            value = getattr(module, tensor_name).detach()
            chain.append(parametrization)
            try:
                chain.right_inverse(value)
            except BaseException:
                chain.pop(len(chain) - 1)
                raise
        else:  # the value changes
            chain.append(parametrization)
        chain.unsafe |= unsafe
    elif tensor_name in module._parameters or tensor_name in module._buffers:
        original: Any = module._parameters.get(tensor_name)
        original = module._buffers.get(tensor_name) if original is None else original
        chain = ParametrizationList([parametrization], original, unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            plain = type(module)
            module.__class__ = _class_for(plain, ())
            module.parametrizations = ModuleDict()
        setattr(type(module), tensor_name, _property(tensor_name))
        module.parametrizations[tensor_name] = chain  # type: ignore[index,operator]
    else:
        raise ValueError(f"register_parametrization: {type(module).__name__} has no parameter, buffer or "
                         f"parametrized tensor '{tensor_name}'")
    return module


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether a module, or its tensor of that name, is parametrized.

    >>> fw.nn.utils.parametrize.is_parametrized(fw.nn.Linear(1, 1))
    False
    """
    boxes = module.__dict__.get("parametrizations")
    if not isinstance(boxes, ModuleDict):
        return False
    return len(boxes) > 0 if tensor_name is None else tensor_name in boxes


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Undo ``register_parametrization`` of a tensor, whose value stays that of now, or, unless
    ``leave_parametrized``, that of the original. Returns the module.

    Raises ValueError for what is not parametrized, and where there are several originals and none is to be
    left.
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"remove_parametrizations: {type(module).__name__} has no parametrized tensor "
                         f"'{tensor_name}'")
    boxes: Any = module.parametrizations
    chain = boxes[tensor_name]
    originals = chain._originals()
    if not leave_parametrized and not chain.is_tensor:
        raise ValueError("remove_parametrizations: leave_parametrized=False needs one original tensor, "
                         f"there are {chain.ntensors}")
    kept: Any = originals[0]
    if leave_parametrized:
        with no_grad():
            value = getattr(module, tensor_name).detach().clone()
        trained = any(isinstance(t, Parameter) for t in originals)
        if chain.is_tensor and kept.shape == value.shape and kept.dtype == value.dtype:
            kept.data = value
        else:
            kept = Parameter(value, any(t.requires_grad for t in originals)) if trained else value
    delattr(type(module), tensor_name)
    del boxes[tensor_name]
    if isinstance(kept, Parameter):
        module.register_parameter(tensor_name, kept)
    else:
        module.register_buffer(tensor_name, kept)
    if not len(boxes):
        del module.parametrizations
        module.__class__ = type(module)._plain_class  # type: ignore[attr-defined]
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class of a module without its parametrizations.

    >>> layer = fw.nn.utils.parametrizations.weight_norm(fw.nn.Linear(2, 2))
    >>> fw.nn.utils.parametrize.type_before_parametrizations(layer).__name__
    'Linear'
    """
    return type(module)._plain_class if is_parametrized(module) else type(module)  # type: ignore[attr-defined]


def transfer_parametrizations_and_params(from_module: Module, to_module: Module,
                                         tensor_name: str | None = None) -> Module:
    """Give ``to_module`` the parametrizations of ``from_module``, of one tensor or all, and their values."""
    if not is_parametrized(from_module):
        return to_module
    boxes: Any = from_module.parametrizations
    for name in [tensor_name] if tensor_name is not None else list(boxes):
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name).detach().clone()))
        for step in boxes[name]:
            register_parametrization(to_module, name, step, unsafe=True)
        target: Any = to_module.parametrizations
        with no_grad():
            for old, new in zip(target[name]._originals(), boxes[name]._originals()):
                old.copy_(new)
    return to_module


__dir__ = _own(globals())
