"""What is built on collectives: uneven inputs, communication hooks."""

from .join import Join as Join
from .join import Joinable as Joinable
from .join import JoinHook as JoinHook
