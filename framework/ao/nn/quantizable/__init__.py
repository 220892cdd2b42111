"""Layers as they are while ranges are found: what is to be quantised in them is a layer of its own."""

from ....config.listing import listing as _listing
from .attention import MultiheadAttention as MultiheadAttention

__dir__ = _listing(globals())
