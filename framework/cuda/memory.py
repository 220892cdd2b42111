"""Memory of GPUs, as CuPy's pool counts it. All figures are 0 where there is no GPU."""

import gc
import pickle
import re
import warnings
from typing import Any, NamedTuple

from ..autograd.anomaly import site_of
from ..backends import cuda as _backend
from ..backends import device_launcher
from ..backends.gpu_memory import bytes_of
from ..config.listing import own as _own
from ..errors import LayoutError
from ..node import notes_of
from ..tensor import Tensor
from .devices import device_count, needed

_looks: dict[int, list[int]] = {}  # the peaks where the program has chosen an allocator of its own


def _pool(device: Any) -> Any:
    """The pool of a device, or None without a GPU."""
    if not _backend.is_loaded() or not device_count():
        return None
    with _backend.cupy().cuda.Device(needed(device).index):
        return _backend.cupy().get_default_memory_pool()


def _figures(device: Any) -> tuple[int, int]:
    """Bytes in arrays, and in arrays and the pool, of a device."""
    pool = _pool(device)
    if pool is None:
        return 0, 0
    index = needed(device).index
    with _backend.cupy().cuda.Device(index):
        allocator = _backend.allocator()
        if allocator is not None:
            used, held = allocator.look(index)  # type: ignore[arg-type]
            return used - device_launcher.idle_bytes(index), held  # type: ignore[arg-type]
        now = int(pool.used_bytes()), int(pool.total_bytes())
    peak = _looks.setdefault(index, list(now))  # type: ignore[arg-type]
    peak[:] = [max(a, b) for a, b in zip(peak, now)]
    return now


def _peaks() -> dict[int, list[int]]:
    allocator = _backend.allocator()
    return _looks if allocator is None else allocator.peaks


def _peak(device: Any) -> tuple[int, int]:
    if _pool(device) is None:
        return 0, 0
    _figures(device)
    return tuple(_peaks()[needed(device).index])  # type: ignore[index, return-value]


class _Owned(NamedTuple):
    """Memory of a tensor: what has it, and where that was made, "" where lines are not noted."""

    root: Any
    text: str
    line: str


def _owned(device: int) -> dict[int, _Owned]:
    """The memory of tensors on a device, by the id of the array that owns it."""
    found: dict[int, _Owned] = {}
    for x in gc.get_objects():
        if not issubclass(type(x), Tensor):
            continue
        try:
            array = getattr(x, "_array", None)
        except LayoutError:  # sparse or nested: the tensor of its values is found by itself
            continue
        if not isinstance(array, _backend.cupy().ndarray) or int(array.device.id) != device:
            continue
        root = array if array.base is None else array.base
        text, line, node = f"{x.dtype} {list(x.shape)}", "", x._node
        if hasattr(node, "op"):
            text += f", made by {node.op.name}"
            line = str(notes_of(node).get("profiled", (site_of(node),))[0] or "")
        elif node is not None:
            text += ", a leaf that requires grad"
        found[id(root)] = _Owned(root, text, line)
    return found


def owners(device: int) -> list[str]:
    """The largest tensors on a device, each with the op that made it, and the line that called it where lines
    are noted."""
    found = [(x.root.nbytes, x.text + (f" at {x.line}" if x.line else ""), bool(x.line))
             for x in _owned(device).values()]
    lines = [f"{bytes_of(size)}: {text}" for size, text, _ in sorted(found, reverse=True)[:5]]
    if lines and not any(noted for *_, noted in found):
        lines.append("(within autograd.detect_anomaly() the lines that made them are known)")
    return lines


def memory_snapshot(device: Any = None) -> list[dict[str, Any]]:
    """The memory of a device, or of all, as segments of blocks, in PyTorch's form; empty without a GPU.

    CuPy does not tell which blocks the driver gave together: each block in use is a segment, and what is kept
    for later is one, whose address is 0. ``frames`` of a block say which op made its tensor, and within
    ``autograd.detect_anomaly()`` at which line.
    """
    if _pool(device) is None:
        return []
    device_launcher.forget()  # results that are kept to be handed out again are in nobody's use
    chosen = range(device_count()) if device is None else [needed(device).index]
    return [segment for index in chosen for segment in _segments(index)]  # type: ignore[arg-type]


def _segments(index: int) -> list[dict[str, Any]]:
    known, segments, array_type = _owned(index), [], _backend.cupy().ndarray
    for x in gc.get_objects():
        if type(x) is not array_type or x.base is not None or not x.nbytes or int(x.device.id) != index:
            continue
        about = known.get(id(x))
        segments.append(_segment(index, int(x.data.mem.ptr), _whole(x.nbytes), x.nbytes, about))
    used, held = _figures(index)
    if held > used:
        segments.append(_segment(index, 0, held - used, 0, None))
    return sorted(segments, key=lambda segment: segment["address"])


