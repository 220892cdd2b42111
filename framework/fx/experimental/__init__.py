"""PyTorch's place for changes of traced models."""

from . import optimization as optimization
