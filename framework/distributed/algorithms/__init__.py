"""What is built on collectives: uneven inputs, communication hooks."""

from ...config.listing import listing as _listing
from .join import Join as Join
from .join import Joinable as Joinable
from .join import JoinHook as JoinHook

__dir__ = _listing(globals(), "join")
