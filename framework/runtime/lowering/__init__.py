"""How what a trace holds becomes the steps of a model file."""

from ...config.listing import listing as _listing

__dir__ = _listing(globals())
