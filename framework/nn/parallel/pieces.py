"""Taking tensors in nested arguments apart along a dimension, one part to a device, and joining results."""

from collections.abc import Sequence
from typing import Any

from ...device import Device, as_device
from ...ops import namespace
from ...tensor import Tensor

_cat, _stack = (namespace("framework")[name] for name in ("cat", "stack"))


def devices_of(device_ids: Sequence[Any]) -> list[Device]:
    """Devices from their names or numbers of GPUs."""
    return [as_device(i) for i in device_ids]


def scatter(inputs: Any, target_gpus: Sequence[Any], dim: int = 0) -> list[Any]:
    """A part of each tensor in ``inputs`` for each device, along ``dim``; what is no tensor goes to all.

    Tuples, lists and dicts are taken apart element by element. There are fewer parts than devices where a
    tensor is too short.

    >>> fw.nn.parallel.scatter((fw.arange(4), "x"), ["cpu", "cpu"])
    [(tensor([0, 1]), 'x'), (tensor([2, 3]), 'x')]
    """
    return _scatter(inputs, devices_of(target_gpus), dim)


def _scatter(x: Any, devices: list[Device], dim: int) -> list[Any]:
    if isinstance(x, Tensor):
        parts = x.chunk(len(devices), dim)  # type: ignore[attr-defined]
        return [part.to(device) for part, device in zip(parts, devices)]
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return [type(x)(*parts) for parts in zip(*[_scatter(v, devices, dim) for v in x])]
    if isinstance(x, (tuple, list)) and x:
        return [type(x)(parts) for parts in zip(*[_scatter(v, devices, dim) for v in x])]
    if isinstance(x, dict) and x:
        return [type(x)(zip(x, parts)) for parts in zip(*[_scatter(v, devices, dim) for v in x.values()])]
    return [x for _ in devices]


def scatter_kwargs(inputs: Any, kwargs: dict[str, Any] | None, target_gpus: Sequence[Any],
                   dim: int = 0) -> tuple[tuple, tuple]:
    """``scatter`` of positional and of named arguments, as many parts of both.

    >>> fw.nn.parallel.scatter_kwargs((fw.arange(2),), {"scale": 3}, ["cpu", "cpu"])
    (((tensor([0]),), (tensor([1]),)), ({'scale': 3}, {'scale': 3}))
    """
    devices = devices_of(target_gpus)
    some = _scatter(tuple(inputs), devices, dim) if inputs else []
    named = _scatter(kwargs, devices, dim) if kwargs else []
    length = max(len(some), len(named))
    if some and named:
        length = min(len(some), len(named))
    return (tuple(some[:length] or [()] * length), tuple(named[:length] or [{} for _ in range(length)]))


def gather(outputs: Sequence[Any], target_device: Any, dim: int = 0) -> Any:
    """The results of the replicas joined along ``dim`` on one device, recorded; 0-dim tensors are stacked.

    >>> fw.nn.parallel.gather([fw.ones(1), fw.zeros(2)], "cpu")
    tensor([1., 0., 0.])
    """
    first, target = outputs[0], as_device(target_device)
    if isinstance(first, Tensor):
        moved = [x.to(target) for x in outputs]  # type: ignore[attr-defined]
        return _stack(moved) if first.ndim == 0 else _cat(moved, dim)
    if first is None:
        return None
    if isinstance(first, dict):
        if any(set(x) != set(first) for x in outputs):
            raise ValueError("gather: the dicts of the replicas have different keys")
        return type(first)((k, gather([x[k] for x in outputs], target, dim)) for k in first)
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*[gather(parts, target, dim) for parts in zip(*outputs)])
    if isinstance(first, (tuple, list)):
        return type(first)([gather(parts, target, dim) for parts in zip(*outputs)])
    raise TypeError(f"gather: results must be tensors, or tuples, lists and dicts of them, got "
                    f"{type(first).__name__}")
