"""Where a tensor lives: ``cpu``, ``cuda:N``, or ``meta``, where it has a shape and no memory."""

import re
from typing import Any

from ._native import Local
from .errors import DeviceError


class Device:
    """A place for tensors: ``Device("cpu")``, ``Device("cuda", 1)``, ``Device("cuda:1")``.

    ``Device("cuda")`` means the current CUDA device. In a ``with`` block the thread makes its new tensors
    there, unless told otherwise.

    >>> fw.device("cuda:1").index
    1
    >>> with fw.device("cpu"):
    ...     fw.get_default_device()
    device(type='cpu')
    """

    __slots__ = ("type", "index")

    def __init__(self, type: "str | Device | int", index: int | None = None) -> None:
        if isinstance(type, Device):
            self.type, self.index = type.type, type.index if index is None else index
            return
        if isinstance(type, int) and not isinstance(type, bool):
            type = f"cuda:{type}"
        match = re.fullmatch(r"(cpu|cuda|meta)(?::(\d+))?", type) if isinstance(type, str) else None
        if match is None:
            raise DeviceError(f"device {type!r} is not known; use 'cpu', 'cuda', 'cuda:N' or 'meta'")
        if match[2] is not None and index is not None:
            raise DeviceError(f"device {type!r} already has an index; drop index={index}")
        number = int(match[2]) if match[2] is not None else index
        if match[1] != "cuda" and number not in (None, 0):
            raise DeviceError(f"device '{match[1]}:{number}' is not there; the only one is '{match[1]}'")
        self.type = match[1]
        self.index = number if match[1] == "cuda" else None

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        return f"device(type={self.type!r}" + (")" if self.index is None else f", index={self.index})")

    def __reduce__(self) -> tuple:
        return Device, (self.type, self.index)

    def __enter__(self) -> "Device":
        _places.around.append(_places.now)
        _places.now = self
        return self

    def __exit__(self, *_: Any) -> None:
        _places.now = _places.around.pop()


CPU = Device("cpu")
_named = {"cpu": CPU}  # those that were asked for by name: ``x.to("cuda")`` reads it once


class _Places(Local):
    """Where the thread makes new tensors, and where it did before the blocks that it is in."""

    def __init__(self) -> None:
        self.now = CPU
        self.around: list[Device] = []


_places = _Places()


def set_default_device(device: "Device | str | int | None") -> None:
    """Set where this thread makes new tensors when nothing is said; None for the CPU.

    Functions that take data from elsewhere (``from_numpy``, ``from_dlpack``, ``load``) leave it where it is.

    >>> fw.set_default_device("cpu"); fw.ones(1).device
    device(type='cpu')
    """
    _places.now = CPU if device is None else as_device(device)


def get_default_device() -> Device:
    """Where this thread makes new tensors: as ``set_default_device`` or the innermost ``with device`` says.

    >>> fw.get_default_device()
    device(type='cpu')
    """
    return _places.now


def as_device(spec: "Device | str | int | None") -> Device:
    """A ``Device`` from a ``Device``, its name, a CUDA index, or None for the default device."""
    if type(spec) is Device:
        return spec
    if spec is None:
        return _places.now
    if type(spec) is not str:
        return Device(spec)
    found = _named.get(spec)
    if found is None:
        found = _named[spec] = Device(spec)
    return found


def cuda_device(given: Any) -> Device:
    """The device that ``cuda(given)`` means; raises DeviceError for one of another kind."""
    place = as_device("cuda" if given is None else given)
    if place.type != "cuda":
        raise DeviceError(f"cuda: device must be a CUDA device, got {str(place)!r}; use to({str(place)!r})")
    return place
