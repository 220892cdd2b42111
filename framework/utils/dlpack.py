"""PyTorch's place for DLPack."""

from typing import Any

from ..config.listing import own as _own
from ..from_data import from_dlpack as from_dlpack
from ..tensor import Tensor


def to_dlpack(tensor: Tensor) -> Any:
    """A capsule over the memory of a tensor, for libraries that take no tensors.

    >>> type(fw.utils.dlpack.to_dlpack(fw.ones(2))).__name__
    'PyCapsule'
    """
    return tensor.__dlpack__()


__dir__ = _own(globals(), "from_dlpack")
