"""PyTorch's place for models of 8-bit numbers (docs/quantization.md)."""

from ..config.listing import listing as _listing
from . import nn as nn
from . import quantization as quantization

__dir__ = _listing(globals(), "nn quantization")
