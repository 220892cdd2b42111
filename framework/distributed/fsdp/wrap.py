"""Policies: which parts of a model are sharded as units of their own.

A policy is called as ``policy(module=..., recurse=..., nonwrapped_numel=...)``: with ``recurse=True`` it says
whether to look into a module, else whether the module is a unit; its parameters that are in no unit below it
are ``nonwrapped_numel`` numbers.
"""

from collections.abc import Callable, Iterable
from typing import Any

from ...nn.module import Module


def always_wrap_policy(*args: Any, **kwargs: Any) -> bool:
    """Every module is a unit."""
    return True


def size_based_auto_wrap_policy(module: Module, recurse: bool, nonwrapped_numel: int,
                                min_num_params: int = 100_000_000,
                                force_leaf_modules: Iterable[type] = ()) -> bool:
    """A module with at least so many numbers in no unit below it is a unit; ``partial`` says how many."""
    large = nonwrapped_numel >= min_num_params
    return large and not isinstance(module, tuple(force_leaf_modules)) if recurse else large


def transformer_auto_wrap_policy(module: Module, recurse: bool, nonwrapped_numel: int,
                                 transformer_layer_cls: Iterable[type]) -> bool:
    """Modules of these classes are units."""
    return recurse or isinstance(module, tuple(transformer_layer_cls))


def lambda_auto_wrap_policy(module: Module, recurse: bool, nonwrapped_numel: int,
                            lambda_fn: Callable[[Module], bool]) -> bool:
    """Modules for which the function is true are units."""
    return recurse or bool(lambda_fn(module))


class ModuleWrapPolicy:
    """Modules of these classes are units."""

    def __init__(self, module_classes: Iterable[type]) -> None:
        self._classes = tuple(module_classes)

    def __call__(self, module: Module, recurse: bool, *args: Any, **kwargs: Any) -> bool:
        return recurse or isinstance(module, self._classes)


def units_of(module: Module, policy: Callable) -> list[Module]:
    """The units that a policy makes of what is below ``module``, those within others first.

    >>> from functools import partial
    >>> model = fw.nn.Sequential(fw.nn.Linear(2, 2), fw.nn.Sequential(fw.nn.Linear(2, 9)))
    >>> units_of(model, partial(size_based_auto_wrap_policy, min_num_params=20))
    [Linear(in_features=2, out_features=9, bias=True)]
    """
    found: list[Module] = []
    taken: set[int] = set()

    def left(part: Module) -> int:
        return sum(p.numel() for p in part.parameters() if id(p) not in taken)

    def visit(part: Module) -> None:
        if policy(module=part, recurse=True, nonwrapped_numel=left(part)):
            for child in part.children():
                visit(child)
        rest = left(part)
        if part is not module and rest and policy(module=part, recurse=False, nonwrapped_numel=rest):
            taken.update(id(p) for p in part.parameters())
            found.append(part)
    visit(module)
    return found


