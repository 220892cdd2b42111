"""PyTorch's place for what takes a hook back."""

from ..autograd.hooks import RemovableHandle as RemovableHandle
