"""PyTorch's ``compiler`` names: questions about compiled functions (``compile``), and their switch."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .config.listing import own as _own
from .jit.compiled import compile as compile
from .jit.compiled import disable as disable
from .jit.compiled import is_compiling as is_compiling

is_dynamo_compiling = is_compiling


def is_exporting() -> bool:
    """False: a trace is made by ``jit.trace``, which ``jit.is_tracing`` tells.

    >>> fw.compiler.is_exporting()
    False
    """
    return False


def allow_in_graph(fn: Any) -> Any:
    """The function (or list of them) itself: Python runs on every call, there is no graph that could refuse
    it.
    """
    return fn


assume_constant_result = allow_in_graph


def substitute_in_graph(original_fn: Callable, **settings: Any) -> Callable[[Callable], Callable]:
    """A decorator that returns the function itself: nothing is substituted where nothing is traced."""
    return lambda function: function


def reset() -> None:
    """Forget compiled code: there is nothing to forget, plans belong to the compiled function."""


def cudagraph_mark_step_begin() -> None:
    """Mark a step for CUDA graphs, of which there are none."""


def list_backends(exclude_tags: Any = ()) -> list[str]:
    """The names of the compilers: the one that is here.

    >>> fw.compiler.list_backends()
    ['framework']
    """
    return ["framework"]


@contextmanager
def set_stance(stance: str = "default", **settings: Any) -> Iterator[None]:
    """A block in which functions are compiled in another way; their results are the same in any.

    Raises ValueError for a stance that PyTorch does not have either.
    """
    known = ("default", "force_eager", "eager_on_recompile", "fail_on_recompile", "eager_then_compile",
             "aot_eager_then_compile")
    if stance not in known:
        raise ValueError(f"set_stance: stance must be one of {', '.join(known)}; got {stance!r}")
    yield


__dir__ = _own(globals(), "compile disable is_compiling is_dynamo_compiling")
