"""The backends behind one face: which one holds an array, and how arrays move between them."""

from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

from ..config.listing import listing as _listing
from ..device import Device as Device
from . import cpu as cpu
from . import cuda as cuda
from . import meta as meta
from .cuda import about_to_read as about_to_read


def backend_of(array: Any) -> ModuleType:
    """The backend module (``cpu``, ``cuda`` or ``meta``) that owns ``array``."""
    if isinstance(array, (np.ndarray, np.generic)):
        return cpu
    return meta if type(array) is meta.MetaArray else cuda


def backend_for(device: Device) -> ModuleType:
    """The backend module for a device; raises DeviceError when the device is not usable."""
    if device.type == "cpu":
        return cpu
    if device.type == "meta":
        return meta
    cuda.require(device)
    return cuda


def move(array: Any, device: Device, wait: bool = True) -> Any:
    """``array`` on ``device``: the same object when it is there already, else a copy.

    wait=False: memory that is pinned is copied to a GPU while the program goes on.
    """
    if isinstance(array, np.generic):  # NumPy's result where no dimension is left
        array = np.asarray(array)
    source = backend_of(array)
    if source is cpu and device.type == "cpu":
        return array
    if device.type == "cpu":
        return source.to_numpy(array)
    if source is meta and device.type != "meta":
        meta.to_numpy(array)
    there = backend_for(device)
    return cuda.from_any(array, device, wait) if there is cuda else there.from_any(array, device)


def array_module(array: Any) -> Any:
    """numpy or cupy, whichever ``array`` belongs to."""
    return np if isinstance(array, (np.ndarray, np.generic, meta.MetaArray)) else cuda.cupy()


_HERE: AbstractContextManager = nullcontext()


def on_device(array: Any) -> AbstractContextManager:
    """Make the GPU that holds ``array`` the current one, which CuPy wants; nothing where it is."""
    if cuda.array_type is None or not isinstance(array, cuda.array_type) or cuda.is_alone():
        return _HERE
    device = array.device
    return _HERE if cuda.is_current(device.id) else device


_SETTINGS = ("cudnn", "mkl", "mkldnn", "mps", "openmp", "opt_einsum")


def __getattr__(name: str) -> Any:
    """The modules of settings, which few programs name, imported when first named."""
    if name in _SETTINGS:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")

__dir__ = _listing(globals(), "cpu cuda")
