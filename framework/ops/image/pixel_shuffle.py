"""Channels moved into pixels, and back; groups of channels mixed."""

from typing import Any

from ...errors import ShapeError
from ...tensor import Tensor
from ..convert.cast import clone
from ..record.args import tensor_arg
from ..record.planned import Step, planned
from ..record.public import public
from ..shape.view import rearranged


def _factor(factor: Any, op: str, name: str) -> int:
    if isinstance(factor, bool) or not hasattr(factor, "__index__") or factor < 1:
        raise ValueError(f"{op}: {name} must be a positive int, got {factor!r}")
    return int(factor)


@planned
def _into_pixels(input: Tensor, upscale_factor: int) -> list[Step]:
    r = _factor(upscale_factor, "pixel_shuffle", "upscale_factor")
    if tensor_arg(input, "pixel_shuffle").ndim < 3 or input.shape[-3] % (r * r):
        raise ShapeError(f"pixel_shuffle: wanted input (*, c * {r * r}, h, w), got shape {list(input.shape)}")
    *lead, c, h, w = input.shape
    n = len(lead)
    if r == 1:
        return [(clone, 1, {})]
    return rearranged(input, (*lead, c // (r * r), r, r, h, w), (*range(n), n, n + 3, n + 1, n + 4, n + 2),
                      (*lead, c // (r * r), h * r, w * r))


@planned
def _into_channels(input: Tensor, downscale_factor: int) -> list[Step]:
    r = _factor(downscale_factor, "pixel_unshuffle", "downscale_factor")
    if tensor_arg(input, "pixel_unshuffle").ndim < 3 or input.shape[-1] % r or input.shape[-2] % r:
        raise ShapeError(f"pixel_unshuffle: wanted input (*, c, h * {r}, w * {r}), got shape "
                         f"{list(input.shape)}")
    *lead, c, h, w = input.shape
    n = len(lead)
    if r == 1:
        return [(clone, 1, {})]
    return rearranged(input, (*lead, c, h // r, r, w // r, r), (*range(n), n, n + 2, n + 4, n + 1, n + 3),
                      (*lead, c * r * r, h // r, w // r))


@planned
def _in_turn(input: Tensor, groups: int) -> list[Step]:
    g = _factor(groups, "channel_shuffle", "groups")
    if tensor_arg(input, "channel_shuffle").ndim < 3 or input.shape[1] % g:
        raise ShapeError(f"channel_shuffle: wanted input (n, c, *) with c divisible by {g}, got shape "
                         f"{list(input.shape)}")
    n, c, *rest = input.shape
    if not 1 < g < c:
        return [(clone, 1, {})]
    return rearranged(input, (n, g, c // g, *rest), (0, 2, 1, *range(3, input.ndim + 1)), input.shape)


@public("nn.functional", deferred=True)
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Channels spread over pixels: (*, c * r * r, h, w) -> (*, c, h * r, w * r).

    W. Shi et al., "Real-Time Single Image and Video Super-Resolution", 2016. Raises ShapeError where
    the channels are not divisible by r * r.

    >>> fw.nn.functional.pixel_shuffle(fw.arange(4.0).reshape(1, 4, 1, 1), 2)[0, 0]
    tensor([[0., 1.],
            [2., 3.]])
    """
    return _into_pixels(input, upscale_factor)


@public("nn.functional", deferred=True)
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Pixels gathered into channels: (*, c, h * r, w * r) -> (*, c * r * r, h, w).

    The reverse of ``pixel_shuffle``. Raises ShapeError where the sizes are not divisible by r.

    >>> fw.nn.functional.pixel_unshuffle(fw.ones(1, 1, 2, 4), 2).shape
    (1, 4, 1, 2)
    """
    return _into_channels(input, downscale_factor)


@public("nn.functional", deferred=True)
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Channels of ``groups`` groups taken in turn, one of each: (n, c, *) -> (n, c, *).

    X. Zhang et al., "ShuffleNet", 2017. Raises ShapeError where c is not divisible by groups.

    >>> fw.nn.functional.channel_shuffle(fw.arange(4.0).reshape(1, 4, 1), 2).flatten()
    tensor([0., 2., 1., 3.])
    """
    return _in_turn(input, groups)
