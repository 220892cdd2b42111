"""Tensors brought to several GPUs, and from them, by copies. DeviceError where a GPU is not there."""

from collections.abc import Iterable, Sequence
from typing import Any

from ..config.listing import own as _own
from ..device import Device
from ..nn.parallel import pieces as _pieces
from ..tensor import Tensor
from .devices import device_count, needed
from .streams import stream


def _devices(devices: Iterable[Any] | None) -> list[Device]:
    found = [needed(d) for d in (range(device_count()) if devices is None else devices)]
    if not found:
        raise ValueError("comm: devices must name one GPU or more")
    return found


def _place(destination: Any) -> Device:
    """The current GPU for None, the CPU for "cpu" and -1."""
    if destination in (-1, "cpu", Device("cpu")):
        return Device("cpu")
    return needed(destination)


def _written(outs: Sequence[Tensor], results: Sequence[Tensor], name: str) -> tuple[Tensor, ...]:
    if len(outs) != len(results) or any(a.shape != b.shape for a, b in zip(outs, results)):
        raise ValueError(f"{name}: out must have {len(results)} tensors of shapes "
                         f"{[list(r.shape) for r in results]}, got {[list(o.shape) for o in outs]}")
    for out, result in zip(outs, results):
        out.copy_(result)  # type: ignore[attr-defined]
    return tuple(outs)


def broadcast(tensor: Tensor, devices: Iterable[Any] | None = None, *,
              out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]:
    """The tensor on each of the devices (default: all), itself where it is there already; or in ``out``."""
    if (devices is None) == (out is None):
        raise ValueError("broadcast: give devices or out, one of them")
    if out is not None:
        return _written(out, [tensor] * len(out), "broadcast")
    return tuple([tensor.to(d) for d in _devices(devices)])  # type: ignore[attr-defined]


def broadcast_coalesced(tensors: Sequence[Tensor], devices: Iterable[Any],
                        buffer_size: int = 10485760) -> tuple[tuple[Tensor, ...], ...]:
    """For each device, all tensors on it. buffer_size: small tensors are not put together here; it changes
    nothing."""
    return tuple([tuple([x.to(d) for x in tensors]) for d in _devices(devices)])  # type: ignore[attr-defined]


def reduce_add(inputs: Sequence[Tensor], destination: Any = None) -> Tensor:
    """The sum of tensors of several devices, on one (default: the current one).

    Raises ValueError where there is none, or shapes differ.
    """
    inputs = list(inputs)
    if not inputs or any(x.shape != inputs[0].shape for x in inputs):
        raise ValueError(f"reduce_add: wanted tensors of one shape, got {[list(x.shape) for x in inputs]}")
    target = _place(destination)
    total: Any = inputs[0].to(target, copy=True)  # type: ignore[attr-defined]
    for x in inputs[1:]:
        total += x.to(target)  # type: ignore[attr-defined]
    return total


def reduce_add_coalesced(inputs: Sequence[Sequence[Tensor]], destination: Any = None,
                         buffer_size: int = 10485760) -> tuple[Tensor, ...]:
    """Sums of the tensors that the devices' lists have at the same places. buffer_size: changes nothing."""
    return tuple([reduce_add(parts, destination) for parts in zip(*inputs, strict=True)])


def scatter(tensor: Tensor, devices: Iterable[Any] | None = None, chunk_sizes: Sequence[int] | None = None,
            dim: int = 0, streams: Sequence[Any] | None = None, *,
            out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]:
    """Parts of a tensor along ``dim``, one on each device, or in ``out``.

    chunk_sizes: the size of each part; as equal as can be otherwise. streams: for each device, where its
    copy is made.
    """
    if out is not None:
        sizes = [x.shape[dim] for x in out]
        return _written(out, tensor.split(sizes, dim), "scatter")  # type: ignore[attr-defined]
    targets = _devices(devices)
    parts = tensor.chunk(len(targets), dim) if chunk_sizes is None else (  # type: ignore[attr-defined]
        tensor.split(list(chunk_sizes), dim))  # type: ignore[attr-defined]
    if chunk_sizes is not None and len(parts) != len(targets):
        raise ValueError(f"scatter: {len(parts)} chunk_sizes for {len(targets)} devices")
    made = []
    for i, (part, target) in enumerate(zip(parts, targets)):
        with stream(None if streams is None else streams[i]):
            made.append(part.to(target))
    return tuple(made)


def gather(tensors: Sequence[Tensor], dim: int = 0, destination: Any = None, *,
           out: Tensor | None = None) -> Tensor:
    """Tensors of several devices joined along ``dim`` on one (default: the current one), or in ``out``."""
    made: Tensor = _pieces.gather(tensors, _place(destination) if out is None else out.device, dim)
    return made if out is None else _written([out], [made], "gather")[0]


__dir__ = _own(globals())
