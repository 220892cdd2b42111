"""Products, attention, recurrent layers, normalisation, activations and losses in ONNX."""

import math
from typing import Any

import numpy as np

from ... import dtypes
from ..graph import Edge, Graph, Unsupported
from ..sizes import Extent, Repeated, Varies
from .reductions import reduced, shaped
from .words import where


def linear(g: Graph, x: Edge, w: Edge, b: Any) -> Edge:
    """``x w^T + b``: Gemm for matrices, else MatMul with the weight turned (a constant to a runtime)."""
    if x.ndim == 2:
        return g.emit("Gemm", (x, w, b), {"transB": 1})
    out = g.emit("MatMul", (x, g.emit("Transpose", (w,), {"perm": [1, 0]})))
    return out if b is None else out + b


def attention(g: Graph, q: Edge, k: Edge, v: Edge, mask: Any, causal: bool, scale: float, p: float) -> tuple:
    """(the attention, None): softmax(scale q k^T + mask) v."""
    if isinstance(scale, Varies):
        raise Unsupported("attention whose scale depends on the size of a dynamic axis")
    last = list(range(k.ndim))
    last[-1], last[-2] = last[-2], last[-1]
    scores = g.emit("MatMul", (q * scale, g.emit("Transpose", (k,), {"perm": last})))
    if causal:
        rows, columns = [g.emit("Range", (g.number(0), g.number(n), g.number(1)), dtype=dtypes.int64)
                         for n in (q.shape[-2], k.shape[-2])]
        scores = where(g, g.emit("Unsqueeze", (rows, g.ints([1]))) >= columns, scores, -math.inf)
    elif mask is not None and mask.dtype is dtypes.bool_:
        scores = where(g, mask, scores, -math.inf)
    elif mask is not None:
        scores = scores + mask
    weights = g.emit("Softmax", (scores,), {"axis": -1})
    if mask is not None:  # rows that may attend to nothing give 0
        weights = where(g, g.emit("IsNaN", (weights,)), 0.0, weights)
    if p:
        weights = dropped(g, weights, p)
    return g.emit("MatMul", (weights, v)), None


def dropped(g: Graph, x: Edge, p: float) -> Edge:
    if p >= 1:
        return x * 0.0
    return g.emit("Dropout", (x, g.constant(p, dtypes.float32), g.constant(True, dtypes.bool_)))


def recurrent(g: Graph, kind: str, x: Edge, states: tuple, w_ih: Edge, w_hh: Edge, b_ih: Any, b_hh: Any,
              sizes: Any,
              reverse: bool, order: tuple, **attributes: Any) -> tuple:
    """(y, last states...): LSTM, GRU and RNN. order: which of our gates each of ONNX's is."""
    steps = sizes.count if isinstance(sizes, Repeated) else len(sizes)
    item = sizes.item if isinstance(sizes, Repeated) else sizes[0]
    batch, hidden = states[0].shape
    if not isinstance(sizes, Repeated) and any(n != item for n in sizes) or item != batch:
        raise Unsupported("packed sequences of several lengths")
    first: Any = -1 if isinstance(steps, Extent) else steps
    rows = g.emit("Reshape", (x, g.sizes([first, batch, x.shape[1]])))

    def turned(w: Any) -> Any:
        if order == tuple(range(len(order))):
            return w
        parts = [g.emit("Slice",
                        (w, g.ints([k * hidden]), g.ints([(k + 1) * hidden]), g.ints([0]))) for k in order]
        return g.emit("Concat", parts, {"axis": 0})

    def lead(w: Any) -> Any:
        return g.emit("Unsqueeze", (w, g.ints([0])))
    bias = None
    if b_ih is not None:
        bias = lead(g.emit("Concat", (turned(b_ih), turned(b_hh)), {"axis": 0}))
    inputs = (rows, lead(turned(w_ih)), lead(turned(w_hh)), bias, None, *[lead(s) for s in states])
    attributes = {"hidden_size": hidden, "direction": "reverse" if reverse else "forward", **attributes}
    y, *last = g.emit(kind, inputs, attributes, 1 + len(states))
    y = g.emit("Reshape", (y, g.ints([-1, hidden])))
    return y, *[g.emit("Squeeze", (s, g.ints([0]))) for s in last]


