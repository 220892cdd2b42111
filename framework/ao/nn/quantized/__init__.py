"""Modules of 8-bit weights whose activations are quantised by ranges that were found on data beforehand."""

from ....config.listing import listing as _listing
from ....nn.quantized import FloatFunctional as FloatFunctional
from . import dynamic as dynamic
from .static import Conv1d as Conv1d
from .static import Conv2d as Conv2d
from .static import Linear as Linear

__dir__ = _listing(globals(), "dynamic")
