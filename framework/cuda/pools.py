"""Pools of device memory apart from the common one, and memory that no tensor stands for."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from ..backends import cuda as _backend
from ..backends import device_launcher
from ..config.listing import own as _own
from .devices import device as _device
from .devices import needed
from .graphs import _Pool
from .streams import ExternalStream, Stream
from .streams import stream as _in_stream


class MemPool:
    """Memory that only tensors made inside of ``use_mem_pool`` take; it goes back with the pool.

    id: its name, also for ``cuda.graph(g, pool=pool.id)``. ``memory_allocated`` and its kin count the common
    pool only. An allocator of one's own is CuPy's business (``cupy.cuda.PythonFunctionAllocator``): for one
    given here NotImplementedError is raised. DeviceError without a GPU.
    """

    def __init__(self, allocator: Any = None, use_on_oom: bool = False) -> None:
        needed()
        if allocator is not None or use_on_oom:
            raise NotImplementedError("MemPool: allocator and use_on_oom are not offered; let CuPy have an "
                                      "allocator, e.g. cupy.cuda.set_allocator(f)")
        self._pool = _Pool.new()

    @property
    def id(self) -> tuple[int, int]:
        """The name, which ``cuda.graph`` takes as ``pool=``."""
        return self._pool


@contextmanager
def use_mem_pool(pool: MemPool, device: Any = None) -> Iterator[None]:
    """Tensors that this thread makes on a device in the block take memory from the pool.

    They may outlive the block. Where the device is full, what the common pool keeps for later is given back
    first. Raises TypeError for what is no MemPool.
    """
    if not isinstance(pool, MemPool):
        raise TypeError(f"use_mem_pool: pool must be a MemPool, got {type(pool).__name__}")
    module, index = _backend.cupy(), needed(device).index
    allocator, common = _backend.allocator(), module.cuda.get_allocator()

    def malloc(size: int) -> Any:
        if int(module.cuda.runtime.getDevice()) != index:
            return common(size)
        return pool._pool.malloc(size) if allocator is None else allocator.of_pool(pool._pool.malloc, size)

    kept = device_launcher.keep_results(False)
    try:
        with module.cuda.using_allocator(malloc):
            yield
    finally:
        device_launcher.keep_results(kept)


_given: dict[int, Any] = {}  # arrays by their addresses


def caching_allocator_alloc(size: int, device: Any = None, stream: Any = None) -> int:
    """The address of ``size`` bytes from CuPy's pool, for code that is not Python's; a stream, or its handle.

    Raises ValueError for a size that is not positive. It is had until ``caching_allocator_delete``.
    """
    if size <= 0:
        raise ValueError(f"caching_allocator_alloc: size must be positive, got {size}")
    chosen = stream if stream is None or isinstance(stream, Stream) else ExternalStream(stream, device=device)
    with _device(needed(device).index), nullcontext() if chosen is None else _in_stream(chosen):
        array = _backend.cupy().empty(int(size), "u1")
    _given[int(array.data.ptr)] = array
    return int(array.data.ptr)


def caching_allocator_delete(mem_ptr: int) -> None:
    """Give back what ``caching_allocator_alloc`` gave; ValueError for another address."""
    if _given.pop(mem_ptr, None) is None:
        raise ValueError(f"caching_allocator_delete: caching_allocator_alloc did not give {mem_ptr}, or it "
                         f"was given back already")


def get_allocator_backend() -> str:
    """Who hands out memory of GPUs: "cupy"."""
    return "cupy"


__dir__ = _own(globals())
