"""Files: ``save`` and ``load``, the checkpoints of a run, and safetensors files of other programs."""

from ..config.listing import listing as _listing
from .checkpoint import load as load
from .checkpoint import save as save
from .checkpointer import Checkpointer as Checkpointer
from .safetensors import load_safetensors as load_safetensors
from .safetensors import save_safetensors as save_safetensors

__dir__ = _listing(globals())
