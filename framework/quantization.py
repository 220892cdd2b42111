"""The older place of `framework.ao.quantization`."""

from .ao.quantization import *  # noqa: F403
