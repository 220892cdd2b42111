"""For tests: comparing tensors with messages that say where they differ, and tensors of random numbers."""

from ..config.listing import listing as _listing
from .compare import assert_allclose as assert_allclose
from .compare import assert_close as assert_close
from .make import make_tensor as make_tensor

__dir__ = _listing(globals())
