"""What the namespace can do: ``__array_namespace_info__()``."""

from typing import Any

from .. import dtypes
from ..backends import cuda
from ..device import CPU, Device, as_device
from ..dtypes import DType
from .data_types import KINDS, NAMES


class Info:
    """Answers about devices, dtypes and capabilities.

    >>> fw.array_api.__array_namespace_info__().default_dtypes()["indexing"]
    framework.int64
    """

    def capabilities(self) -> dict[str, Any]:
        """Boolean indexing and shapes that depend on values are there; arrays have up to 64 dimensions."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Device:
        """Where new arrays are made."""
        return CPU

    def devices(self) -> tuple[Device, ...]:
        """The CPU, and the CUDA devices if CuPy is in use already."""
        count = cuda.device_count() if cuda._cupy is not None else 0
        return (CPU, *[Device("cuda", i) for i in range(count)])

    def default_dtypes(self, *, device: Any = None) -> dict[str, DType]:
        """The dtypes that Python numbers and indices take."""
        as_device(device)
        return {"real floating": dtypes.get_default_dtype(), "complex floating": dtypes.as_dtype(complex),
                "integral": dtypes.int64, "indexing": dtypes.int64}

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, DType]:
        """The standard's dtypes by name; ``kind`` as for ``isdtype``."""
        as_device(device)
        kinds = kind if isinstance(kind, tuple) else ("bool", "numeric") if kind is None else (kind,)
        for k in kinds:
            if k not in KINDS:
                raise ValueError(f"dtypes: kind {k!r} is not known; use one of {', '.join(KINDS)}")
        return {name: d for d, name in NAMES.items() if any(d in KINDS[k] for k in kinds)}


def __array_namespace_info__() -> Info:
    """Answers about devices, dtypes and capabilities of this namespace."""
    return Info()
