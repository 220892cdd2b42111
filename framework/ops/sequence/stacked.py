"""Recurrent layers on top of each other, in both directions, as one record: what cuDNN computes in one call.

Their parameters lie in one vector, as cuDNN wants it. There is no kernel of our own for this record: where
cuDNN declines, layers are computed one by one (``rnn.py``).
"""

import math
from functools import partial
from typing import Any

from ...autograd.mode import FORWARD, state
from ...backends import cudnn_recurrent, device_code
from ...backends.cudnn_recurrent import Stack, Weights
from ...dtypes import uint8
from ...quiet import quiet
from ...tensor import Tensor
from ..record.declining import Declining
from ..record.meta import Meta
from ..record.road import Declined
from ..shape.join import cat, cat_op
from ..shape.view import take_shape
from ..write.twice import twice
from . import cuda_rnn
from .rnn_steps import gru_steps, lstm_steps, rnn_steps

_STEPS: dict[str, Any] = {"LSTM": lstm_steps, "GRU": gru_steps, "RNN_TANH": partial(rnn_steps, relu=False),
          "RNN_RELU": partial(rnn_steps, relu=True)}


def _pieces(stack: Stack, lying: Weights) -> list[tuple[int, int, int, tuple[int, ...]]]:
    """Where each parameter begins, of which layer and direction it is, the how-manieth, and its shape."""
    return [(start, place, i, shape) for place, starts in enumerate(lying.starts)
            for i, (start, shape) in enumerate(zip(starts, stack.shapes(place)))]


def _in_one(stack: Stack, lying: Weights, weights: tuple) -> Tensor:
    """The parameters as one vector; each layer's and direction's follow each other in ``weights``."""
    each, parts, end = len(lying.starts[0]), [], 0
    for start, place, i, shape in sorted(_pieces(stack, lying)):
        if start > end:
            parts.append(weights[0].new_zeros(start - end))
        parts.append(take_shape(weights[place * each + i], (math.prod(shape),)))
        end = start + math.prod(shape)
    if lying.size > end:
        parts.append(weights[0].new_zeros(lying.size - end))
    return cat_op.run(*parts, dim=0)


def stack_steps(x: Any, h0: Any, c0: Any, weights: Any, *, stack: Stack, lying: Weights,
                sizes: tuple[int, ...]) -> tuple:
    """The outputs of the record that carry a gradient, out of other ops."""
    shared: list[list] = [[] for _ in range(stack.states)]
    for start, place, _, shape in _pieces(stack, lying):
        shared[place].append(weights[start:start + math.prod(shape)].reshape(shape))
    kinds = (h0, stack.outputs), *(((c0, stack.hidden),) if stack.mode == "LSTM" else ())
    ends: list[list] = [[] for _ in kinds]
    for place, own in enumerate(shared):
        if place % stack.directions == 0:
            entered, found = x, []
        if not stack.biased:
            own[2:2] = [None, None]
        states = [x.new_zeros(sizes[0], size) if start is None else start[place] for start, size in kinds]
        y, *last = _STEPS[stack.mode](entered, *states, *own, sizes=sizes,
                                      reverse=place % stack.directions == 1)
        found.append(y)
        for end, s in zip(ends, last):
            end.append(take_shape(s, (1, *s.shape)))
        x = y if stack.directions == 1 else cat(found, 1) if len(found) == stack.directions else x
    return (x, *map(cat, ends), *[None] * (2 - len(ends)))


def _elsewhere(xp: Any, *arrays: Any, **settings: Any) -> Any:
    return NotImplemented


def _infer(x: Meta, h0: Any, c0: Any, weights: Meta, *, stack: Stack, lying: Weights, sizes: tuple[int, ...],
           training: bool) -> tuple:
    """Shapes of rows and final states. What is kept for backward has a size that cuDNN alone tells."""
    y = Meta((x.shape[0], stack.outputs * stack.directions), x.dtype)
    h = Meta((stack.states, sizes[0], stack.outputs), x.dtype)
    c = Meta((stack.states, sizes[0], stack.hidden) if stack.mode == "LSTM" else (0,), x.dtype)
    return y, h, c, None if training else Meta((0,), uint8)


def _grad_infer(gy: Any, gh: Any, gc: Any, x: Meta, h0: Any, c0: Any, weights: Meta, y: Meta, kept: Any, *,
                stack: Stack, lying: Weights, sizes: tuple[int, ...], wanted: tuple) -> tuple:
    none = Meta((0,), x.dtype)
    states = _infer(x, h0, c0, weights, stack=stack, lying=lying, sizes=sizes, training=False)[1:3]
    return x, *[s if want else none for s, want in zip((*states, weights), wanted[1:])]


stack_grad = Declining(
    "recurrent_stack_grad", "gy gh gc x h0 c0 weights y kept", kernel=_elsewhere,
    device=cuda_rnn.stack_grad, outputs="gx gh0 gc0 gweights", infer=_grad_infer,
    vjp=lambda k, gy, gh, gc, x, h0, c0, weights, stack, lying, sizes, wanted, needs: twice(
        stack_steps, k, (gy, gh, gc), (x, h0, c0, weights), wanted, needs, stack=stack, lying=lying,
        sizes=sizes))
stack_op = Declining(
    "recurrent_stack", "x h0 c0 weights", kernel=_elsewhere, device=cuda_rnn.stack, outputs="y h c kept",
    differentiable=3, infer=_infer,
    vjp=lambda g, x, h0, c0, weights, y, kept, stack, lying, sizes, training, needs: [
        part if need else None for part, need in zip(stack_grad(
            *g, x, h0, c0, weights, y, kept, stack=stack, lying=lying, sizes=sizes, wanted=needs), needs)])


def run(x: Tensor, h0: Tensor | None, c0: Tensor | None, *weights: Tensor, mode: str, layers: int,
        directions: int, hidden: int, outputs: int, sizes: tuple[int, ...]) -> tuple | None:
    """(rows of the last layer, final states) of layers whose parameters stand one after the other; None where
    layers are to be computed one by one.

    ``h0`` and ``c0``: (layers * directions, n, size), or None for zeros.
    """
    given = [t for t in (x, h0, c0, *weights) if t is not None]
    if state.enabled is FORWARD or quiet.run is None and not quiet.whole or not x._array.size \
            or not all(device_code.is_device_array(t._array) for t in given):
        return None
    stack = Stack(mode, device_code.char_of(*[t._array for t in given]), x.shape[1], hidden, outputs, layers,
                  directions, len(weights) > (2 + (hidden != outputs)) * layers * directions)
    with x._array.device:
        lying = cudnn_recurrent.weights_of(stack)
    if lying is None:
        return None
    training = bool(state.enabled) and any(t._node is not None for t in given)
    try:
        y, h, c, _ = stack_op.run(x, h0, c0, _in_one(stack, lying, weights), stack=stack, lying=lying,
                                  sizes=sizes, training=training)
    except Declined:
        return None
    return y, [h, c] if mode == "LSTM" else [h]
