"""Where loaded tensors go: ``map_location``."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..backends import backend_for, move
from ..device import Device, as_device
from ..tensor import Tensor, wrap


class MapLocation:
    """``map_location`` of ``load``: None, a device, a dict of devices, or a function.

    A function is called as ``f(tensor, saved)`` with the tensor in host memory and the name of the
    device it was saved from; it returns the tensor to use, or None for the saved device.
    """

    def __init__(self, map_location: Any) -> None:
        self.table: dict[str, Device] = {}
        self.all: Device | None = None
        self.function: Callable | None = None
        if isinstance(map_location, dict):
            self.table = {str(as_device(k)): as_device(v) for k, v in map_location.items()}
        elif callable(map_location):
            self.function = map_location
        elif map_location is not None:
            if not isinstance(map_location, (str, int, Device)) or isinstance(map_location, bool):
                raise TypeError(f"load: map_location must be a device, a dict of devices, a function or "
                                f"None, got {type(map_location).__name__}")
            self.all = as_device(map_location)
        for device in (self.all, *self.table.values()):
            if device is not None:
                backend_for(device)

    def put(self, array: np.ndarray, saved: str) -> Tensor:
        """``array`` as a tensor where it belongs, given the device it was saved from."""
        if self.function is not None:
            chosen = self.function(wrap(array), saved)
            if chosen is not None:
                if not isinstance(chosen, Tensor) or chosen.shape != array.shape \
                        or chosen._array.dtype != array.dtype:
                    raise TypeError(f"load: the function given as map_location must return None or the "
                                    f"tensor on another device, got {type(chosen).__name__}")
                return chosen
        return wrap(move(array, self.all or self.table.get(saved) or as_device(saved)))
