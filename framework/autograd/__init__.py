"""Automatic differentiation: the public names."""

from importlib import import_module as _import_module
from typing import Any as _Any

from ..config.listing import listing as _listing
from . import forward_ad as forward_ad
from . import graph as graph
from .anomaly import detect_anomaly as detect_anomaly
from .anomaly import set_detect_anomaly as set_detect_anomaly
from .draw import draw as draw
from .engine import backward as backward
from .engine import grad as grad
from .function import Function as Function
from .gradcheck import gradcheck as gradcheck
from .gradcheck import gradgradcheck as gradgradcheck
from .mode import enable_grad as enable_grad
from .mode import inference_mode as inference_mode
from .mode import no_grad as no_grad
from .mode import set_grad_enabled as set_grad_enabled
from .variable import Variable as Variable


def __getattr__(name: str) -> _Any:
    """What stands above this package: ``functional`` on ``func``, ``profiler``; imported when first named."""
    if name in ("functional", "profiler", "profiler_legacy"):
        return _import_module(f"{__name__}.{name}")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


__dir__ = _listing(globals(), "forward_ad functional function graph profiler")
