"""DataParallel: the batch divided over the devices of one machine."""

from collections.abc import Sequence
from typing import Any

from ...backends import cuda
from ...device import Device, as_device
from ...errors import DeviceError
from ..module import Module
from .pieces import devices_of, gather, scatter_kwargs
from .replicas import parallel_apply, replicate


def data_parallel(module: Module, inputs: Any, device_ids: Sequence[Any] | None = None,
                  output_device: Any = None, dim: int = 0, module_kwargs: dict | None = None) -> Any:
    """``module(*inputs)`` with the batch divided along ``dim`` over devices, and the results joined on one.

    device_ids: the devices (default: all GPUs; without one the module is just called). output_device:
    where results go (default: the first). Gradients arrive at the module's own parameters; what a replica
    writes into its buffers stays with it, but for the first.

    >>> layer = fw.nn.Linear(2, 1)
    >>> fw.nn.parallel.data_parallel(layer, fw.ones(4, 2), ["cpu", "cpu"]).shape
    (4, 1)
    """
    given = inputs if isinstance(inputs, tuple) else (inputs,) if inputs is not None else ()
    named = module_kwargs or {}
    devices = devices_of(range(cuda.device_count()) if device_ids is None else device_ids)
    if not devices:
        return module(*given, **named)
    target = devices[0] if output_device is None else as_device(output_device)
    _check(module, devices[0])
    some, kwargs = scatter_kwargs(given, named, devices, dim)
    if not some:  # no arguments
        some, kwargs = ((),), ({},)
    used = devices[:len(some)]
    if len(devices) == 1:
        return module(*some[0], **kwargs[0])
    return gather(parallel_apply(replicate(module, used), some, kwargs, used), target, dim)


def _check(module: Module, first: Device) -> None:
    for name, t in (*module.named_parameters(), *module.named_buffers()):
        if t.device != first and (t.device.type, first.index) != (first.type, None):
            raise DeviceError(f"data_parallel: '{name}' is on '{t.device}', but the first of device_ids is "
                              f"'{first}'; move the module there")


class DataParallel(Module):
    """A module whose batch is divided over devices in ``forward``; see ``data_parallel``.

    Without a GPU, or with one device, calls go through to ``module``. The names in ``state_dict`` begin with
    "module.". For several processes, which do not wait for each other's Python, there is
    ``DistributedDataParallel``.

    >>> model = fw.nn.DataParallel(fw.nn.Linear(2, 1))
    >>> model(fw.ones(3, 2)).shape, list(model.state_dict())
    ((3, 1), ['module.weight', 'module.bias'])
    """

    def __init__(self, module: Module, device_ids: Sequence[Any] | None = None, output_device: Any = None,
                 dim: int = 0) -> None:
        super().__init__()
        self.module, self.dim = module, dim
        self.device_ids = devices_of(range(cuda.device_count()) if device_ids is None else device_ids)
        first = self.device_ids[0] if self.device_ids else None
        self.output_device = first if output_device is None else output_device
        if len(self.device_ids) == 1:
            module.to(self.device_ids[0])

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return data_parallel(self.module, inputs, self.device_ids, self.output_device, self.dim, kwargs)
