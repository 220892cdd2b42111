"""PyTorch's place for ``DistributedDataParallel``."""

from .ddp import DistributedDataParallel as DistributedDataParallel
