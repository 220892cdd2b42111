"""``GradScaler`` of GPUs."""

from typing import Any

from ... import amp as _amp
from ...config.listing import own as _own


class GradScaler(_amp.GradScaler):
    """``amp.GradScaler("cuda")``: without a GPU it warns and passes through, unless ``enabled=False``."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__("cuda", *args, **settings)


__dir__ = _own(globals())
