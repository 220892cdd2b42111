"""PyTorch's place for architecture optimisation, of which the marks of quantized models are here."""

from . import quantization as quantization
