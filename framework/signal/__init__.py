"""Signal processing: ``framework.signal``."""

from . import windows as windows
