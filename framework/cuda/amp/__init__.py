"""Mixed precision under the names that named the device: ``autocast()`` is ``amp.autocast("cuda")``."""

from ...config.listing import listing as _listing
from . import common as common
from .autocast_mode import autocast as autocast
from .autocast_mode import custom_bwd as custom_bwd
from .autocast_mode import custom_fwd as custom_fwd
from .grad_scaler import GradScaler as GradScaler

__dir__ = _listing(globals(), "", "custom_bwd custom_fwd")
