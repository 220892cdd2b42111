"""PyTorch's place for what its loader is made of, as far as programs import it from there."""

from . import collate as collate
