"""Writing into a tensor's memory, under autograd."""

from . import apply as apply
from . import inplace as inplace
from . import strided as strided
from . import twice as twice
