"""PyTorch's place for ``data``: ``from framework.utils.data import DataLoader``."""

from . import _pytree as _pytree
from . import checkpoint as checkpoint
from . import data as data
from . import dlpack as dlpack
from . import hooks as hooks
