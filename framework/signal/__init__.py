"""Signal processing: ``framework.signal``."""

from ..config.listing import listing as _listing
from . import windows as windows

__dir__ = _listing(globals(), "windows")
