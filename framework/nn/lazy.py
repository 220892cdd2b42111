"""Layers that take the number of their input's channels from the first input they see.

Until then their parameters are uninitialised tensors. The first call gives these a shape and values, and the
module the class that it is a lazy form of (``cls_to_become``), so that nothing of this is left afterwards.
"""

from typing import Any

from ..errors import ShapeError
from ..tensor import Tensor
from .conv import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from .linear import Linear
from .module import Module
from .normalization import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
)
from .parameter import UninitializedBuffer, UninitializedParameter, is_lazy


class LazyModuleMixin(Module):
    """The base of lazy modules: a subclass has ``initialize_parameters``, which gives its uninitialised
    parameters and buffers a shape and values, and may name the class that it becomes.

    >>> class Scale(fw.nn.modules.lazy.LazyModuleMixin, fw.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = fw.nn.UninitializedParameter()
    ...     def initialize_parameters(self, x):
    ...         self.factor.materialize(x.shape[-1:])
    ...         fw.nn.init.ones_(self.factor)
    ...     def forward(self, x):
    ...         return x * self.factor
    >>> Scale()(fw.ones(1, 3)).shape
    (1, 3)
    """

    cls_to_become: type[Module] | None = None

    def has_uninitialized_params(self) -> bool:
        """Whether a parameter or buffer of its own waits for the first input."""
        return any(is_lazy(t) for box in (self._parameters, self._buffers) for t in box.values())

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Give uninitialised parameters and buffers a shape and values, from the arguments of a call."""
        raise NotImplementedError(f"{type(self).__name__} has no initialize_parameters(); define it with the "
                                  f"arguments of forward()")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.cls_to_become is not None or self.has_uninitialized_params():
            self._infer_parameters(self, args, kwargs)
            if self.cls_to_become is not None:
                # as in PyTorch the very object becomes the other class: others hold it already
                self.__class__ = self.cls_to_become  # type: ignore[assignment]
                return self(*args, **kwargs)
        return super().__call__(*args, **kwargs)

    def _infer_parameters(self, module: Any, args: Any, kwargs: Any = None) -> None:
        kwargs = kwargs or {}
        module.initialize_parameters(*args, **kwargs)
        if module.has_uninitialized_params():
            raise RuntimeError(f"{type(module).__name__}: initialize_parameters() left parameters or buffers "
                               f"uninitialised")


def _unknown(there: bool, kind: Any, device: Any, dtype: Any) -> Any:
    return kind(device=device, dtype=dtype) if there else None


class _LazyWeights(LazyModuleMixin):
    """A lazy layer with a weight and a bias, of which ``_shapes`` gives the shapes from an input."""

    weight: Any
    bias: Any
    _sizes: tuple[str, ...] = ()  # the settings that are 0 until an input was seen

    def _defer(self, bias: bool, device: Any, dtype: Any) -> None:
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.bias = _unknown(bias, UninitializedParameter, device, dtype)

    def reset_parameters(self) -> None:
        """Draw weight and bias anew; before the first input there is nothing to draw."""
        if not self.has_uninitialized_params() and getattr(self, self._sizes[0]):
            super().reset_parameters()  # type: ignore[misc]


class LazyLinear(_LazyWeights, Linear):
    """A Linear whose ``in_features`` are those of the first input.

    >>> layer = fw.nn.LazyLinear(2)
    >>> layer(fw.ones(5, 3)).shape, layer
    ((5, 2), Linear(in_features=3, out_features=2, bias=True))
    """

    cls_to_become = Linear
    _sizes = ("in_features",)

    def __init__(self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        Linear.__init__(self, 0, 0, bias, device, dtype)
        self.out_features = out_features
        self._defer(bias, device, dtype)

    def initialize_parameters(self, input: Tensor) -> None:  # type: ignore[override]
        """Draw weight and bias for an input (..., in)."""
        self.in_features = input.shape[-1] if is_lazy(self.weight) else self.weight.shape[-1]
        if self.has_uninitialized_params():
            if is_lazy(self.weight):
                self.weight.materialize((self.out_features, self.in_features))
            if is_lazy(self.bias):
                self.bias.materialize((self.out_features,))
            self.reset_parameters()


class _LazyConv(_LazyWeights):
    """A convolution whose ``in_channels`` are those of the first input."""

    _sizes = ("in_channels",)

    def _start(self, settings: tuple, out_channels: int, bias: bool, device: Any, dtype: Any) -> None:
        self.cls_to_become.__init__(self, 0, 0, *settings, device=device, dtype=dtype)  # type: ignore
        self.out_channels = out_channels
        self._defer(bias, device, dtype)

    def initialize_parameters(self, input: Tensor, *args: Any,  # type: ignore[override]
                              **kwargs: Any) -> None:
        """Draw weight and bias for an input (N, C, ...) or (C, ...)."""
        layer: Any = self
        if not self.has_uninitialized_params():
            shape = self.weight.shape
            layer.in_channels = shape[0] if layer.transposed else shape[1] * layer.groups
            return
        n = layer.n
        if input.ndim not in (n + 1, n + 2):
            raise ShapeError(f"{type(self).__name__}: wanted an input of {n + 1} or {n + 2} dimensions, got "
                             f"shape {list(input.shape)}")
        channels = input.shape[-n - 1]
        layer._check(type(self).__name__, channels, layer.out_channels, layer.groups, layer.padding,
                     layer.stride, layer.padding_mode)
        layer.in_channels = channels
        first, second = (channels, layer.out_channels)[::1 if layer.transposed else -1]
        self.weight.materialize((first, second // layer.groups, *layer.kernel_size))
        if self.bias is not None:
            self.bias.materialize((layer.out_channels,))
        self.reset_parameters()


class _LazyPlainConv(_LazyConv):
    def __init__(self, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
                 dilation: Any = 1, groups: int = 1, bias: bool = True, padding_mode: str = "zeros",
                 device: Any = None, dtype: Any = None) -> None:
        self._start((kernel_size, stride, padding, dilation, groups, bias, padding_mode), out_channels, bias,
                    device, dtype)


class _LazyConvTranspose(_LazyConv):
    def __init__(self, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
                 output_padding: Any = 0, groups: int = 1, bias: bool = True, dilation: Any = 1,
                 padding_mode: str = "zeros", device: Any = None, dtype: Any = None) -> None:
        self._start((kernel_size, stride, padding, output_padding, groups, bias, dilation, padding_mode),
                    out_channels, bias, device, dtype)


class LazyConv1d(_LazyPlainConv, Conv1d):  # type: ignore[misc]
    """A Conv1d whose ``in_channels`` are those of the first input."""

    cls_to_become = Conv1d


class LazyConv2d(_LazyPlainConv, Conv2d):  # type: ignore[misc]
    """A Conv2d whose ``in_channels`` are those of the first input.

    >>> layer = fw.nn.LazyConv2d(4, 3)
    >>> layer(fw.ones(1, 2, 5, 5)).shape, layer
    ((1, 4, 3, 3), Conv2d(2, 4, kernel_size=(3, 3), stride=(1, 1)))
    """

    cls_to_become = Conv2d


class LazyConv3d(_LazyPlainConv, Conv3d):  # type: ignore[misc]
    """A Conv3d whose ``in_channels`` are those of the first input."""

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):  # type: ignore[misc]
    """A ConvTranspose1d whose ``in_channels`` are those of the first input."""

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):  # type: ignore[misc]
    """A ConvTranspose2d whose ``in_channels`` are those of the first input."""

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):  # type: ignore[misc]
    """A ConvTranspose3d whose ``in_channels`` are those of the first input."""

    cls_to_become = ConvTranspose3d


class _LazyNorm(LazyModuleMixin):
    """A norm whose ``num_features`` are those of the first input."""

    def __init__(self, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
                 track_running_stats: bool = True, device: Any = None, dtype: Any = None, *,
                 bias: bool = True) -> None:
        self.cls_to_become.__init__(  # type: ignore[misc]
            self, 0, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.weight = _unknown(affine, UninitializedParameter, device, dtype)
        self.bias = _unknown(affine and bias, UninitializedParameter, device, dtype)
        self.running_mean = _unknown(track_running_stats, UninitializedBuffer, device, dtype)
        self.running_var = _unknown(track_running_stats, UninitializedBuffer, device, dtype)

    def reset_parameters(self) -> None:
        """Scale 1, shift 0, and no batches seen; before the first input there is nothing to set."""
        if not self.has_uninitialized_params() and self.num_features:
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self, input: Tensor) -> None:  # type: ignore[override]
        """Scale 1, shift 0 and empty statistics for an input (N, C, ...)."""
        layer: Any = self
        tensors = [t for t in (layer.weight, layer.bias, layer.running_mean, layer.running_var)
                   if t is not None]
        known = [t.shape[0] for t in tensors if not is_lazy(t)]
        if input.ndim not in layer.ranks:
            raise ShapeError(f"{type(self).__name__}: wanted an input {layer.layout}, got shape "
                             f"{list(input.shape)}")
        alone = isinstance(self, (InstanceNorm1d, InstanceNorm2d, InstanceNorm3d)) \
            and input.ndim == layer.ranks[0]
        layer.num_features = known[0] if known else input.shape[0 if alone else 1]
        waiting = [t for t in tensors if is_lazy(t)]
        for t in waiting:
            t.materialize((layer.num_features,))
        if waiting:
            self.reset_parameters()


class LazyBatchNorm1d(_LazyNorm, BatchNorm1d):  # type: ignore[misc]
    """A BatchNorm1d whose ``num_features`` are those of the first input.

    >>> layer = fw.nn.LazyBatchNorm1d()
    >>> layer(fw.ones(2, 3)).shape, layer.num_features
    ((2, 3), 3)
    """

    cls_to_become = BatchNorm1d


class LazyBatchNorm2d(_LazyNorm, BatchNorm2d):  # type: ignore[misc]
    """A BatchNorm2d whose ``num_features`` are those of the first input."""

    cls_to_become = BatchNorm2d


class LazyBatchNorm3d(_LazyNorm, BatchNorm3d):  # type: ignore[misc]
    """A BatchNorm3d whose ``num_features`` are those of the first input."""

    cls_to_become = BatchNorm3d


class LazyInstanceNorm1d(_LazyNorm, InstanceNorm1d):  # type: ignore[misc]
    """An InstanceNorm1d whose ``num_features`` are those of the first input."""

    cls_to_become = InstanceNorm1d


class LazyInstanceNorm2d(_LazyNorm, InstanceNorm2d):  # type: ignore[misc]
    """An InstanceNorm2d whose ``num_features`` are those of the first input."""

    cls_to_become = InstanceNorm2d


class LazyInstanceNorm3d(_LazyNorm, InstanceNorm3d):  # type: ignore[misc]
    """An InstanceNorm3d whose ``num_features`` are those of the first input."""

    cls_to_become = InstanceNorm3d
