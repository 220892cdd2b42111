"""The older place of `framework.ao.quantization`."""

from .ao.quantization import *  # noqa: F403
from .config.listing import listing as _listing

__dir__ = _listing(globals())
