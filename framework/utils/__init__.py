"""PyTorch's place for ``data``: ``from framework.utils.data import DataLoader``."""

from . import data as data
