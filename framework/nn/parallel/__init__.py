"""One module on several devices of a machine, in threads, or in several processes."""

from importlib import import_module as _import_module
from typing import Any as _Any

from ...config.listing import listing as _listing
from .data_parallel import DataParallel as DataParallel
from .data_parallel import data_parallel as data_parallel
from .pieces import gather as gather
from .pieces import scatter as scatter
from .pieces import scatter_kwargs as scatter_kwargs
from .replicas import parallel_apply as parallel_apply
from .replicas import replicate as replicate

_LAZY = {"DistributedDataParallel": "ddp", "distributed": "distributed"}


def __getattr__(name: str) -> _Any:
    """What several processes need, imported when first named."""
    if name in _LAZY:
        module = _import_module(f"{__name__}.{_LAZY[name]}")
        return module if name == "distributed" else getattr(module, name)
    raise AttributeError(f"module 'framework.nn.parallel' has no attribute '{name}'")

__dir__ = _listing(globals())
