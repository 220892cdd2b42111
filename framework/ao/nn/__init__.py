"""Modules of 8-bit numbers."""

from ...config.listing import listing as _listing
from . import quantized as quantized

__dir__ = _listing(globals(), "quantized")
