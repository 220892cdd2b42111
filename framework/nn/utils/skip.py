"""Modules made without initial values, and weights in another order of memory."""

from typing import Any

from .. import init
from ..conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d
from ..module import Module


def skip_init(module_cls: type, *args: Any, **kwargs: Any) -> Any:
    """``module_cls(*args, **kwargs)`` without filling its parameters: their memory holds anything, and no
    random numbers are drawn. For modules whose values come from a checkpoint.

    Raises TypeError for what is no Module class.

    >>> layer = fw.nn.utils.skip_init(fw.nn.Linear, 2, 3)
    >>> layer.weight.shape
    (3, 2)
    """
    if not (isinstance(module_cls, type) and issubclass(module_cls, Module)):
        raise TypeError(f"skip_init: wanted a Module class, got {module_cls!r}")
    with init.skipped():
        return module_cls(*args, **kwargs)


def _converted(module: Any, memory_format: Any, kinds: Any, ndim: int) -> Any:
    for m in module.modules():
        if isinstance(m, kinds):
            weight: Any = m.weight
            if weight.ndim == ndim:
                weight.data = weight.detach().clone().contiguous(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module: Module, memory_format: Any) -> Module:
    """Lay the weights of all 2-d convolutions, and their transposes, in ``memory_format``; returns the
    module.

    >>> layer = fw.nn.utils.convert_conv2d_weight_memory_format(fw.nn.Conv2d(2, 3, 3), fw.channels_last)
    >>> layer.weight.is_contiguous(memory_format=fw.channels_last)
    True
    """
    return _converted(module, memory_format, (Conv2d, ConvTranspose2d), 4)


def convert_conv3d_weight_memory_format(module: Module, memory_format: Any) -> Module:
    """Lay the weights of all 3-d convolutions, and their transposes, in ``memory_format``; returns the
    module."""
    return _converted(module, memory_format, (Conv3d, ConvTranspose3d), 5)
