"""Mixed precision under the names that named the device: ``autocast()`` is ``amp.autocast("cuda")``."""

from functools import partial
from typing import Any

from .. import amp as _amp
from ..config.listing import own as _own
from ..dtypes import DType, float16

custom_fwd = partial(_amp.custom_fwd, device_type="cuda")
custom_bwd = partial(_amp.custom_bwd, device_type="cuda")


class autocast(_amp.autocast):
    """``amp.autocast("cuda", dtype=float16)``."""

    def __init__(self, enabled: bool = True, dtype: DType | None = float16,
                 cache_enabled: bool | None = True) -> None:
        super().__init__("cuda", dtype, enabled, cache_enabled)


class GradScaler(_amp.GradScaler):
    """``amp.GradScaler("cuda")``: without a GPU it warns and passes through, unless ``enabled=False``."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__("cuda", *args, **settings)


__dir__ = _own(globals(), "custom_bwd custom_fwd")
