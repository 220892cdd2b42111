"""How what a trace holds becomes ONNX's operators."""

from ...config.listing import listing as _listing

__dir__ = _listing(globals())
