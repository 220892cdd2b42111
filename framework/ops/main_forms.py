"""Layers as the main namespace has them: with arguments in other places than in ``nn.functional``, modes as
numbers, and the statistics beside the result."""

from functools import partial
from typing import Any

from ..errors import ShapeError
from ..tensor import Tensor
from .image.grid_sample import sample_steps
from .image.pad import pad as pad_tensor
from .index.embedding import embedding as rows_of
from .normalization.channels import batch_norm as batch_norm_of
from .normalization.channels import batch_norm_parts, group_norm_parts, lies_in_rows
from .normalization.channels import group_norm as group_norm_of
from .normalization.channels import instance_norm as instance_norm_of
from .normalization.moments import layer_norm as layer_norm_of
from .normalization.moments import layer_norm_parts, norm_statistics
from .random.dropout import alpha_dropout as alpha_drop
from .random.dropout import dropout as drop
from .random.dropout import feature_alpha_dropout as feature_alpha_drop
from .record.args import real_arg, size_args, tensor_arg
from .record.autocast import by_place
from .record.planned import Step, have_kernels, planned
from .record.public import public
from .reduce.moments import var_op
from .reduce.sums import mean_op


@public()
def dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """``nn.functional.dropout``, without defaults.

    >>> fw.dropout(fw.ones(2), 0.5, False)
    tensor([1., 1.])
    """
    return drop(input, p, train)


@public()
def alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """``nn.functional.alpha_dropout``, without defaults.

    >>> fw.alpha_dropout(fw.ones(2), 0.5, False)
    tensor([1., 1.])
    """
    return alpha_drop(input, p, train)


@public()
def feature_alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """``nn.functional.feature_alpha_dropout``, without defaults.

    >>> fw.feature_alpha_dropout(fw.ones(1, 2, 1), 0.5, False).flatten()
    tensor([1., 1.])
    """
    return feature_alpha_drop(input, p, train)


@public()
def dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """``nn.functional.dropout`` with ``inplace=True``.

    >>> fw.dropout_(fw.ones(2), 0.5, False)
    tensor([1., 1.])
    """
    return drop(input, p, train, inplace=True)


@public()
def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """(output, mask): each element 0 with probability ``p``, else divided by ``1 - p``; the mask: which stay.

    >>> fw.native_dropout(fw.ones(2), 0.5, False)
    (tensor([1., 1.]), tensor([True, True]))
    """
    ones = tensor_arg(input, "native_dropout").new_ones(input.shape)  # type: ignore[attr-defined]
    scale: Any = drop(ones, p, train is not False)
    return input * scale, scale != 0  # type: ignore[operator, return-value]


@public()
def embedding(weight: Tensor, indices: Tensor, padding_idx: int = -1, scale_grad_by_freq: bool = False,
              sparse: bool = False) -> Tensor:
    """``nn.functional.embedding(indices, weight)``: the table (V, D) comes first; -1 stands for no padding.

    >>> fw.embedding(fw.tensor([[1.0], [2.0]]), fw.tensor([1, 0, 1]))
    tensor([[2.],
            [1.],
            [2.]])
    """
    padding = None if padding_idx == -1 else padding_idx
    return rows_of(indices, weight, padding, None, 2.0, scale_grad_by_freq, sparse)


@public(deferred=True)
def layer_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None = None, bias: Tensor | None = None,
               eps: float = 1e-5, cudnn_enable: bool = True) -> Tensor:
    """``nn.functional.layer_norm``; ``cudnn_enable`` changes nothing here.

    >>> fw.layer_norm(fw.tensor([[1.0, 3.0]]), (2,))
    tensor([[-1.0000,  1.0000]])
    """
    return layer_norm_of(input, normalized_shape, weight, bias, eps)


@public(deferred=True)
def group_norm(input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None,
               eps: float = 1e-5, cudnn_enabled: bool = True) -> Tensor:
    """``nn.functional.group_norm``; ``cudnn_enabled`` changes nothing here.

    >>> fw.group_norm(fw.tensor([[1.0, 3.0, 5.0, 5.0]]), 2)
    tensor([[-1.0000,  1.0000,  0.0000,  0.0000]])
    """
    return group_norm_of(input, num_groups, weight, bias, eps)


