"""LSTM, GRU and RNN: by the layers of this package where these compute the same, else step by step."""

from collections.abc import Callable
from typing import Any

import framework as fw
from framework import Tensor
from framework.ops.sequence.rnn import gru_op, lstm_op, rnn_op

from .table import ints, op

F = fw.nn.functional


def _activation(name: str, alpha: Any, beta: Any) -> Callable:
    a, b = alpha, beta
    return {"sigmoid": fw.sigmoid, "tanh": fw.tanh, "relu": fw.relu, "softsign": F.softsign,
            "softplus": F.softplus,
            "affine": lambda x: (1.0 if a is None else a) * x + (0.0 if b is None else b),
            "leakyrelu": lambda x: F.leaky_relu(x, 0.01 if a is None else a),
            "elu": lambda x: F.elu(x, 1.0 if a is None else a),
            "thresholdedrelu": lambda x: fw.where(x >= (1.0 if a is None else a), x, 0.0),
            "scaledtanh": lambda x: a * fw.tanh(b * x),
            "hardsigmoid": lambda x: fw.clamp((0.2 if a is None else a) * x + (0.5 if b is None else b), 0,
                                              1),
            }[name.lower()]


def _regrouped(w: Tensor, order: tuple) -> Tensor:
    """ONNX's gates in our order."""
    parts = w.chunk(len(order), 0)
    return fw.cat([parts[i] for i in order], 0)


class _Layer:
    """What one direction is: weights, state, and how a step goes."""

    def __init__(self, kind: str, gates: int, w: Tensor, r: Tensor, b: Any, activations: list,
                 clip: Any) -> None:
        self.kind, self.w, self.r = kind, w, r
        hidden = r.shape[-1]
        none = fw.zeros(gates * hidden, dtype=w.dtype)
        self.wb: Tensor
        self.rb: Tensor
        self.wb, self.rb = (none, none) if b is None else (b[:gates * hidden], b[gates * hidden:])
        self.activations, self.clip, self.hidden = activations, clip, hidden

    def limited(self, x: Tensor) -> Tensor:
        return x if self.clip is None else fw.clamp(x, -self.clip, self.clip)


def _run(layer: _Layer, x: Tensor, states: tuple, lengths: Any, reverse: bool,
         step: Callable) -> tuple[Tensor, tuple]:
    """All steps: the outputs and the last states. Behind its length a sequence gives 0 and keeps its
    state.
    """
    steps = range(x.shape[0] - 1, -1, -1) if reverse else range(x.shape[0])
    found: list[Any] = [None] * x.shape[0]
    for t in steps:
        new = step(layer, x[t], states)
        if lengths is not None:
            alive = (lengths > t).reshape(-1, 1)
            new = tuple(fw.where(alive, a, b) for a, b in zip(new, states))
            found[t] = fw.where(alive, new[0], 0.0)
        else:
            found[t] = new[0]
        states = new
    return fw.stack(found), states


