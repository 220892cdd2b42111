"""Module: the base of layers and models, a tree of parameters, buffers and modules.

Registered values are ordinary attributes; ``_kinds`` remembers which names are registered and as what,
and one walk over the tree (``named_modules``) serves everything that visits it.
"""

import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

from .. import dtypes
from ..device import Device
from ..tensor import Tensor
from . import hooks as _hooks
from . import state as _state
from .hooks import Hooks, RemovableHandle
from .parameter import Buffer, Parameter
from .registry import Registry

PARAMETER, BUFFER, MODULE = "parameter", "buffer", "module"


class Module:
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
    _kinds: dict[str, str]
    _transient: set[str]
    _hooks: Hooks | None

    def __init__(self) -> None:
        d = self.__dict__
        d["training"] = True
        d["_kinds"] = {}
        d["_transient"] = set()  # names of buffers that are not in the state_dict
        d["_hooks"] = None

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes; every subclass that is called defines it."""
        raise NotImplementedError(f"{type(self).__name__} has no forward(); {self._no_forward}")

    _no_forward = "define 'def forward(self, x): ...' in it"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            if self._hooks is None:
                return self.forward(*args, **kwargs)
            return _hooks.call(self, self._hooks, args, kwargs)
        except Exception as error:
            _note_path(self, error)
            raise

    # -- attributes and registration -------------------------------------------------------------

    def __setattr__(self, name: str, value: Any) -> None:
        kinds = self.__dict__.get("_kinds")
        kind = _kind_of(value)
        if kinds is None:
            if kind is not None:
                raise AttributeError(f"{type(self).__name__}: cannot assign the {kind} '{name}' before "
                                     f"super().__init__() was called; call it first in __init__")
        elif kind is not None:
            self._register(name, value, kind)
            if kind == BUFFER:
                (self._transient.discard if value.persistent else self._transient.add)(name)
            return
        elif name in kinds:
            self._replace(name, value, kinds[name])
            return
        elif isinstance(value, (list, tuple, dict)) and value:
            self._warn_of_hidden(name, value)
        object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        if "_kinds" not in self.__dict__ and name in ("_kinds", "_hooks", "_transient", "training"):
            raise AttributeError(f"{type(self).__name__}: super().__init__() was not called in __init__")
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __delattr__(self, name: str) -> None:
        object.__delattr__(self, name)
        self.__dict__.get("_kinds", {}).pop(name, None)
        self.__dict__.get("_transient", set()).discard(name)

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
        self.__dict__[name] = value

    def _register(self, name: str, value: Any, kind: str) -> None:
        kinds = self._kinds
        if kinds.get(name, kind) != kind:
            del kinds[name]
            self._transient.discard(name)
        self.__dict__[name] = value
        kinds[name] = kind

    def _check_name(self, name: Any, kind: str) -> None:
        where = f"{type(self).__name__}: {kind} name"
        if "_kinds" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__}: cannot register the {kind} '{name}' before "
                                 f"super().__init__() was called; call it first in __init__")
        if not isinstance(name, str):
            raise TypeError(f"{where} must be a string, got {type(name).__name__}")
        if "." in name:
            raise KeyError(f"{where} '{name}' must not contain a dot")
        if not name:
            raise KeyError(f"{where} must not be empty")
        if self._kinds.get(name) != kind and (name in self.__dict__ or hasattr(type(self), name)):
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
                            f"{type(tensor).__name__}")
        self._register(name, tensor, BUFFER)
        (self._transient.discard if persistent else self._transient.add)(name)

    def add_module(self, name: str, module: "Module | None") -> None:
        """Register a module (or None) under ``name``; KeyError if the name is taken or dotted."""
        self._check_name(name, MODULE)
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{type(self).__name__}: module '{name}' must be a Module or None, got "
                            f"{type(module).__name__}")
        self._register(name, module, MODULE)

    register_module = add_module

    @property
    def _parameters(self) -> Registry:
        return Registry(self, PARAMETER)

    @property
    def _buffers(self) -> Registry:
        return Registry(self, BUFFER)

    @property
    def _modules(self) -> Registry:
        return Registry(self, MODULE)

    # -- the tree --------------------------------------------------------------------------------

    def _own(self, kind: str) -> list[tuple[str, Any]]:
        """This module's registered values of one kind that are not None, with names."""
        d = self.__dict__
        return [(n, d[n]) for n, k in self._kinds.items() if k == kind and d[n] is not None]

    def named_modules(self, memo: set | None = None, prefix: str = "",
                      remove_duplicate: bool = True) -> Iterator[tuple[str, "Module"]]:
        """This module and all below it, parents first, with dotted names.

        >>> [n for n, _ in fw.nn.Sequential(fw.nn.Flatten()).named_modules()]
        ['', '0']
        """
        seen = set() if memo is None else memo
        stack: list[tuple[str, Module]] = [(prefix, self)]
        while stack:
            name, module = stack.pop()
            if remove_duplicate:
                if module in seen:
                    continue
                seen.add(module)
            yield name, module
            start = f"{name}." if name else ""
            stack += [(start + n, m) for n, m in reversed(module._own(MODULE))]

    def _named(self, kind: str, prefix: str, recurse: bool,
               remove_duplicate: bool) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        walk: Any = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse \
            else [(prefix, self)]
        for path, module in walk:
            for name, value in module._own(kind):
                if remove_duplicate:
                    if id(value) in seen:
                        continue
                    seen.add(id(value))
                yield (f"{path}.{name}" if path else name), value

    def named_parameters(self, prefix: str = "", recurse: bool = True,
                         remove_duplicate: bool = True) -> Iterator[tuple[str, Parameter]]:
        """The parameters with their dotted names; a shared one once, unless asked for otherwise."""
        return self._named(PARAMETER, prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters, each once.

        >>> sum(p.numel() for p in fw.nn.Linear(3, 2).parameters())
        8
        """
        return (p for _, p in self.named_parameters(recurse=recurse))

    def named_buffers(self, prefix: str = "", recurse: bool = True,
                      remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """The buffers with their dotted names."""
        return self._named(BUFFER, prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers, each once."""
        return (b for _, b in self.named_buffers(recurse=recurse))

    def named_children(self) -> Iterator[tuple[str, "Module"]]:
        """The modules directly below this one, each once, with their names."""
        seen: set[int] = set()
        for name, module in self._own(MODULE):
            if id(module) not in seen:
                seen.add(id(module))
                yield name, module

    def children(self) -> Iterator["Module"]:
        """The modules directly below this one, each once."""
        return (m for _, m in self.named_children())

    def modules(self) -> Iterator["Module"]:
        """This module and all below it, each once."""
        return (m for _, m in self.named_modules())

    def get_submodule(self, target: str) -> "Module":
        """The module at a dotted path; AttributeError if there is none."""
        module: Any = self
        for i, name in enumerate(target.split(".") if target else []):
            if module._kinds.get(name) != MODULE or module.__dict__[name] is None:
                path = ".".join(target.split(".")[:i])
                raise AttributeError(f"{type(self).__name__}: no module '{name}' in "
                                     f"{path or type(module).__name__} (looking for '{target}')")
            module = module.__dict__[name]
        return module

    def _get(self, target: str, kind: str) -> Any:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if module._kinds.get(name) != kind:
            raise AttributeError(f"{type(self).__name__}: no {kind} '{target}'")
        return module.__dict__[name]

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a dotted path; AttributeError if there is none."""
        return self._get(target, PARAMETER)

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a dotted path; AttributeError if there is none."""
        return self._get(target, BUFFER)

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

    # -- hooks -----------------------------------------------------------------------------------

    def _own_hooks(self) -> Hooks:
        hooks = self._hooks
        if hooks is None:
            hooks = self.__dict__["_hooks"] = Hooks()
        return hooks

    def register_forward_pre_hook(self, hook: Callable, *, prepend: bool = False,
                                  with_kwargs: bool = False) -> RemovableHandle:
        """Call ``hook(module, args)`` before forward; what it returns (not None) replaces the args.

        with_kwargs: call ``hook(module, args, kwargs)``, which may return ``(args, kwargs)``.
        """
        return Hooks.add(self._own_hooks().before, (hook, with_kwargs), prepend)

    def register_forward_hook(self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False,
                              always_call: bool = False) -> RemovableHandle:
        """Call ``hook(module, args, output)`` after forward; what it returns replaces the output.

        with_kwargs: call ``hook(module, args, kwargs, output)``. always_call: also when forward raised.
        """
        return Hooks.add(self._own_hooks().after, (hook, with_kwargs, always_call), prepend)

    def register_full_backward_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` when the gradients of the inputs are known.

        grad_input and grad_output are tuples, one entry per positional argument and output, None for
        those without gradient. A returned tuple replaces grad_input.
        """
        return Hooks.add(self._own_hooks().backward, hook, prepend)

    def register_full_backward_pre_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_output)`` before backward; a returned tuple replaces it."""
        return Hooks.add(self._own_hooks().backward_before, hook, prepend)

    # -- state -----------------------------------------------------------------------------------

    def state_dict(self, *, destination: Any = None, prefix: str = "",
                   keep_vars: bool = False) -> OrderedDict:
        """Parameters and persistent buffers by dotted name, sharing memory with the module's.

        keep_vars: the registered tensors themselves instead of detached ones.

        >>> list(fw.nn.Linear(2, 1).state_dict())
        ['weight', 'bias']
        """
        return _state.state_dict(self, destination, prefix, keep_vars)

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True,
                        assign: bool = False) -> "_state.IncompatibleKeys":
        """Copy the values of ``state_dict`` into the parameters and buffers, all or none.

        strict: names must match exactly. assign: take the tensors themselves instead of copying.
        Returns (missing_keys, unexpected_keys). Raises CheckpointError with every mismatch in one
        message; the model is unchanged then.
        """
        return _state.load_state_dict(self, state_dict, strict, assign)

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
        return self.to("cuda" if device is None else device)

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
        return [f"({n}): {_indent(repr(self.__dict__[n]))}"
                for n, kind in self._kinds.items() if kind == MODULE]

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
        """All parameters and buffers, integer ones too, to one dtype."""
        return _state.convert(self, lambda t: t.to(dst_type))


def _kind_of(value: Any) -> str | None:
    if isinstance(value, Parameter):
        return PARAMETER
    if isinstance(value, Module):
        return MODULE
    return BUFFER if isinstance(value, Buffer) else None


def _indent(text: str) -> str:
    return text.replace("\n", "\n  ")


def _note_path(module: Module, error: Exception) -> None:
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
