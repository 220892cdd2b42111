"""The functions of backends that are not there, as ``framework.xpu`` and ``framework.mps`` give them.

There are 0 devices, seeds are checked and go nowhere, figures are 0, and what needs a device raises.
"""

from collections.abc import Callable
from typing import Any, NoReturn

from .errors import DeviceError
from .random import check_seed


def answers(module: str, kind: str, refused: str, nothing: str = "", zero: str = "") -> dict[str, Callable]:
    """The functions of ``module``, for devices called ``kind``: those that raise, pass, or are 0, by name."""
    def is_available() -> bool:
        """Whether there is such a device: False."""
        return False

    def device_count() -> int:
        """The number of such devices: 0."""
        return 0

    def manual_seed(seed: int) -> None:
        """Check the seed; there is no generator to start."""
        check_seed(seed, f"{kind}.manual_seed")

    def refuse(name: str) -> Callable:
        def function(*args: Any, **settings: Any) -> NoReturn:
            raise DeviceError(f"{kind}.{name}: there is no device of this kind; there are 'cpu' and 'cuda'")
        function.__doc__ = "Raises DeviceError: there is no such device."
        return function

    def give(value: Any, doc: str) -> Callable:
        def function(*args: Any, **settings: Any) -> Any:
            return value
        function.__doc__ = doc
        return function

    found: dict[str, Callable] = {"is_available": is_available, "device_count": device_count,
                                  "manual_seed": manual_seed, "manual_seed_all": manual_seed}
    found.update((name, refuse(name)) for name in refused.split())
    found.update((name, give(None, "Nothing: there is no such device.")) for name in nothing.split())
    found.update((name, give(0, "0: there is no such device.")) for name in zero.split())
    for name, function in found.items():
        function.__name__ = function.__qualname__ = name
        function.__module__ = module
    return found
