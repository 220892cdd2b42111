"""NVIDIA's collectives as CuPy brings them."""

from typing import Any

from ..backends import cuda as _backend
from ..config.listing import own as _own
from .devices import needed


def version() -> tuple[int, int, int]:
    """The version of NCCL, (2, 21, 5) say; DeviceError without a GPU."""
    needed()
    number = _backend.nccl().get_version()
    return number // 10000, number // 100 % 100, number % 100


def is_available(tensors: Any) -> bool:
    """Whether NCCL could work on these: tensors on GPUs, each on another one.

    >>> fw.cuda.nccl.is_available([fw.ones(1)])
    False
    """
    tensors = list(tensors)
    devices = {x.device for x in tensors if x.is_cuda and x.is_contiguous()}
    return bool(tensors) and len(devices) == len(tensors)


def unique_id() -> bytes:
    """What the processes of a group are to know each other by; DeviceError without a GPU."""
    needed()
    return bytes(_backend.nccl().get_unique_id())


__dir__ = _own(globals())
