"""Copies of a module on other devices, whose gradients flow back to it, and calls of them in threads."""

import copy
import threading
from collections.abc import Sequence
from typing import Any

from ...autograd.mode import is_grad_enabled, set_grad_enabled
from ...device import Device
from ...errors import add_note
from ..module import Module
from .pieces import devices_of


def replicate(network: Module, devices: Sequence[Any], detach: bool = False) -> list[Module]:
    """A replica of the module for each device. Its parameters are tensors computed from those of the module,
    so that gradients arrive there; buffers on the module's own device are its own.

    detach: without gradients.

    >>> layer = fw.nn.Linear(2, 1)
    >>> replica = fw.nn.parallel.replicate(layer, ["cpu"])[0]
    >>> replica(fw.ones(1, 2)).sum().backward(); layer.weight.grad
    tensor([[1., 1.]])
    """
    return [_replica(network, device, detach) for device in devices_of(devices)]


def _replica(network: Module, device: Device, detach: bool) -> Module:
    moved: dict[int, Any] = {}
    for t in (*network.parameters(), *network.buffers()):
        there = (t.detach() if detach else t).to(device)  # type: ignore[attr-defined]
        moved[id(t)] = there
    made: dict[int, Module] = {}

    def twin(module: Module) -> Module:
        if id(module) in made:
            return made[id(module)]
        new = made[id(module)] = copy.copy(module)
        new._modules = {name: None if child is None else twin(child)  # type: ignore[assignment]
                        for name, child in module._modules.items()}
        for kind in ("_parameters", "_buffers"):
            parts = getattr(module, kind)
            setattr(new, kind, {k: None if t is None else moved[id(t)] for k, t in parts.items()})
        return new
    return twin(network)


def parallel_apply(modules: Sequence[Module], inputs: Sequence[Any], kwargs_tup: Sequence[dict] | None = None,
                   devices: Sequence[Any] | None = None) -> list[Any]:
    """``modules[i](*inputs[i], **kwargs_tup[i])``, each in a thread of its own; what one raises is raised.

    >>> double = fw.nn.Identity()
    >>> fw.nn.parallel.parallel_apply([double, double], [(fw.ones(1),), (fw.zeros(1),)])
    [tensor([1.]), tensor([0.])]
    """
    named = [{} for _ in modules] if kwargs_tup is None else kwargs_tup
    places = [None] * len(modules) if devices is None else devices_of(devices)
    if not len(modules) == len(inputs) == len(named) == len(places):
        raise ValueError(f"parallel_apply: {len(modules)} modules need as many inputs, kwargs and devices, "
                         f"got {len(inputs)}, {len(named)} and {len(places)}")
    results: list[Any] = [None] * len(modules)
    errors: list[BaseException | None] = [None] * len(modules)
    recording = is_grad_enabled()

    def call(i: int) -> None:
        try:
            given = inputs[i] if isinstance(inputs[i], (list, tuple)) else (inputs[i],)
            with set_grad_enabled(recording):
                results[i] = modules[i](*given, **named[i])
        except BaseException as error:  # handed over to the caller's thread
            add_note(error, f"in replica {i}" + ("" if places[i] is None else f" on device '{places[i]}'"))
            errors[i] = error

    if len(modules) == 1:
        call(0)
    else:
        threads = [threading.Thread(target=call, args=(i,)) for i in range(len(modules))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for error in errors:
        if error is not None:
            raise error
    return results