def _whole(size: int) -> int:
    return -(-size // 512) * 512  # as CuPy's pool hands out memory


def _segment(index: int, address: int, size: int, requested: int, about: _Owned | None) -> dict[str, Any]:
    frames = []
    if about is not None:
        place = re.match(r"(.*?):(\d+)", about.line)
        file, line = (place[1], int(place[2])) if place else (about.line, 0)
        frames = [{"filename": file, "line": line, "name": about.text}]
    block = {"address": address, "size": size, "requested_size": requested,
             "state": "active_allocated" if requested else "inactive", "frames": frames}
    in_use = size if requested else 0
    return {"device": index, "address": address, "total_size": size, "allocated_size": in_use,
            "active_size": in_use, "requested_size": requested, "stream": 0,
            "segment_type": "large" if size > 1 << 20 else "small", "segment_pool_id": (0, 0),
            "is_expandable": False, "frames": [], "blocks": [block]}


def _snapshot(device: Any = None) -> dict[str, Any]:
    """``memory_snapshot`` as PyTorch's programs for pictures of memory read it; nobody notes a history."""
    return {"segments": memory_snapshot(device), "device_traces": [], "allocator_settings": {}}


def _dump_snapshot(filename: str = "dump_snapshot.pickle") -> None:
    """Write ``_snapshot()`` to a file, as PyTorch's page for pictures of memory reads it."""
    with open(filename, "wb") as file:
        pickle.dump(_snapshot(), file)


def _record_memory_history(enabled: str | None = "all", *_: Any, **__: Any) -> None:
    """Nothing but a warning: no history is noted, a snapshot tells of the memory that is in use by itself."""
    if enabled is not None:
        warnings.warn("_record_memory_history: no history of memory is noted; memory_snapshot and "
                      "_dump_snapshot tell what is there with the op that made it, and within "
                      "autograd.detect_anomaly() the line", UserWarning, stacklevel=2)


def empty_cache() -> None:
    """Give memory that CuPy keeps for later back to the driver; nothing without a GPU."""
    pool = _pool(None)
    if pool is not None:
        device_launcher.forget()
        pool.free_all_blocks()


def memory_allocated(device: Any = None) -> int:
    """Bytes in arrays on a device.

    >>> fw.cuda.memory_allocated() >= 0
    True
    """
    return _figures(device)[0]


def memory_reserved(device: Any = None) -> int:
    """Bytes in arrays on a device and in the pool behind them."""
    return _figures(device)[1]


memory_cached = memory_reserved


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes that arrays had since ``reset_peak_memory_stats``.

    Where a program has chosen an allocator for CuPy, what comes and goes between two looks is not seen.
    """
    return _peak(device)[0]


def max_memory_reserved(device: Any = None) -> int:
    """The same of arrays and the pool behind them."""
    return _peak(device)[1]


max_memory_cached = max_memory_reserved


def reset_peak_memory_stats(device: Any = None) -> None:
    """Look for the peaks anew; nothing without a GPU."""
    if _pool(device) is not None:
        _peaks().pop(needed(device).index, None)  # type: ignore[arg-type]
        _figures(device)


reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats
reset_accumulated_memory_stats = reset_peak_memory_stats


def memory_stats(device: Any = None) -> dict[str, int]:
    """The figures by PyTorch's names; empty without a GPU."""
    if _pool(device) is None:
        return {}
    now, peak, allocator = _figures(device), _peak(device), _backend.allocator()
    found = {f"{kind}_bytes.all.{when}": n for when, pair in (("current", now), ("peak", peak))
             for kind, n in zip(("allocated", "active", "reserved"), (pair[0], *pair))}
    found["inactive_split_bytes.all.current"] = now[1] - now[0]
    if allocator is not None:
        index = needed(device).index
        found["num_alloc_retries"], found["num_ooms"] = allocator.retries[index], allocator.failures[index]
    return found


def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    """The figures of ``memory_stats`` as dicts in dicts; empty without a GPU."""
    found: dict[str, Any] = {}
    for name, n in memory_stats(device).items():
        *outer, last = name.split(".")
        place = found
        for part in outer:
            place = place.setdefault(part, {})
        place[last] = n
    return found


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """The figures as text, one to a line."""
    lines = [f"{name}: {n}" for name, n in memory_stats(device).items()]
    return "\n".join(lines) or "there is no CUDA device"


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Bytes of a device (free, in all), for the driver; DeviceError where it is not there."""
    with _backend.cupy().cuda.Device(needed(device).index):
        free, total = _backend.cupy().cuda.runtime.memGetInfo()
    return int(free), int(total)


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Let CuPy take at most this part of a device's memory; DeviceError where it is not there."""
    if not 0 <= fraction <= 1:
        raise ValueError(f"set_per_process_memory_fraction: fraction must be in [0, 1], got {fraction}")
    index = needed(device).index
    with _backend.cupy().cuda.Device(index):
        _backend.cupy().get_default_memory_pool().set_limit(fraction=fraction)


def get_per_process_memory_fraction(device: Any = None) -> float:
    """The part of a device's memory that CuPy may take: 1.0 unless it was set; DeviceError without one."""
    index = needed(device).index
    with _backend.cupy().cuda.Device(index):
        limit = int(_backend.cupy().get_default_memory_pool().get_limit())
        return limit / mem_get_info(index)[1] if limit else 1.0


def ipc_collect() -> None:
    """Give back memory shared with other processes that they have left: none is shared on GPUs here."""


# PyTorch has these here, too; the package puts them in, as they need more than this file does
ELSEWHERE = ("MemPool", "use_mem_pool", "caching_allocator_alloc", "caching_allocator_delete",
             "get_allocator_backend", "list_gpu_processes")

__dir__ = _own(globals(), " ".join(ELSEWHERE))
