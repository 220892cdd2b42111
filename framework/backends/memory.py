"""Memory of the CPU: how much arrays take, and the cache of large buffers that the native extension keeps.

Arrays made by operations get their memory from it; a large buffer that is freed is kept for the next array of
about its size, since touching fresh pages costs more than the arithmetic on them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .. import _native
from ..errors import MissingExtraError


@contextmanager
def cached_memory() -> Iterator[None]:
    """Let arrays that NumPy makes inside take memory from the cache; nothing without the extension."""
    before = use_memory()
    try:
        yield
    finally:
        use_memory(before)


def use_memory(handler: Any = None) -> Any:
    """Let NumPy take memory from the cache, or again from what an earlier call returned."""
    return None if _native.module is None else _native.module.use_memory(handler)


def memory_stats() -> dict[str, int]:
    """Bytes: ``allocated`` by living tensors, their ``peak``, ``cached`` for later, and its ``limit``.

    ``system_calls`` counts the large buffers that the system was asked for; in a training loop that has
    settled it stands still. Memory that came from elsewhere (``from_numpy``, say) is not in these figures.
    Raises MissingExtraError without the native extension.

    >>> sorted(fw.cpu.memory_stats())
    ['allocated', 'cached', 'limit', 'peak', 'system_calls']
    """
    return _module("memory_stats").memory_statistics()


def memory_summary() -> str:
    """The figures of ``memory_stats`` as a table to print.

    Raises MissingExtraError without the native extension.

    >>> print(fw.cpu.memory_summary())  # doctest: +ELLIPSIS
    memory of the CPU
    in tensors         ...
    """
    stats = memory_stats()
    rows = [("in tensors", _readable(stats["allocated"])), ("at the peak", _readable(stats["peak"])),
            ("kept for later", f"{_readable(stats['cached'])} of at most {_readable(stats['limit'])}"),
            ("buffers asked for", str(stats["system_calls"]))]
    return "\n".join(["memory of the CPU", *(f"{name:18} {text}" for name, text in rows)])


def _readable(size: int) -> str:
    value, units = float(size), ["B", "KiB", "MiB", "GiB", "TiB"]
    while value >= 1024 and len(units) > 1:
        value, units = value / 1024, units[1:]
    return f"{size} B" if units[0] == "B" else f"{value:.1f} {units[0]}"


def memory_allocated() -> int:
    """Bytes in tensors that live on the CPU; see ``memory_stats``.

    >>> before = fw.cpu.memory_allocated()
    >>> x = fw.zeros(1000, 1000) + 1
    >>> fw.cpu.memory_allocated() - before
    4000000
    """
    return memory_stats()["allocated"]


def max_memory_allocated() -> int:
    """The most bytes in tensors at one time since the start or ``reset_peak_memory_stats``."""
    return memory_stats()["peak"]


def memory_reserved() -> int:
    """Bytes in tensors and in the cache."""
    stats = memory_stats()
    return stats["allocated"] + stats["cached"]


def reset_peak_memory_stats() -> None:
    """Count the peak (and ``system_calls``) from now on."""
    _module("reset_peak_memory_stats").reset_peak()


def empty_cache() -> None:
    """Give the buffers that are kept for later back to the system; nothing without the extension."""
    if _native.module is not None:
        _native.module.empty_cache()


def set_cache_limit(size: int) -> None:
    """Keep at most ``size`` bytes for later (1 GiB at first). Raises ValueError for a negative size."""
    if size < 0:
        raise ValueError(f"set_cache_limit: size must not be negative, got {size}")
    _module("set_cache_limit").set_cache_limit(size)


def _module(name: str):  # type: ignore[no-untyped-def]
    if _native.module is None:
        raise MissingExtraError(f"{name} needs the native extension, which is {_native.isa}; reinstall the "
                                f"package where there is a C++ compiler")
    return _native.module
