"""Modules of 8-bit numbers, and those from which they come."""

from ...config.listing import listing as _listing
from . import quantizable as quantizable
from . import quantized as quantized

__dir__ = _listing(globals(), "quantizable quantized")
