"""PyTorch's place for ``data``: ``from framework.utils.data import DataLoader``."""

from . import checkpoint as checkpoint
from . import data as data
