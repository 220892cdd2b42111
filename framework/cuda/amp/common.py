"""PyTorch's older place for a question about mixed precision."""

from ...config.listing import own as _own
from ..devices import is_available


def amp_definitely_not_available() -> bool:
    """Whether mixed precision of GPUs is certain not to work: there is no GPU."""
    return not is_available()


__dir__ = _own(globals())
