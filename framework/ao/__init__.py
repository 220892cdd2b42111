"""PyTorch's place for models of 8-bit numbers (docs/quantization.md)."""

from . import nn as nn
from . import quantization as quantization
