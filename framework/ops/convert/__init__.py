"""The same elements in another dtype, on another device, in another layout, in shared memory."""

from . import cast as cast
from . import memory_format as memory_format
from . import share as share
from . import types as types
