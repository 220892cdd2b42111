"""The marks that quantizable models carry. Layers take and give floats here, so they pass values on."""

from typing import Any

from ...nn import Module
from ...tensor import Tensor

__all__ = ["DeQuantStub", "QuantStub"]


class QuantStub(Module):
    """The place where quantized values would begin; before preparation, and so always here, the input itself.

    >>> fw.ao.quantization.QuantStub()(fw.ones(1))
    tensor([1.])
    """

    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()
        if qconfig is not None:
            self.qconfig = qconfig

    def forward(self, x: Tensor) -> Tensor:
        return x


class DeQuantStub(QuantStub):
    """The place where quantized values would end; the input itself."""
