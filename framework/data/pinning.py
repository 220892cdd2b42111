"""Batches in memory that the system does not move, from which a GPU copies while the program goes on."""

from collections.abc import Mapping
from typing import Any

from ..backends import cuda
from ..tensor import Tensor


def can_pin() -> bool:
    """Whether there is a GPU for which memory could be pinned."""
    return cuda.is_available()


def pinned(batch: Any) -> Any:
    """The nest with its tensors on the CPU in pinned memory; objects with ``pin_memory()`` pin themselves."""
    if isinstance(batch, Tensor) and (batch.device.type != "cpu" or batch.is_pinned()):  # type: ignore[attr-defined]
        return batch
    if hasattr(batch, "pin_memory"):
        return batch.pin_memory()
    if isinstance(batch, Mapping):
        return type(batch)({k: pinned(v) for k, v in batch.items()})  # type: ignore[call-arg]
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*map(pinned, batch))
    if isinstance(batch, (tuple, list)):
        return type(batch)(map(pinned, batch))
    return batch
