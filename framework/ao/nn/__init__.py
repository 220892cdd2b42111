"""Modules of 8-bit numbers."""

from . import quantized as quantized
