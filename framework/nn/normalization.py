"""Normalisations: over the batch, each sample, each group of channels, the last dimensions."""

from collections.abc import Callable
from typing import Any

from .. import dtypes
from ..autograd.mode import no_grad
from ..creation import empty, full, ones, zeros
from ..errors import ShapeError
from ..ops.shape.join import cat
from ..tensor import Tensor
from . import functional as F
from . import init
from .counted import Known, know, value_of
from .module import Module
from .parameter import Parameter


class _Norm(Module):
    """Per-channel scale and shift, and the running mean and variance where they are tracked."""

    _version = 2
    ranks: tuple[int, ...] = ()  # dimensions that an input may have
    layout = ""
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None
    weight: Parameter | None
    bias: Parameter | None

    def __init__(self, num_features: int, eps: float, momentum: float | None, affine: bool,
                 track_running_stats: bool, device: Any, dtype: Any, bias: bool) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        place: dict[str, Any] = {"device": device, "dtype": dtype}
        self.register_parameter("weight", Parameter(empty(num_features, **place)) if affine else None)
        self.register_parameter("bias",
                                Parameter(empty(num_features, **place)) if affine and bias else None)
        tracked = track_running_stats
        self.register_buffer("running_mean", zeros(num_features, **place) if tracked else None)
        self.register_buffer("running_var", ones(num_features, **place) if tracked else None)
        self.register_buffer("num_batches_tracked",
                             zeros((), dtype=dtypes.int64, device=device) if tracked else None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Forget the batches seen: mean 0, variance 1."""
        if self.track_running_stats:
            init.zeros_(self.running_mean)  # type: ignore[arg-type]
            init.ones_(self.running_var)  # type: ignore[arg-type]
            init.zeros_(self.num_batches_tracked)  # type: ignore[arg-type]

    def reset_parameters(self) -> None:
        """Scale 1, shift 0, and no batches seen."""
        self.reset_running_stats()
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: dict, *rest: Any) -> None:
        """Load; a state of version 1, or of no known version, need not have ``num_batches_tracked``."""
        name = prefix + "num_batches_tracked"
        if (local_metadata.get("version") or 1) < 2 and self.num_batches_tracked is not None \
                and name not in state_dict:
            state_dict[name] = self.num_batches_tracked
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    def _check(self, x: Tensor, channels: int) -> None:
        if x.ndim not in self.ranks:
            raise ShapeError(f"{type(self).__name__}: wanted an input {self.layout}, got shape "
                             f"{list(x.shape)}")
        if x.shape[channels] != self.num_features:
            raise ShapeError(f"{type(self).__name__}: num_features={self.num_features}, but the input of "
                             f"shape {list(x.shape)} has {x.shape[channels]} channels")

    def extra_repr(self) -> str:
        """The settings."""
        return (f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
                f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}")


class _BatchNorm(_Norm):
    """Batch normalisation over any number of dimensions."""

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1,
                 affine: bool = True, track_running_stats: bool = True, device: Any = None,
                 dtype: Any = None, *, bias: bool = True) -> None:
        if not eps > 0:
            raise ValueError(f"{type(self).__name__}: eps must be positive, got {eps}")
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias)

    def _check_input_dim(self, input: Tensor) -> None:
        """Raise unless the input has the right shape; subclasses may override it."""
        self._check(input, 1)

    _known = Known()

    def _share_of_this(self) -> float:
        """Count one more batch; its share of the plain mean over all."""
        seen: Any = self.num_batches_tracked
        count = value_of(seen, self._known, type(self).__name__) + 1
        seen.add_(1)
        self._known = know(seen, count)
        return 1.0 / count

    def forward(self, input: Tensor) -> Tensor:
        """The normalised ``input``; in training mode, the running statistics move."""
        self._check_input_dim(input)
        factor = 0.0 if self.momentum is None else self.momentum
        moving = self.training and self.track_running_stats
        if moving and self.num_batches_tracked is not None:
            if self.momentum is None:
                factor = self._share_of_this()
            else:
                self.num_batches_tracked.add_(1)  # type: ignore[attr-defined]
        by_batch = self.training or self.running_mean is None
        use = not self.training or self.track_running_stats
        return F.batch_norm(input, self.running_mean if use else None, self.running_var if use else None,
                            self.weight, self.bias, by_batch, factor, self.eps)


class BatchNorm1d(_BatchNorm):
    """``y = (x - mean) / sqrt(var + eps) * weight + bias`` per channel of x (N, C) or (N, C, L).

    In training mode with the mean and (biased) variance of the batch, else with the running ones,
    which follow with ``running = (1 - momentum) * running + momentum * new``; momentum None: the mean
    over all batches (Ioffe and Szegedy 2015).

    >>> fw.nn.BatchNorm1d(1)(fw.tensor([[-1.0], [1.0]])).detach()
    tensor([[-1.0000],
            [ 1.0000]])
    """

    ranks = (2, 3)
    layout = "(N, C) or (N, C, L)"


class BatchNorm2d(_BatchNorm):
    """Batch normalisation per channel of x (N, C, H, W); see BatchNorm1d."""

    ranks = (4,)
    layout = "(N, C, H, W)"


class BatchNorm3d(_BatchNorm):
    """Batch normalisation per channel of x (N, C, D, H, W); see BatchNorm1d."""

    ranks = (5,)
    layout = "(N, C, D, H, W)"


class _InstanceNorm(_Norm):
    """Instance normalisation over any number of dimensions."""

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = False,
                 track_running_stats: bool = False, device: Any = None, dtype: Any = None, *,
                 bias: bool = True) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias)

    def forward(self, input: Tensor) -> Tensor:
        """The normalised ``input``."""
        alone = input.ndim == self.ranks[0]  # one sample without the batch dimension
        self._check(input, 0 if alone else 1)
        y = F.instance_norm(input.unsqueeze(0) if alone else input,  # type: ignore[attr-defined]
                            self.running_mean, self.running_var, self.weight, self.bias,
                            self.training or not self.track_running_stats,
                            0.0 if self.momentum is None else self.momentum, self.eps)
        return y.squeeze(0) if alone else y


class InstanceNorm1d(_InstanceNorm):
    """``(x - mean) / sqrt(var + eps)`` per sample and channel of x (N, C, L) or (C, L).

    affine: with a scale and shift per channel (Ulyanov et al. 2016).

    >>> fw.nn.InstanceNorm1d(2)(fw.ones(1, 2, 3)).shape
    (1, 2, 3)
    """

    ranks = (2, 3)
    layout = "(N, C, L) or (C, L)"


class InstanceNorm2d(_InstanceNorm):
    """``(x - mean) / sqrt(var + eps)`` per sample and channel of x (N, C, H, W) or (C, H, W)."""

    ranks = (3, 4)
    layout = "(N, C, H, W) or (C, H, W)"


class InstanceNorm3d(_InstanceNorm):
    """``(x - mean) / sqrt(var + eps)`` per sample and channel of x (N, C, D, H, W) or (C, D, H, W)."""

    ranks = (4, 5)
    layout = "(N, C, D, H, W) or (C, D, H, W)"


def _shape(normalized_shape: Any) -> tuple[int, ...]:
    if hasattr(normalized_shape, "__index__"):
        return (normalized_shape.__index__(),)
    return tuple(normalized_shape)


class _Affine(Module):
    """What the norms over a sample's own numbers share: a scale and a shift."""

    weight: Any
    bias: Any

    def _scale_and_shift(self, shape: tuple[int, ...], weight: bool, bias: bool, device: Any,
                         dtype: Any) -> None:
        for name, there in (("weight", weight), ("bias", weight and bias)):
            self.register_parameter(name, Parameter(empty(shape, device=device, dtype=dtype))
                                    if there else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Scale 1, shift 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)


class LayerNorm(_Affine):
    """``y = (x - mean) / sqrt(var + eps) * weight + bias`` over the last dimensions, normalized_shape.

    weight and bias have that shape (Ba et al. 2016).

    >>> fw.nn.LayerNorm(2)(fw.tensor([[1.0, 3.0]])).detach()
    tensor([[-1.0000,  1.0000]])
    """

    def __init__(self, normalized_shape: Any, eps: float = 1e-5, elementwise_affine: bool = True,
                 bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self._scale_and_shift(self.normalized_shape, elementwise_affine, bias, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        """The normalised ``input``."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """The settings."""
        return (f"{self.normalized_shape}, eps={self.eps}, "
                f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}")


class GroupNorm(_Affine):
    """``y = (x - mean) / sqrt(var + eps) * weight + bias`` over each of num_groups groups of channels.

    x: (N, C, ...), weight and bias: (C,) (Wu and He 2018).

    >>> fw.nn.GroupNorm(2, 4)(fw.ones(1, 4, 3)).shape
    (1, 4, 3)
    """

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True,
                 device: Any = None, dtype: Any = None, *, bias: bool = True) -> None:
        super().__init__()
        if num_groups < 1 or num_channels % num_groups:
            raise ValueError(f"GroupNorm: num_channels={num_channels} must be a multiple of "
                             f"num_groups={num_groups}")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self._scale_and_shift((num_channels,), affine, bias, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        """The normalised ``input``."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """The settings."""
        return (f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
                f"bias={self.bias is not None}")


class RMSNorm(Module):
    """``y = x / sqrt(mean(x^2) + eps) * weight`` over the last dimensions, normalized_shape.

    eps None: the distance from 1 to the next number of the dtype (Zhang and Sennrich 2019).

    >>> fw.nn.RMSNorm(2)(fw.tensor([3.0, 4.0])).detach()
    tensor([0.8485, 1.1314])
    """

    def __init__(self, normalized_shape: Any, eps: float | None = None, elementwise_affine: bool = True,
                 device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self.register_parameter("weight", Parameter(
            empty(self.normalized_shape, device=device, dtype=dtype)) if elementwise_affine else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Scale 1."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, input: Tensor) -> Tensor:
        """The normalised ``input``."""
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        """The settings."""
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class LocalResponseNorm(Module):
    """``x / (k + alpha * mean of x^2 over size neighbouring channels)^beta`` (Krizhevsky et al. 2012)."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        """The normalised ``input`` (N, C, ...)."""
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        """The settings."""
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(LocalResponseNorm):
    """``x / (k + alpha / size * sum of x^2 over neighbouring channels)^beta``, as Torch 7 had it.

    The neighbours are those less than ``(size + 1) // 2`` away on either side: for an even size one fewer
    than LocalResponseNorm takes.

    >>> fw.nn.CrossMapLRN2d(2, alpha=2.0, beta=1.0)(fw.ones(1, 3, 1, 1)).flatten()
    tensor([0.5000, 0.5000, 0.5000])
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__(size, alpha, beta, k)

    def forward(self, input: Tensor) -> Tensor:
        """The normalised ``input`` (N, C, H, W)."""
        if input.ndim != 4:
            raise ShapeError(f"CrossMapLRN2d: wanted an input (N, C, H, W), got shape {list(input.shape)}")
        width = (self.size + 1) // 2 * 2 - 1
        return F.local_response_norm(input, width, self.alpha * width / self.size, self.beta, self.k)


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation whose statistics are those of the batches of all workers together.

    Alone it is BatchNorm over x (N, C, ...). With several workers ``all_reduce`` is set to a function
    ``all_reduce(tensor, process_group)`` that gives the sum of the tensor over all of them and can be
    differentiated: the sums of x and of its squared distance from the mean go through it.

    >>> fw.nn.SyncBatchNorm(2)(fw.ones(3, 2)).shape
    (3, 2)
    """

    all_reduce: Callable[[Tensor, Any], Tensor] | None = None

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1,
                 affine: bool = True, track_running_stats: bool = True, process_group: Any = None,
                 device: Any = None, dtype: Any = None, *, bias: bool = True) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim < 2:
            raise ShapeError(f"SyncBatchNorm: wanted an input (N, C, ...), got shape {list(input.shape)}")

    def forward(self, input: Tensor) -> Tensor:
        """The normalised ``input``; in training mode, the running statistics move."""
        together = type(self).all_reduce
        if together is None or not (self.training or self.running_mean is None):
            return super().forward(input)
        self._check_input_dim(input)
        return self._by_all(input, together)

    def _by_all(self, x: Any, together: Callable[[Tensor, Any], Tensor]) -> Tensor:
        dims, c = (0, *range(2, x.ndim)), self.num_features
        count = full((1,), float(x.numel() // c), dtype=x.dtype, device=x.device)
        sums: Any = together(cat([x.sum(dims), count]), self.process_group)
        mean, n = sums[:c] / sums[c], sums[c].detach()
        apart = (x - mean.reshape(-1, *(1,) * (x.ndim - 2))) ** 2
        var: Any = together(apart.sum(dims), self.process_group) / n
        if self.training and self.track_running_stats:
            self._follow(mean.detach(), var.detach() * (n / (n - 1)))
        return F.batch_norm(x, mean, var, self.weight, self.bias, False, 0.0, self.eps)

    def _follow(self, mean: Any, var: Any) -> None:
        """Move the running statistics."""
        with no_grad():
            if self.momentum is None:
                factor = self._share_of_this()
            else:
                factor = self.momentum
                self.num_batches_tracked.add_(1)  # type: ignore[union-attr]
            for running, new in ((self.running_mean, mean), (self.running_var, var)):
                running.lerp_(new.to(running.dtype), factor)  # type: ignore[union-attr]

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """The module with all batch norms in it made SyncBatchNorms, over the same parameters and statistics.

        >>> net = fw.nn.SyncBatchNorm.convert_sync_batchnorm(fw.nn.Sequential(fw.nn.BatchNorm2d(3)))
        >>> type(net[0]).__name__
        'SyncBatchNorm'
        """
        made = module
        if isinstance(module, _BatchNorm):
            made = cls(module.num_features, module.eps, module.momentum, module.affine,
                       module.track_running_stats, process_group, bias=module.bias is not None)
            made._parameters.update(module._parameters)
            made._buffers.update(module._buffers)
            made.training = module.training
        for name, child in list(module.named_children()):
            made.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return made
