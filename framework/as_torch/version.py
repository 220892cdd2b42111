"""The version of PyTorch whose names and semantics this package follows, as libraries compare it."""

import re
from typing import Any


def _parts(version: Any) -> tuple[int, ...]:
    """The numbers of the release: (2, 13) of "2.13.0+cpu", without zeros at the end."""
    if isinstance(version, str):
        match = re.match(r"\d+(\.\d+)*", version)
        numbers = [int(n) for n in match[0].split(".")] if match else []
    elif isinstance(version, (tuple, list)):
        numbers = [int(n) for n in version]
    else:
        numbers = list(version.release)  # packaging.version.Version
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


class TorchVersion(str):
    """A version that compares as such, also with other strings and with tuples.

    >>> TorchVersion("2.13.0+framework") > "2.9", TorchVersion("2.13.0") >= (2, 13)
    (True, True)
    """

    def __lt__(self, other: Any) -> bool:
        return _parts(self) < _parts(other)

    def __le__(self, other: Any) -> bool:
        return _parts(self) <= _parts(other)

    def __gt__(self, other: Any) -> bool:
        return _parts(self) > _parts(other)

    def __ge__(self, other: Any) -> bool:
        return _parts(self) >= _parts(other)

    def __eq__(self, other: Any) -> bool:
        if not isinstance(other, (str, tuple, list)) and not hasattr(other, "release"):
            return NotImplemented
        return str.__eq__(self, other) if isinstance(other, str) and "+" in other else (
            _parts(self) == _parts(other))

    def __ne__(self, other: Any) -> bool:
        return not self == other

    __hash__ = str.__hash__


VERSION = TorchVersion("2.13.0+framework")
