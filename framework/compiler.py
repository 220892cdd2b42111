"""PyTorch's ``compiler`` names as what they mean where functions are not compiled: they run as they are."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


def is_compiling() -> bool:
    """False: nothing is compiled.

    >>> fw.compiler.is_compiling()
    False
    """
    return False


is_dynamo_compiling = is_compiling
is_exporting = is_compiling


def disable(fn: Callable | None = None, recursive: bool = True, *, reason: str | None = None) -> Callable:
    """The function itself: it was not going to be compiled. Without one, a decorator.

    >>> fw.compiler.disable(abs) is abs
    True
    """
    return (lambda function: function) if fn is None else fn


def allow_in_graph(fn: Any) -> Any:
    """The function (or list of them) itself: there is no graph that could refuse it."""
    return fn


assume_constant_result = allow_in_graph


def substitute_in_graph(original_fn: Callable, **settings: Any) -> Callable[[Callable], Callable]:
    """A decorator that returns the function itself: nothing is substituted where nothing is traced."""
    return lambda function: function


def reset() -> None:
    """Forget compiled code: there is none."""


def cudagraph_mark_step_begin() -> None:
    """Mark a step for CUDA graphs, of which there are none."""


def list_backends(exclude_tags: Any = ()) -> list[str]:
    """The names of the compilers: none."""
    return []


@contextmanager
def set_stance(stance: str = "default", **settings: Any) -> Iterator[None]:
    """A block in which functions are compiled in another way; they run as they are in any.

    Raises ValueError for a stance that PyTorch does not have either.
    """
    known = ("default", "force_eager", "eager_on_recompile", "fail_on_recompile", "eager_then_compile",
             "aot_eager_then_compile")
    if stance not in known:
        raise ValueError(f"set_stance: stance must be one of {', '.join(known)}; got {stance!r}")
    yield
