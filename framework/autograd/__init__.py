"""Automatic differentiation: the public names."""

from . import functional as functional
from .engine import backward as backward
from .engine import grad as grad
from .function import Function as Function
from .gradcheck import gradcheck as gradcheck
from .gradcheck import gradgradcheck as gradgradcheck
from .mode import enable_grad as enable_grad
from .mode import inference_mode as inference_mode
from .mode import no_grad as no_grad
from .mode import set_grad_enabled as set_grad_enabled
