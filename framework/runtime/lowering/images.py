"""Convolution and pooling as steps (see ``shapes.py`` for what the functions take)."""

from typing import Any

from .model import Model, Unsupported


def conv(to: Model, x: Any, w: Any, b: Any, stride: Any, padding: Any, dilation: Any, groups: int,
         norm: tuple = (None, None, None, None), eps: float = 0.0, relu: bool = False) -> None:
    """A convolution, then the norm (mean, var, weight, bias) if there is one, then relu."""
    if any(not isinstance(part, (tuple, list)) for part in (stride, padding, dilation)):
        raise Unsupported(f"padding {padding}")
    to.give("conv", to.values(x, w, b, *norm),
            [len(stride), *stride, *padding, *dilation, groups, int(relu)], [float(eps)])


def max_pool(to: Model, x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, out: Any) -> None:
    to.give("max_pool", [to.value(x)], [len(kernel), *kernel, *stride, *padding, *dilation, *out])


def mean_pool(to: Model, x: Any, kernel: Any, stride: Any, padding: Any, out: Any, include: bool,
              divisor: int | None) -> None:
    dilation = [1] * len(kernel)
    to.give("mean_pool", [to.value(x)],
            [len(kernel), *kernel, *stride, *padding, *dilation, *out, int(include), divisor or 0])
