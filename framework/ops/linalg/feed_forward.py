"""Two linear layers with relu or the approximate gelu between them, as one call on GPUs in training.

Backward, the slope of the activation and the gradient of the first bias come with the product that leads to
them, so that nothing as wide as the hidden layer is read or written besides. Where cuBLASLt has no plan for
that, callers call layer by layer.
"""

import math
from typing import Any

from ...autograd.mode import state
from ...backends.device_code import is_device_array
from ...dtypes import uint8
from ...quiet import quiet
from ...tensor import Tensor
from ..pointwise.activations import _gelu_tanh as gelu_op
from ..pointwise.activations import _relu as relu_function
from ..record import autocast
from ..record.declining import Declining
from ..record.meta import Meta
from ..record.road import NEVER, Declined
from ..shape.broadcast import sum_to
from . import cuda
from .cublas import bytes_of_bits
from .matmul import _linear_w, linear_op, matmul_op

_ACTIVE = {"relu": relu_function.op, "gelu": gelu_op}


def _pull(g: Any, x: Any, w1: Any, b1: Any, w2: Any, hidden: Any, kept: Any, b1_shape: tuple, b2_shape: tuple,
          active: str, needs: tuple) -> list:
    op, found = _ACTIVE[active], NotImplemented
    if isinstance(g, Tensor):  # to be recorded: the hidden layer anew, at its place in the graph
        before = linear_op.run(x, w1, b1)
        hidden = op.run(before)
    else:
        before = kept
        found = cuda.hidden_gradients(g, w2, kept, active=active, biased=needs[2])
    grads: list = [None, None, None, None, None]
    if any(needs[:3]):
        if found is NotImplemented:
            read = hidden if active == "relu" else before.reshape(hidden.shape)
            rule = op.rules[0]
            d = rule.on(g)(matmul_op(g, w2), read)
            total = sum_to(d, size=b1_shape) if needs[2] else None
        else:
            d, total = found
        grads[:3] = (matmul_op(d, w1) if needs[0] else None, _linear_w(d, x) if needs[1] else None, total)
    if needs[3] and needs[4] and is_device_array(g):
        both = cuda.linear_gradients(g, hidden)
        if both is not NotImplemented:
            return [*grads[:3], *both]
    return [*grads[:3], _linear_w(g, hidden) if needs[3] else None,
            sum_to(g, size=b2_shape) if needs[4] else None]


def _infer(x: Meta, w1: Meta, b1: Meta | None, w2: Meta, b2: Meta | None, *, active: str) -> tuple:
    hidden = linear_op.infer(x, w1, b1)
    rows, columns = math.prod(x.shape[:-1]), w1.shape[0]
    kept = Meta((rows, bytes_of_bits(columns)), uint8) if active == "relu" else Meta((rows, columns), x.dtype)
    return linear_op.infer(hidden, w2, b2), hidden, kept


feed_forward_op = Declining(
    "feed_forward", "x w1 b1 w2 b2", kernel=lambda xp, *arrays, **settings: NotImplemented,
    device=cuda.feed_forward, outputs="y hidden kept", differentiable=1, loose_from=NEVER, vjp=_pull,
    infer=_infer)


def feed_forward(x: Tensor, w1: Tensor, b1: Tensor | None, w2: Tensor, b2: Tensor | None,
                 active: str) -> Tensor | None:
    """``linear(active(linear(x, w1, b1)), w2, b2)`` where it is recorded, on a GPU; None for all else.

    active: "relu" or "gelu", the approximate one.
    """
    given = [t for t in (w1, b1, w2, b2, x) if t is not None]  # the input last: it may be put off
    if state.enabled is not True or quiet.run is None and not quiet.whole \
            or not all(is_device_array(t._array) for t in given) or all(t._node is None for t in given):
        return None
    if autocast.used and (choose := autocast.thread.choose) is not None:
        return choose("lower", feed_forward, (x, w1, b1, w2, b2), {"active": active})
    try:
        return feed_forward_op.run(x, w1, b1, w2, b2, active=active)[0]
    except Declined:
        return None
