"""Records of functions that may leave a whole call to other ops, which their callers then make."""

from typing import Any

from .op import Op, _common_device


class Declining(Op):
    """On a GPU the device function alone is asked: what it leaves is no other kernel's (see ``Declined``)."""

    __slots__ = ()

    def cuda(self, *arrays: Any, **settings: Any) -> Any:
        with _common_device(self, arrays):
            return NotImplemented if self.device is None else self.device(*arrays, **settings)
