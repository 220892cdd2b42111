"""PyTorch's place for ``data``: ``from framework.utils.data import DataLoader``."""

from importlib import import_module as _import_module
from typing import Any as _Any

from ..config.listing import listing as _listing
from . import _pytree as _pytree
from . import checkpoint as checkpoint
from . import data as data
from . import dlpack as dlpack
from . import hooks as hooks
from .swap import swap_tensors as swap_tensors

_LAZY = ("benchmark", "collect_env", "cpp_extension", "flop_counter", "history", "metrics", "model_zoo",
         "tensorboard", "training")


def __getattr__(name: str) -> _Any:
    """What few programs name, imported when first named."""
    if name in _LAZY:
        return _import_module(f"{__name__}.{name}")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


__dir__ = _listing(globals(), " ".join({"checkpoint", "data", "dlpack", "hooks", *_LAZY} - {"history"}))
