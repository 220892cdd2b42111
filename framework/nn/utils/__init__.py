"""Helpers around parameters and sequences."""

from importlib import import_module as _import_module
from typing import Any as _Any

from ...config.listing import listing as _listing
from ...doors import through as _through
from . import fusion as fusion
from . import rnn as rnn
from . import stateless as stateless
from .fusion import fuse_conv_bn_eval as fuse_conv_bn_eval
from .fusion import fuse_conv_bn_weights as fuse_conv_bn_weights
from .fusion import fuse_linear_bn_eval as fuse_linear_bn_eval
from .fusion import fuse_linear_bn_weights as fuse_linear_bn_weights
from .gradients import clip_grad_norm as clip_grad_norm
from .gradients import clip_grad_norm_ as clip_grad_norm_
from .gradients import clip_grad_value_ as clip_grad_value_
from .gradients import clip_grads_with_norm_ as clip_grads_with_norm_
from .gradients import get_total_norm as get_total_norm
from .gradients import parameters_to_vector as parameters_to_vector
from .gradients import vector_to_parameters as vector_to_parameters
from .skip import convert_conv2d_weight_memory_format as convert_conv2d_weight_memory_format
from .skip import convert_conv3d_weight_memory_format as convert_conv3d_weight_memory_format
from .skip import skip_init as skip_init
from .summary import summary as summary

_LAZY = ("parametrizations", "parametrize", "prune")
_HOOKED = ("weight_norm", "remove_weight_norm", "spectral_norm", "remove_spectral_norm")


def __getattr__(name: str) -> _Any:
    """The sub-packages that few programs name, imported when first named."""
    if name in _LAZY:
        return _import_module(f"{__name__}.{name}")
    if name == "ragged":
        return _through("ragged")
    if name in _HOOKED:
        return getattr(_import_module(f"{__name__}.hooked_norms"), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")

__dir__ = _listing(globals(), "parametrizations parametrize prune rnn stateless")
