"""A module as a tree of modules: what it holds, what is below it, and what stands at a dotted path.

One walk (``named_modules``) serves everything that visits the tree: parameters, states, moves to a device.
"""

from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from ..tensor import Tensor
from .parameter import Parameter

if TYPE_CHECKING:
    from .module import Module

PARAMETER, BUFFER, MODULE = "parameter", "buffer", "module"
_value = itemgetter(1)
REGISTRIES = {PARAMETER: "_parameters", BUFFER: "_buffers", MODULE: "_modules"}


class Tree:
    """What Module knows of the modules below it."""

    def _own(self, kind: str) -> list[tuple[str, Any]]:
        """This module's registered values of one kind that are not None, with names."""
        registered = getattr(self, REGISTRIES[kind])
        return [item for item in registered.items() if item[1] is not None] if registered else []

    def _own_names(self, kind: str) -> list[str]:
        return list(getattr(self, REGISTRIES[kind]))

    def named_modules(self, memo: set | None = None, prefix: str = "",
                      remove_duplicate: bool = True) -> Iterator[tuple[str, "Module"]]:
        """This module and all below it, parents first, with dotted names.

        >>> [n for n, _ in fw.nn.Sequential(fw.nn.Flatten()).named_modules()]
        ['', '0']
        """
        seen = set() if memo is None else memo
        stack: list[tuple[str, Any]] = [(prefix, self)]
        while stack:
            name, module = stack.pop()
            if remove_duplicate:
                if module in seen:
                    continue
                seen.add(module)
            yield name, module
            if module._modules:
                start = f"{name}." if name else ""
                stack += [(start + n, m) for n, m in reversed(module._modules.items()) if m is not None]

    def _named(self, kind: str, prefix: str, recurse: bool,
               remove_duplicate: bool) -> Iterator[tuple[str, Any]]:
        if recurse and remove_duplicate:
            return self._each(REGISTRIES[kind], prefix)
        return self._named_members(lambda module: module._own(kind), prefix, recurse, remove_duplicate)

    def _each(self, registry: str, prefix: str) -> Iterator[tuple[str, Any]]:
        """What stands in a registry of each module: as ``_named_members`` gives it, in half of the time."""
        seen: set[int] = set()
        for path, module in self.named_modules(prefix=prefix):
            if registered := getattr(module, registry):
                start = f"{path}." if path else ""
                for name, value in list(registered.items()):
                    if value is not None and id(value) not in seen:
                        seen.add(id(value))
                        yield start + name, value

    def _named_members(self, get_members_fn: Callable, prefix: str = "", recurse: bool = True,
                       remove_duplicate: bool = True) -> Iterator[tuple[str, Any]]:
        """What ``get_members_fn`` gives of each module as (name, value), with dotted names; None is passed
        over."""
        seen: set[int] = set()
        walk: Any = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse \
            else [(prefix, self)]
        for path, module in walk:
            for name, value in get_members_fn(module):
                if value is None:
                    continue
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
        return map(_value, self.named_parameters(recurse=recurse))

    def named_buffers(self, prefix: str = "", recurse: bool = True,
                      remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """The buffers with their dotted names."""
        return self._named(BUFFER, prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers, each once."""
        return map(_value, self.named_buffers(recurse=recurse))

    def named_children(self) -> Iterator[tuple[str, "Module"]]:
        """The modules directly below this one, each once, with their names."""
        seen: set[int] = set()
        for name, module in self._own(MODULE):
            if id(module) not in seen:
                seen.add(id(module))
                yield name, module

    def children(self) -> Iterator["Module"]:
        """The modules directly below this one, each once."""
        return map(_value, self.named_children())

    def modules(self) -> Iterator["Module"]:
        """This module and all below it, each once."""
        return map(_value, self.named_modules())

    def get_submodule(self, target: str) -> "Module":
        """The module at a dotted path; AttributeError if there is none."""
        module: Any = self
        for i, name in enumerate(target.split(".") if target else []):
            if not isinstance(getattr(module, name, None), Tree):
                path = ".".join(target.split(".")[:i])
                raise AttributeError(f"{type(self).__name__}: no module '{name}' in "
                                     f"{path or type(module).__name__} (looking for '{target}')")
            module = getattr(module, name)
        return module

    def _get(self, target: str, kind: str) -> Any:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if name not in getattr(module, REGISTRIES[kind]):
            raise AttributeError(f"{type(self).__name__}: no {kind} '{target}'")
        return getattr(module, name)

    def set_submodule(self, target: str, module: "Module", strict: bool = False) -> None:
        """Put a module at a dotted path, in the place of another or, unless ``strict``, under a new name.

        Raises ValueError for an empty path or what is no Module, AttributeError where the path leads nowhere.

        >>> net = fw.nn.Sequential(fw.nn.Linear(2, 2), fw.nn.ReLU())
        >>> net.set_submodule("1", fw.nn.Tanh())
        >>> net[1]
        Tanh()
        """
        if not target:
            raise ValueError(f"{type(self).__name__}.set_submodule: the path must not be empty")
        if not isinstance(module, Tree):
            raise ValueError(f"{type(self).__name__}.set_submodule: wanted a Module for '{target}', got "
                             f"{type(module).__name__}")
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        there = getattr(owner, name, None)
        if (strict and there is None) or not (there is None or isinstance(there, Tree)):
            raise AttributeError(f"{type(self).__name__}.set_submodule: no module '{target}'")
        setattr(owner, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a dotted path; AttributeError if there is none."""
        return self._get(target, PARAMETER)

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a dotted path; AttributeError if there is none."""
        return self._get(target, BUFFER)
