"""Module: the base of layers and models. Here: how parts are registered, calls, modes, state, text.

Registered values stand in three dicts (``_parameters``, ``_buffers``, ``_modules``) and are ordinary
attributes, too (``registry.py``). How modules are found below each other is in ``tree.py``, hooks in
``hookable.py``.
"""

import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any
from weakref import ref

from .. import dtypes
from ..creation import empty_like
from ..device import Device, cuda_device
from ..doors import through
from ..errors import kind_of
from ..tensor import Tensor
from . import hooks as _hooks
from . import loading as _loading
from . import state as _state
from .hookable import REGISTRATION, Hookable
from .hooks import Hooks
from .parameter import Buffer, Parameter, UninitializedBuffer
from .registry import Registry, owned
from .tree import BUFFER, MODULE, PARAMETER, REGISTRIES, Tree


class Module(Hookable, Tree):
    """The base of every layer and model. Subclasses create their parts in ``__init__`` (after
    ``super().__init__()``) and compute in ``forward``; calling the module runs ``forward`` and hooks.

    Assigning a Parameter, Buffer or Module registers it under the attribute's name.

    >>> class Scale(fw.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = fw.nn.Parameter(fw.ones(1) * 3)
    ...     def forward(self, x):
    ...         return x * self.factor
    >>> Scale()(fw.tensor([2.0]))
    tensor([6.], grad_fn=<mul>)
    """

    training: bool
    call_super_init = False  # whether __init__ goes on to the next class of a multiple inheritance
    _version = 1  # of the format of the state, for _load_from_state_dict of later versions
    _parameters: Registry = owned("_parameters")
    _buffers: Registry = owned("_buffers")
    _modules: Registry = owned("_modules")
    _non_persistent_buffers_set: set[str]  # names of buffers that are not in the state_dict
    _hooks: Hooks | None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        d = self.__dict__
        d["training"] = True
        for name in REGISTRIES.values():
            made = d[name] = Registry()
            made.owner = ref(self)
        d["_non_persistent_buffers_set"] = set()
        d["_hooks"] = None
        if self.call_super_init:
            super().__init__(*args, **kwargs)
        elif args or kwargs:
            what = repr(next(iter(kwargs))) if kwargs else f"{len(args)} more"
            raise TypeError(f"{type(self).__name__}.__init__() got unexpected arguments: {what}; "
                            f"Module takes none")

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes; every subclass that is called defines it."""
        raise NotImplementedError(f"{type(self).__name__} has no forward(); {self._no_forward}")

    _no_forward = "define 'def forward(self, x): ...' in it"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            if not self._hooks:
                return self.forward(*args, **kwargs)
            return _hooks.call(self, self._hooks, args, kwargs)
        except Exception as error:
            _note_path(self, error)
            raise

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile the calls of this module in place, with the arguments of ``framework.compile``.

        >>> layer = fw.nn.Linear(2, 1)
        >>> layer.compile()
        >>> layer(fw.zeros(3, 2)).shape
        (3, 1)
        """
        self.forward = through("compile")(self.forward, *args, **kwargs)  # type: ignore[method-assign]

    # -- attributes and registration -------------------------------------------------------------

    def __setattr__(self, name: str, value: Any) -> None:
        d = self.__dict__
        kind = _kind_of(value)
        if "_parameters" not in d:
            if kind is not None:
                raise AttributeError(f"{type(self).__name__}: cannot assign the {kind} '{name}' before "
                                     f"super().__init__() was called; call it first in __init__")
        elif kind is not None:
            known = _of(self, name)
            home = getattr(type(self), name, None)
            if known is None and kind == PARAMETER and hasattr(home, "__set__") and (
                    getattr(home, "fset", True) is not None):
                object.__setattr__(self, name, value)  # a property that takes it
                return
            self._register(name, value, kind)
            if kind == BUFFER:
                hidden = self._non_persistent_buffers_set
                (hidden.discard if value.persistent else hidden.add)(name)
            return
        elif (known := _of(self, name)) is not None:
            self._replace(name, value, known)
            return
        elif isinstance(value, (list, tuple, dict)) and value and name not in d:
            self._warn_of_hidden(name, value)
        object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        if "_parameters" not in self.__dict__ and name in _FIRST:
            raise AttributeError(f"{type(self).__name__}: super().__init__() was not called in __init__")
        # Registered values are ordinary attributes, but programs call this, too: self.__getattr__("layer1")
        if "_parameters" in self.__dict__ and (kind := _of(self, name)) is not None:
            return getattr(self, REGISTRIES[kind])[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __delattr__(self, name: str) -> None:
        kind = _of(self, name)
        if kind is None:
            object.__delattr__(self, name)
        else:
            del getattr(self, REGISTRIES[kind])[name]
            self._non_persistent_buffers_set.discard(name)

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state)
        for name, value in (("_hooks", None), ("_non_persistent_buffers_set", set())):
            self.__dict__.setdefault(name, value)
        for name in REGISTRIES.values():
            self.__dict__.setdefault(name, Registry())
            getattr(self, name)  # the property takes it over

    def __dir__(self) -> list[str]:
        return sorted(n for n in super().__dir__() if not n[:1].isdigit())

    def _replace(self, name: str, value: Any, kind: str) -> None:
        """Assign a plain value over a registered name."""
        fits = value is None or (kind == BUFFER and isinstance(value, Tensor))
        if not fits:
            wanted = {PARAMETER: "a Parameter", BUFFER: "a Tensor", MODULE: "a Module"}[kind]
            hint = "; wrap it in nn.Parameter(...)" if kind == PARAMETER and isinstance(value, Tensor) \
                else f"; del the {kind} first to store something else"
            raise TypeError(f"{type(self).__name__}: '{name}' is a registered {kind}; wanted {wanted} or "
                            f"None, got {type(value).__name__}{hint}")
        self._register(name, value, kind)

    def _register(self, name: str, value: Any, kind: str) -> None:
        for hook in REGISTRATION[kind].values():
            new = hook(self, name, value)
            value = value if new is None else new
        old = _of(self, name)
        if old is not None and old != kind:
            del getattr(self, REGISTRIES[old])[name]
            self._non_persistent_buffers_set.discard(name)
        getattr(self, REGISTRIES[kind])[name] = value

    def _check_name(self, name: Any, kind: str) -> None:
        where = f"{type(self).__name__}: {kind} name"
        if "_parameters" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__}: cannot register the {kind} '{name}' before "
                                 f"super().__init__() was called; call it first in __init__")
        if not isinstance(name, str):
            raise TypeError(f"{where} must be a string, got {type(name).__name__}")
        if "." in name:
            raise KeyError(f"{where} '{name}' must not contain a dot")
        if not name:
            raise KeyError(f"{where} must not be empty")
        if name not in getattr(self, REGISTRIES[kind]) and (name in self.__dict__
                                                             or hasattr(type(self), name)):
            raise KeyError(f"{where} '{name}' is taken: there is an attribute of that name")

    def _warn_of_hidden(self, name: str, value: Any) -> None:
        items = value.values() if isinstance(value, dict) else value
        hidden = [v for v in islice(items, 64) if isinstance(v, (Module, Parameter))]
        if not hidden:
            return
        known = {id(v) for m in self.modules() for v in (m, *m.parameters(recurse=False))}
        if all(id(v) in known for v in hidden):
            return
        kind = "Module" if isinstance(hidden[0], Module) else "Parameter"
        box = f"nn.{kind}{'Dict' if isinstance(value, dict) else 'List'}"
        warnings.warn(f"{type(self).__name__}.{name} is a {type(value).__name__} that holds {kind}s: they "
                      f"are not registered, so they are not trained, moved or saved; use {box}(...)",
                      UserWarning, stacklevel=3)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Register a parameter (or None) under ``name``; KeyError if the name is taken or dotted."""
        self._check_name(name, PARAMETER)
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(f"{type(self).__name__}: parameter '{name}' must be a Parameter or None, got "
                            f"{type(param).__name__}")
        self._register(name, param, PARAMETER)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Register a tensor (or None) that is state but not trained.

        persistent: whether ``state_dict`` holds it. KeyError if the name is taken or dotted.
        """
        self._check_name(name, BUFFER)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"{type(self).__name__}: buffer '{name}' must be a Tensor or None, got "
                            f"{kind_of(tensor)}")
        self._register(name, tensor, BUFFER)
        hidden = self._non_persistent_buffers_set
        (hidden.discard if persistent else hidden.add)(name)

    def add_module(self, name: str, module: "Module | None") -> None:
        """Register a module (or None) under ``name``; KeyError if the name is taken or dotted."""
        self._check_name(name, MODULE)
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{type(self).__name__}: module '{name}' must be a Module or None, got "
                            f"{type(module).__name__}")
        self._register(name, module, MODULE)

    register_module = add_module

    # -- modes and gradients ---------------------------------------------------------------------

    def apply(self, fn: Callable[["Module"], Any]) -> "Module":
        """Call ``fn`` on every module below, then on this one; returns this one."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def train(self, mode: bool = True) -> "Module":
        """Set ``training`` in this module and all below (dropout and batch norm look at it)."""
        if not isinstance(mode, bool):
            raise ValueError(f"train: mode must be a bool, got {type(mode).__name__}")
        for module in self.children():
            module.train(mode)
        self.training = mode
        return self

    def eval(self) -> "Module":
        """``train(False)``."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> "Module":
        """Start or stop training of all parameters."""
        for p in self.parameters():
            p.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or fill them with zeros."""
        _state.zero_grad(self.parameters(), set_to_none)

    # -- state -----------------------------------------------------------------------------------

    def state_dict(self, *, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """Parameters and persistent buffers by dotted name, sharing memory with the module's.

        keep_vars: the registered tensors themselves instead of detached ones.

        >>> list(fw.nn.Linear(2, 1).state_dict())
        ['weight', 'bias']
        """
        return _loading.state_dict(self, destination, prefix, keep_vars)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """Put this module's own part into ``destination``; subclasses may override it."""
        _loading.save_own(self, destination, prefix, keep_vars)

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True,
                        assign: bool = False) -> "_loading.IncompatibleKeys":
        """Copy the values of ``state_dict`` into the parameters and buffers, all or none.

        strict: names must match exactly. assign: take the tensors themselves instead of copying.
        Returns (missing_keys, unexpected_keys). Raises CheckpointError with every mismatch in one
        message; the model is unchanged then.
        """
        return _loading.load_state_dict(self, state_dict, strict, assign)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: dict, strict: bool,
                              missing_keys: list[str], unexpected_keys: list[str],
                              error_msgs: list[str]) -> None:
        """Load this module's own part of a dict; subclasses may override it, and call it with a changed dict.

        What is wrong goes into the lists; within ``load_state_dict`` nothing is written before all is right.
        """
        _loading.load_own(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
                          error_msgs)

    def get_extra_state(self) -> Any:
        """What ``state_dict`` holds of this module beside tensors; a subclass that has something defines it,
        together with ``set_extra_state``."""
        raise RuntimeError(f"{type(self).__name__} has no get_extra_state(); define it to have more than "
                           f"tensors in its state_dict")

    def set_extra_state(self, state: Any) -> None:
        """Take what ``get_extra_state`` gave; a subclass that has something defines it."""
        raise RuntimeError(f"{type(self).__name__} has no set_extra_state(); define it to take what "
                           f"get_extra_state() gave")

    _plain_extra = {"get_extra_state": get_extra_state, "set_extra_state": set_extra_state}

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> "Module":
        """Give all parameters, gradients and buffers the memory of ``fn`` of them: what ``to``, ``cuda`` and
        the like go through, and subclasses may override."""
        below = list(self.children()) if recurse else []
        if any(type(m)._apply is not Module._apply for child in below for m in child.modules()):
            for child in below:
                child._apply(fn)
            below = []
        _state.convert([self, *(m for child in below for m in child.modules())], fn)
        return self

    def to_empty(self, *, device: Any, recurse: bool = True) -> "Module":
        """Move parameters and buffers to a device without their values: the memory there is not filled.

        >>> fw.nn.Linear(2, 1).to_empty(device="cpu").weight.shape
        (1, 2)
        """
        return self._apply(lambda t: empty_like(t, device=device), recurse)

    def to(self, *args: Any, **kwargs: Any) -> "Module":
        """Move parameters and buffers: ``to(device)``, ``to(dtype)``, ``to(device, dtype)``,
        ``to(tensor)``, ``to(memory_format=framework.channels_last)``. A dtype applies to floating ones; of
        complex ones it is the precision; a memory format to those of its number of dimensions. In place;
        returns the module.

        >>> fw.nn.Linear(2, 1).to(fw.float64).weight.dtype
        framework.float64
        """
        return _state.to(self, *args, **kwargs)

    def cpu(self) -> "Module":
        """Move parameters and buffers to host memory."""
        return self.to("cpu")

    def cuda(self, device: int | str | Device | None = None) -> "Module":
        """Move parameters and buffers to a CUDA device."""
        return self.to(cuda_device(device))

    def share_memory(self) -> "Module":
        """Parameters, gradients and buffers to memory that processes share (``Tensor.share_memory_``)."""
        return _state.share_memory(self)

    # -- text ------------------------------------------------------------------------------------

    def extra_repr(self) -> str:
        """The settings that ``repr`` shows; subclasses override it."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def _child_lines(self) -> list[str]:
        return [f"({n}): {_indent(repr(m))}" for n, m in self._modules.items()]

    def __repr__(self) -> str:
        extra = self.extra_repr()
        extras = extra.split("\n") if extra else []
        lines = self._child_lines()
        if not lines and len(extras) <= 1:
            return f"{self._get_name()}({extra})"
        return f"{self._get_name()}(\n  " + "\n  ".join(extras + lines) + "\n)"

    # -- dtypes: last, since these names hide the built-ins inside the class -----------------------

    def half(self) -> "Module":
        """Floating parameters and buffers to float16."""
        return self.to(dtypes.float16)

    def bfloat16(self) -> "Module":
        """Floating parameters and buffers to bfloat16."""
        return self.to(dtypes.bfloat16)

    def double(self) -> "Module":
        """Floating parameters and buffers to float64."""
        return self.to(dtypes.float64)

    def float(self) -> "Module":
        """Floating parameters and buffers to float32."""
        return self.to(dtypes.float32)

    def type(self, dst_type: Any) -> "Module":
        """All parameters and buffers, integer ones too, to one dtype, or to what ``Tensor.type`` takes."""
        if dst_type is None:
            return self
        return self._apply(lambda t: t.type(dst_type))  # type: ignore[attr-defined]


_FIRST = ("_parameters", "_buffers", "_modules", "_hooks", "_non_persistent_buffers_set", "training")
_call = Module.__call__


def _call_with_hooks_of_all(self: Module, *args: Any, **kwargs: Any) -> Any:
    """``Module.__call__`` while there are hooks of all modules."""
    if not _hooks.watched():
        _hooks.EVERYWHERE.on = False
        Module.__call__ = _call  # type: ignore[method-assign]
        return _call(self, *args, **kwargs)
    try:
        return _hooks.call(self, _hooks.both(self._hooks), args, kwargs)
    except Exception as error:
        _note_path(self, error)
        raise


def _watch_all() -> None:
    _hooks.EVERYWHERE.on = True
    Module.__call__ = _call_with_hooks_of_all  # type: ignore[method-assign]


_hooks.EVERYWHERE.begin = _watch_all


def _of(module: Module, name: str) -> str | None:
    """The kind of value that is registered under a name, or None."""
    d = module.__dict__
    return PARAMETER if name in d["_parameters"] else MODULE if name in d["_modules"] else \
        BUFFER if name in d["_buffers"] else None


def _kind_of(value: Any) -> str | None:
    if isinstance(value, Parameter):
        return PARAMETER
    if isinstance(value, Module):
        return MODULE
    return BUFFER if isinstance(value, (Buffer, UninitializedBuffer)) else None


def _indent(text: str) -> str:
    return text.replace("\n", "\n  ")


def _note_path(module: Any, error: Exception) -> None:
    """Say in a note on the user's error which module it came from; one that takes no notes stays as it is."""
    with suppress(Exception):  # of a frozen dataclass, say: nothing is to hide the error itself
        _with_path(module, error)


def _with_path(module: Module, error: Exception) -> None:
    """Keep one note on ``error`` that names the module it came from, seen from ``module``."""
    trail = getattr(error, "_module_trail", None)
    path, kind, note = ("", type(module).__name__, None) if trail is None else trail[1:]
    if trail is not None:
        name = next((n for n, m in module.named_modules() if m is trail[0]), "")
        path = ".".join(filter(None, (name, path)))
    text = f"in {path} ({kind})" if path else f"in {kind}"
    notes = getattr(error, "__notes__", [])
    if note in notes:
        notes[notes.index(note)] = text
    else:
        error.add_note(text)
    error._module_trail = (module, path, kind, text)  # type: ignore[attr-defined]
