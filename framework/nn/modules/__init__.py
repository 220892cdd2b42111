"""The layers under the paths that PyTorch has them at: ``nn.modules.conv.Conv2d`` is ``nn.Conv2d``."""

from importlib import import_module as _import_module
from typing import Any as _Any

from ...config.listing import listing as _listing

_PATHS = ("activation", "adaptive", "batchnorm", "channelshuffle", "container", "conv", "distance",
          "dropout", "flatten", "fold", "instancenorm", "lazy", "linear", "loss", "module", "normalization",
          "padding", "pixelshuffle", "pooling", "rnn", "sparse", "transformer", "upsampling", "utils")


def __getattr__(name: str) -> _Any:
    """The paths, read when first named, and the layers themselves."""
    if name in _PATHS:
        return _import_module(f"{__name__}.{name}")
    if name[:1].isupper() and hasattr(layers := _import_module("..", __name__), name):
        return getattr(layers, name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")

__dir__ = _listing(globals())
