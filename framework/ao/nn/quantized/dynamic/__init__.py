"""Layers of 8-bit numbers that quantise activations by the smallest and largest number of each call.

A result so depends on what else is in the batch, within the error of 8-bit numbers.
"""

from .....config.listing import listing as _listing
from .attention import MultiheadAttention as MultiheadAttention
from .linear import Conv1d as Conv1d
from .linear import Conv2d as Conv2d
from .linear import Linear as Linear

__dir__ = _listing(globals())
