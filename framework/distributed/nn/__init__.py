"""Collectives with derivatives."""

from ...config.listing import listing as _listing
from . import functional as functional

__dir__ = _listing(globals(), "functional")