def normed(g: Graph, x: Edge, weight: Any, bias: Any, dims: tuple, per: tuple, eps: float) -> tuple:
    """Layer, group and instance normalisation: (y, None, None)."""
    trailing = tuple(dims) == tuple(range(x.ndim - len(dims), x.ndim))
    if trailing and len(per) == len(dims) and not any(isinstance(n, Extent) for n in per):
        weight = weight if weight is not None else g.constant(np.ones(per), x.dtype)
        return g.emit("LayerNormalization", (x, weight, bias),
                      {"axis": -len(dims), "epsilon": eps}), None, None
    if trailing and dims[0] == 2 and x.ndim >= 3 and not isinstance(x.shape[1],
                                                                    Extent):
        ones, zeros = [g.constant(np.full(x.shape[1], n), x.dtype) for n in (1.0, 0.0)]
        image = x if x.ndim <= 5 else g.emit("Reshape", (x, g.ints([0, 0, -1])))
        y = g.emit("InstanceNormalization", (image, ones, zeros), {"epsilon": eps})
        if image is not x:
            y = g.emit("Reshape", (y, g.sizes(x.shape)))
    else:
        centred = shaped(x - reduced(g, "ReduceMean", x, dims, True), x.shape)
        var = reduced(g, "ReduceMean", shaped(centred * centred, x.shape), dims, True)
        y = centred / g.emit("Sqrt", (var + eps,))
    for w, op in ((weight, "Mul"), (bias, "Add")):
        if w is not None:
            y = g.emit(op, (y, g.emit("Reshape", (w, g.sizes(per)))))
    return y, None, None


def rms_normed(g: Graph, x: Edge, weight: Any, dims: tuple, per: tuple, eps: float) -> tuple:
    square = reduced(g, "ReduceMean", shaped(x * x, x.shape), dims, True)
    y = x / g.emit("Sqrt", (square + eps,))
    return (y if weight is None else y * g.emit("Reshape", (weight, g.sizes(per)))), None


def batch_normed(g: Graph, x: Edge, mean: Edge, var: Edge, weight: Any, bias: Any, eps: float) -> Edge:
    channels = mean.shape
    weight = g.constant(np.ones(channels), x.dtype) if weight is None else weight
    bias = g.constant(np.zeros(channels), x.dtype) if bias is None else bias
    return g.emit("BatchNormalization", (x, weight, bias, mean, var), {"epsilon": eps})


def unit(g: Graph, x: Edge, dim: int, eps: float) -> Edge:
    size = reduced(g, "ReduceL2", x, (dim,), True)
    return x / g.operator("Max")(size, eps)


def relu(g: Graph, x: Edge) -> Edge:
    return g.emit("Relu", (x,)) if x.dtype.is_floating_point else g.emit("Max", (x, g.like(0, x)))


def losses(g: Graph, x: Edge, target: Edge, weight: Any, ignore: int, smoothing: float,
           reduction: str) -> tuple:
    if smoothing:
        raise Unsupported("cross_entropy with label_smoothing")
    return g.emit("SoftmaxCrossEntropyLoss", (x, target, weight),
                  {"ignore_index": ignore, "reduction": reduction}), None, None


def gelu(g: Graph, x: Edge, approximate: str) -> Edge:
    """Gelu is an operator from opset 20 on; before, its formula."""
    if g.opset >= 20:
        return g.emit("Gelu", (x,), {"approximate": approximate})
    if approximate == "tanh":
        return 0.5 * x * (1 + g.emit("Tanh", (0.7978845608028654 * (x + 0.044715 * (x * x * x)),)))
    return 0.5 * x * (1 + g.emit("Erf", (x * 0.7071067811865476,)))


def mish(g: Graph, x: Edge) -> Edge:
    return g.emit("Mish", (x,)) if g.opset >= 18 else x * g.emit("Tanh", (g.emit("Softplus", (x,)),))


def softplus(g: Graph, x: Edge, beta: float) -> Edge:
    return g.emit("Softplus", (x,)) if beta == 1 else g.emit("Softplus", (x * beta,)) / beta


def elu(g: Graph, x: Edge, alpha: float, scale: float, rate: float) -> Edge:
    """elu, selu (scale) and celu (rate)."""
    if rate == 1 and scale == 1:
        return g.emit("Elu", (x,), {"alpha": alpha})
    if rate == 1:
        return g.emit("Selu", (x,), {"alpha": alpha, "gamma": scale})
    return g.emit("Celu", (x,), {"alpha": alpha}) if scale == 1 else g.emit("Elu", (x * rate,),
                                                                            {"alpha": alpha}) * scale


def active(g: Graph, relu: bool) -> list[str]:
    return ["Relu" if relu else "Tanh"]
