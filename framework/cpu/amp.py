"""Mixed precision under the names that named the device: ``autocast()`` is ``amp.autocast("cpu")``."""

from .. import amp as _amp
from ..dtypes import DType, bfloat16


class autocast(_amp.autocast):
    """``amp.autocast("cpu", dtype=bfloat16)``."""

    def __init__(self, enabled: bool = True, dtype: DType | None = bfloat16,
                 cache_enabled: bool | None = True) -> None:
        super().__init__("cpu", dtype, enabled, cache_enabled)
