"""PyTorch's place for ``data``: ``from framework.utils.data import DataLoader``."""

from . import _pytree as _pytree
from . import checkpoint as checkpoint
from . import data as data
