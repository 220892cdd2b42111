"""``autocast`` of GPUs, and what decorates functions for it."""

from functools import partial

from ... import amp as _amp
from ...config.listing import own as _own
from ...dtypes import DType, float16

custom_fwd = partial(_amp.custom_fwd, device_type="cuda")
custom_bwd = partial(_amp.custom_bwd, device_type="cuda")


class autocast(_amp.autocast):
    """``amp.autocast("cuda", dtype=float16)``."""

    def __init__(self, enabled: bool = True, dtype: DType | None = float16,
                 cache_enabled: bool | None = True) -> None:
        super().__init__("cuda", dtype, enabled, cache_enabled)


__dir__ = _own(globals(), "custom_bwd custom_fwd")
