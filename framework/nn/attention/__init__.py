"""Which way attention is computed; attention with scores and masks of one's own; causal masks."""

from contextlib import AbstractContextManager
from enum import IntEnum
from importlib import import_module as _import_module
from typing import Any

from ...backends import sdp
from ...config.listing import listing as _listing


class SDPBackend(IntEnum):
    """The ways of attention, for `sdpa_kernel`: MATH are single operations, the others one kernel.

    FLASH_ATTENTION and EFFICIENT_ATTENTION are both the one kernel that keeps no table of weights;
    CUDNN_ATTENTION is not there.
    """

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


_WAYS = {SDPBackend.MATH: "math", SDPBackend.FLASH_ATTENTION: "flash", SDPBackend.CUDNN_ATTENTION: "cudnn",
         SDPBackend.EFFICIENT_ATTENTION: "mem_efficient"}


def sdpa_kernel(backends: list[SDPBackend] | SDPBackend,
                set_priority: bool = False) -> AbstractContextManager:
    """A block in which ``scaled_dot_product_attention`` is computed in these ways only.

    Where several are allowed the one kernel is taken; ``set_priority`` changes nothing. Attention raises
    RuntimeError in a block that allows none of those that are there.

    >>> with fw.nn.attention.sdpa_kernel(fw.nn.attention.SDPBackend.MATH):
    ...     fw.nn.functional.scaled_dot_product_attention(*[fw.ones(1, 1)] * 3)
    tensor([[1.]])
    """
    wanted = [backends] if isinstance(backends, SDPBackend) else list(backends)
    wrong = [b for b in wanted if b not in _WAYS]
    if wrong:
        raise ValueError(f"sdpa_kernel: wanted ways of SDPBackend that can be chosen, got {wrong}")
    return sdp.only(_WAYS[b] for b in wanted)


def __getattr__(name: str) -> Any:
    """Attention with scores and masks of one's own, and causal masks, imported when first named."""
    if name in ("bias", "flex_attention"):
        return _import_module(f"{__name__}.{name}")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")

__dir__ = _listing(globals())
