"""A table of the layers of a module: shapes, parameters, memory, multiplications."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from ...creation import zeros
from ...dtypes import DType, get_default_dtype
from ...tensor import Tensor
from ..conv import _ConvNd
from ..linear import Bilinear, Linear
from ..module import Module
from .as_it_was import as_it_was


class Layer(NamedTuple):
    """One call of a module: its path, class, shapes, own parameters, bytes of its result, flops."""

    name: str
    kind: str
    input: Any
    output: Any
    parameters: int
    bytes: int
    flops: int


class Summary:
    """What ``summary`` found; prints as a table.

    layers: in the order of their calls, modules that hold others left out. parameters, trainable: numbers of
    elements, shared ones once. parameter_bytes, activation_bytes: of the parameters and of all results of
    layers. flops: multiplications and additions of products and convolutions, forward.
    """

    def __init__(self, module: Module, layers: list[Layer]) -> None:
        self.name = type(module).__name__
        self.layers = layers
        own = list(module.parameters())
        self.parameters = sum(p.numel() for p in own)
        self.trainable = sum(p.numel() for p in own if p.requires_grad)
        self.parameter_bytes = sum(p.numel() * p.element_size() for p in own)
        self.activation_bytes = sum(layer.bytes for layer in layers)
        self.flops = sum(layer.flops for layer in layers)

    def __str__(self) -> str:
        rows = [("layer", "class", "output", "parameters", "flops")]
        rows += [
            (layer.name or "-", layer.kind, str(layer.output), f"{layer.parameters:,}", f"{layer.flops:,}")
            for layer in self.layers
        ]
        widths = [max(len(row[i]) for row in rows) for i in range(5)]
        lines = [
            "  ".join(
                text.rjust(w) if i > 2 else text.ljust(w) for i, (text, w) in enumerate(zip(row, widths))
            ).rstrip()
            for row in rows
        ]
        lines.insert(1, "-" * max(map(len, lines)))
        return "\n".join(
            [
                self.name,
                *lines,
                "",
                (
                    f"{self.parameters:,} parameters ({self.trainable:,} trainable, "
                    f"{_size(self.parameter_bytes)}), "
                    f"{_size(self.activation_bytes)} of results, {self.flops:,} flops"
                ),
            ]
        )

    __repr__ = __str__


def summary(
    model: Module, input_size: Any = None, *, input_data: Any = None, dtype: DType | None = None
) -> Summary:
    """The layers of a model as they are called: classes, shapes, parameters, memory, flops. Print the result.

    input_size: shape of the input with its batch dimension, or a list of shapes for several inputs; the
    model is run once on zeros, in evaluation mode, without recording, and left as it was. input_data:
    tensors to run on instead (a tuple: several arguments). dtype: of the zeros; default: that of the
    parameters, where they are floating. flops counts a multiplication and an addition as two, of Linear,
    Bilinear and convolution layers; what happens outside of such modules (attention, say) is not seen.
    Raises TypeError without input, and what the model itself raises.

    >>> fw.nn.utils.summary(fw.nn.Sequential(fw.nn.Linear(4, 3), fw.nn.ReLU()), (2, 4))
    Sequential
    layer  class   output  parameters  flops
    ----------------------------------------
    0      Linear  (2, 3)          15     48
    1      ReLU    (2, 3)           0      0
    <BLANKLINE>
    15 parameters (15 trainable, 60 B), 48 B of results, 48 flops
    """
    inputs = _inputs(model, input_size, input_data, dtype)
    layers: list[Layer] = []
    handles = [
        child.register_forward_hook(_noting(layers, name), with_kwargs=True)
        for name, child in model.named_modules()
        if not any(True for _ in child.children())
    ]
    try:
        with as_it_was(model):
            model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
    return Summary(model, layers)


def _inputs(model: Module, input_size: Any, input_data: Any, dtype: DType | None) -> tuple:
    if input_data is not None:
        return input_data if isinstance(input_data, tuple) else (input_data,)
    if input_size is None:
        raise TypeError("summary: give input_size, the shape of the input with its batch, or input_data")
    sizes = input_size if input_size and isinstance(input_size[0], (list, tuple)) else [input_size]
    first = next((p for p in model.parameters() if p.is_floating_point()), None)
    dtype = dtype or (get_default_dtype() if first is None else first.dtype)
    device = "cpu" if first is None else first.device
    return tuple(zeros(*size, dtype=dtype, device=device) for size in sizes)


def _noting(layers: list[Layer], name: str) -> Callable:
    def note(module: Module, args: tuple, settings: dict, output: Any) -> None:
        found = _tensors(output)
        layers.append(
            Layer(
                name,
                type(module).__name__,
                _shapes((args, *settings.values())),
                _shapes(output),
                sum(p.numel() for p in module._parameters.values() if p is not None),
                sum(x.numel() * x.element_size() for x in found),
                _flops(module, args, found),
            )
        )

    return note


def _flops(module: Module, args: tuple, outputs: list[Tensor]) -> int:
    """Multiplications and additions of one call, the bias included."""
    if not outputs:
        return 0
    count, bias = outputs[0].numel(), 0 if getattr(module, "bias", None) is None else 1
    if isinstance(module, _ConvNd):
        weight = module.weight
        if getattr(
            module, "transposed", False
        ):  # each input element meets the kernel of every output channel
            return 2 * args[0].numel() * math.prod(weight.shape[1:]) + bias * count
        return count * (2 * math.prod(weight.shape[1:]) - 1 + bias)
    if isinstance(module, Linear):
        return count * (2 * module.in_features - 1 + bias)
    if isinstance(module, Bilinear):
        return count * (2 * module.in1_features * (module.in2_features + 1) - 1 + bias)
    return 0


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [x for v in value for x in _tensors(v)]
    return [x for v in value.values() for x in _tensors(v)] if isinstance(value, dict) else []


def _shapes(value: Any) -> Any:
    """The shape of one tensor, a list of those of several."""
    found = [tuple(x.shape) for x in _tensors(value)]
    return found[0] if len(found) == 1 else found


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} GB"