@public()
def batch_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None,
               running_var: Tensor | None, training: bool, momentum: float, eps: float,
               cudnn_enabled: bool) -> Tensor:
    """``nn.functional.batch_norm`` with the weights first; ``cudnn_enabled`` changes nothing here.

    >>> fw.batch_norm(fw.tensor([[1.0], [3.0]]), None, None, None, None, True, 0.1, 0.0, False)
    tensor([[-1.],
            [ 1.]])
    """
    return batch_norm_of(input, running_mean, running_var, weight, bias, training, momentum, eps)


@public()
def instance_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None,
                  running_var: Tensor | None, use_input_stats: bool, momentum: float, eps: float,
                  cudnn_enabled: bool) -> Tensor:
    """``nn.functional.instance_norm`` with the weights first; ``cudnn_enabled`` changes nothing here.

    >>> fw.instance_norm(fw.tensor([[[1.0, 3.0]]]), None, None, None, None, True, 0.1, 0.0, False)
    tensor([[[-1.,  1.]]])
    """
    return instance_norm_of(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


def _moments(x: Any, dims: tuple[int, ...], eps: float) -> tuple[Any, Any]:
    """Mean and 1 / sqrt(var + eps), outside the graph."""
    x = x.detach()
    mean = mean_op.run(x, dims=dims, keepdim=True)
    return mean, (var_op.run(x, dims=dims, correction=0, keepdim=True) + eps).rsqrt()  # type: ignore[operator]


@public()
def native_layer_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None, bias: Tensor | None,
                      eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """(output, mean, rstd) of ``nn.functional.layer_norm``; no gradient flows through the last two.

    >>> fw.native_layer_norm(fw.tensor([[1.0, 3.0]]), (2,), None, None, 0.0)
    (tensor([[-1.,  1.]]), tensor([[2.]]), tensor([[1.]]))
    """
    if have_kernels(input, weight, bias):
        y, mean, var = layer_norm_parts(input, weight, bias, normalized_shape, eps)
        return y, *norm_statistics.run(mean, var, shape=mean.shape, eps=eps, dtype=input.dtype)
    out = layer_norm_of(input, normalized_shape, weight, bias, eps)
    last = len(size_args((normalized_shape,), "native_layer_norm", "normalized_shape"))
    return out, *_moments(input, tuple(range(input.ndim - last, input.ndim)), eps)


@public()
def native_group_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, N: int, C: int, HxW: int,
                      group: int, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """(output, mean, rstd) of ``nn.functional.group_norm``, the last two (N, group) and without gradient.

    N, C, HxW: the sizes of the input (N, C, *), whose last ones have the product HxW.

    >>> fw.native_group_norm(fw.tensor([[1.0, 3.0]]), None, None, 1, 2, 1, 1, 0.0)
    (tensor([[-1.,  1.]]), tensor([[2.]]), tensor([[1.]]))
    """
    if tensor_arg(input, "native_group_norm").numel() != N * C * HxW:
        raise ShapeError(f"native_group_norm: N={N}, C={C} and HxW={HxW} do not fit an input of shape "
                         f"{list(input.shape)}")
    if have_kernels(input, weight, bias):
        y, mean, var = group_norm_parts(input, weight, bias, group, eps)
        return y, *norm_statistics.run(mean, var, shape=(N, group), eps=eps, dtype=input.dtype)
    rows: Any = input.reshape(N, group, C * HxW // group)  # type: ignore[attr-defined]
    mean, rstd = _moments(rows, (2,), eps)
    return group_norm_of(input, group, weight, bias, eps), mean[..., 0], rstd[..., 0]


@public()
def native_batch_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None,
                      running_var: Tensor | None, training: bool, momentum: float,
                      eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """(output, mean, rstd) of ``nn.functional.batch_norm``.

    The last two (C), of the batch and without gradient, are empty unless ``training``.

    >>> fw.native_batch_norm(fw.tensor([[1.0], [3.0]]), None, None, None, None, True, 0.1, 0.0)[1:]
    (tensor([2.]), tensor([1.]))
    """
    if training and have_kernels(input, weight, bias) and lies_in_rows(input):
        y, mean, var = batch_norm_parts(input, running_mean, running_var, weight, bias, momentum, eps)
        return y, *norm_statistics.run(mean, var, shape=(input._array.shape[1],), eps=eps, dtype=input.dtype)
    if training:
        others = tuple(d for d in range(real_arg(input, "native_batch_norm").ndim) if d != 1)
        mean, rstd = [m.reshape(-1) for m in _moments(input, others, eps)]
    else:
        mean = rstd = tensor_arg(input, "native_batch_norm").new_empty((0,))  # type: ignore[attr-defined]
    return batch_norm_of(input, running_mean, running_var, weight, bias, training, momentum, eps), mean, rstd


@public()
def constant_pad_nd(input: Tensor, pad: Any, value: Any = 0) -> Tensor:
    """``nn.functional.pad`` with a number.

    >>> fw.constant_pad_nd(fw.tensor([1.0]), (1, 1), 2.0)
    tensor([2., 1., 2.])
    """
    return pad_tensor(input, list(pad), "constant", value)


_MODES, _PADDINGS = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")


def _sampled(op: str, ndim: int | None, x: Tensor, grid: Tensor, mode: int, padding: int,
             align: bool) -> list[Step]:
    if ndim is not None and tensor_arg(x, op).ndim != ndim:
        raise ShapeError(f"{op}: wanted an input of {ndim} dimensions, got shape {list(x.shape)}")
    for name, number, words in (("interpolation_mode", mode, _MODES), ("padding_mode", padding, _PADDINGS)):
        if number not in range(3):
            meanings = ", ".join(f"{i} ({word})" for i, word in enumerate(words))
            raise ValueError(f"{op}: {name} must be one of {meanings}, got {number!r}")
    return sample_steps(x, grid, _MODES[mode], _PADDINGS[padding], align)


_sample = planned(partial(_sampled, "grid_sampler", None))
_sample2 = planned(partial(_sampled, "grid_sampler_2d", 4))
_sample3 = planned(partial(_sampled, "grid_sampler_3d", 5))
_OF_SAMPLES = by_place("widest", "float32")


@public(autocast=_OF_SAMPLES)
def grid_sampler(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int,
                 align_corners: bool) -> Tensor:
    """``nn.functional.grid_sample`` with numbers for the modes: 0 bilinear, 1 nearest, 2 bicubic; beyond the
    image 0 zeros, 1 the border, 2 its reflection.

    >>> image = fw.tensor([[[[0.0, 1.0], [2.0, 3.0]]]])
    >>> fw.grid_sampler(image, fw.zeros(1, 1, 1, 2), 0, 0, True)
    tensor([[[[1.5000]]]])
    """
    return _sample(input, grid, interpolation_mode, padding_mode, align_corners)


@public(autocast=_OF_SAMPLES)
def grid_sampler_2d(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int,
                    align_corners: bool) -> Tensor:
    """``grid_sampler`` of images (n, c, h, w).

    >>> fw.grid_sampler_2d(fw.ones(1, 1, 2, 2), fw.zeros(1, 1, 1, 2), 0, 0, True)
    tensor([[[[1.]]]])
    """
    return _sample2(input, grid, interpolation_mode, padding_mode, align_corners)


@public(autocast=_OF_SAMPLES)
def grid_sampler_3d(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int,
                    align_corners: bool) -> Tensor:
    """``grid_sampler`` of volumes (n, c, d, h, w).

    >>> fw.grid_sampler_3d(fw.ones(1, 1, 2, 2, 2), fw.zeros(1, 1, 1, 1, 3), 0, 0, True)
    tensor([[[[[1.]]]]])
    """
    return _sample3(input, grid, interpolation_mode, padding_mode, align_corners)