def _recurrent(name: str, gates: int, defaults: list[str], step: Callable, quick: Callable) -> None:
    many = 2 if name == "LSTM" else 1

    def recurrent(x: Tensor, w: Tensor, r: Tensor, b: Any = None, lengths: Any = None, h0: Any = None,
                  c0: Any = None, p: Any = None, *, hidden_size: Any = None, direction: str = "forward",
                  activations: Any = None, activation_alpha: Any = None, activation_beta: Any = None,
                  clip: Any = None, layout: int = 0,
                  linear_before_reset: int = 0, input_forget: int = 0, output_sequence: int = 0,
                  outputs: int = 1) -> Any:
        if layout:
            x = x.transpose(0, 1)
            h0, c0 = [None if s is None else s.transpose(0, 1) for s in (h0, c0)]
        directions = w.shape[0]
        names = activations or defaults * directions
        plain = [n.lower() for n in names] == [n.lower() for n in defaults] * directions
        alphas, betas = list(activation_alpha or []), list(activation_beta or [])
        each = len(defaults)
        batch, hidden = x.shape[1], r.shape[-1]
        if lengths is not None and all(n == x.shape[0] for n in ints(lengths)):
            lengths = None
        ys, lasts = [], []
        for d in range(directions):
            functions = [_activation(n, alphas[d * each + i] if d * each + i < len(alphas) else None,
                                     betas[d * each + i] if d * each + i < len(betas) else None)
                         for i, n in enumerate(names[d * each:(d + 1) * each])]
            layer = _Layer(name, gates, w[d], r[d], None if b is None else b[d], functions, clip)
            layer.peep = None if p is None else p[d].chunk(3)  # type: ignore[attr-defined]
            layer.before = linear_before_reset  # type: ignore[attr-defined]
            layer.coupled = input_forget  # type: ignore[attr-defined]
            states = tuple(fw.zeros(batch, hidden, dtype=x.dtype) if s is None else s[d] for s in (h0,
                                                                                                   c0)[:many])
            reverse = direction == "reverse" or d == 1
            simple = plain and clip is None and p is None and lengths is None and not input_forget
            if simple and x.shape[0] and not (name == "GRU" and not linear_before_reset):
                y, last = quick(layer, x, states, reverse)
            else:
                y, last = _run(layer, x, states, lengths, reverse, step)
            ys.append(y)
            lasts.append(last)
        y = fw.stack(ys, 1)
        last = [fw.stack([s[i] for s in lasts]) for i in range(many)]
        if layout:
            y = y.permute(2, 0, 1, 3)
            last = [s.transpose(0, 1) for s in last]
        return y if outputs == 1 else (y, *last)[:outputs]
    recurrent.__name__ = name.lower()
    op(name)(recurrent)


def _quick(record: Any, order: tuple, **settings: Any) -> Callable:
    def quick(layer: _Layer, x: Tensor, states: tuple, reverse: bool) -> tuple[Tensor, tuple]:
        steps, batch = x.shape[:2]
        weights = [_regrouped(a, order) for a in (layer.w, layer.r, layer.wb, layer.rb)]
        y, *last = record.run(x.reshape(steps * batch, -1), *states, *weights, sizes=(batch,) * steps,
                              reverse=reverse,
                              **settings)
        return y.reshape(steps, batch, -1), tuple(last[:len(states)])
    return quick


def _lstm_step(layer: Any, x: Tensor, states: tuple) -> tuple:
    h, c = states
    f, g, k = layer.activations
    i_, o_, f_, c_ = (F.linear(x, layer.w, layer.wb) + F.linear(h, layer.r, layer.rb)).chunk(4, 1)
    pi, po, pf = layer.peep or (0.0, 0.0, 0.0)
    i = f(layer.limited(i_ + pi * c))
    forget = 1 - i if layer.coupled else f(layer.limited(f_ + pf * c))
    new = forget * c + i * g(layer.limited(c_))
    o = f(layer.limited(o_ + po * new))
    return o * k(new), new


def _gru_step(layer: Any, x: Tensor, states: tuple) -> tuple:
    h, = states
    f, g = layer.activations
    n = layer.hidden
    entered = F.linear(x, layer.w, layer.wb)
    z, r = f(layer.limited(entered[:, :2 * n] + F.linear(h, layer.r[:2 * n], layer.rb[:2 * n]))).chunk(2, 1)
    if layer.before:
        rest = r * F.linear(h, layer.r[2 * n:], layer.rb[2 * n:])
    else:
        rest = F.linear(r * h, layer.r[2 * n:], layer.rb[2 * n:])
    new = g(layer.limited(entered[:, 2 * n:] + rest))
    return ((1 - z) * new + z * h,)


def _rnn_step(layer: Any, x: Tensor, states: tuple) -> tuple:
    f, = layer.activations
    return (f(layer.limited(F.linear(x, layer.w, layer.wb) + F.linear(states[0], layer.r, layer.rb))),)


_recurrent("LSTM", 4, ["Sigmoid", "Tanh", "Tanh"], _lstm_step, _quick(lstm_op, (0, 2, 3, 1)))
_recurrent("GRU", 3, ["Sigmoid", "Tanh"], _gru_step, _quick(gru_op, (1, 0, 2)))
_recurrent("RNN", 1, ["Tanh"], _rnn_step, _quick(rnn_op, (0,), relu=False))
