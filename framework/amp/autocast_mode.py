"""PyTorch's place for ``autocast`` and what decorates functions for it."""

from .function import custom_bwd as custom_bwd
from .function import custom_fwd as custom_fwd
from .mode import autocast as autocast
from .mode import is_autocast_available as is_autocast_available
