"""The names of ``framework.data``, where programs written for PyTorch look for them."""

from importlib import import_module as _import_module
from typing import Any as _Any

from ...config.listing import listing as _listing
from ...data import *  # noqa: F403 - the same names, so that no second list can fall behind
from . import dataloader as dataloader
from . import dataset as dataset
from . import distributed as distributed
from . import sampler as sampler


def __getattr__(name: str) -> _Any:
    """Pipes, imported when first named."""
    if name in ("datapipes", "graph_settings"):
        return _import_module(f"{__name__}.{name}")
    if name in ("DFIterDataPipe", "DataChunk", "IterDataPipe", "MapDataPipe", "functional_datapipe"):
        return getattr(_import_module(f"{__name__}.datapipes.datapipe"), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


__dir__ = _listing(globals(), "dataloader dataset distributed sampler transforms")
