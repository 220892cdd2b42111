"""Recurrent sequences: one layer in one direction, all time steps, as one record.

The rows of all steps stand in one matrix: ``sizes[t]`` rows for step t, never more than for the step before,
so that sequences of different lengths (the longest first) need no padding. Going forward the sequences end
one after the other, in reverse they join; the state of a sequence that is not there stays as it is.

Forward makes one product for the inputs of all steps, then a product with the state per step; backward goes
through the steps the other way and ends with one product for each gradient of inputs and weights. Gates are
PyTorch's: i f g o (Hochreiter and Schmidhuber 1997), r z n (Cho et al., arXiv:1406.1078).
"""

from collections.abc import Callable
from typing import Any

from ... import _native
from ...errors import ShapeError
from ..record.args import floating
from ..record.batched import call, everywhere, front_moved, looped, to_front
from ..record.op import Meta, Op
from ..record.rounded import rounded_as, widen
from ..write.twice import twice
from . import cuda_rnn
from .rnn_steps import gru_steps, lstm_steps, rnn_steps, spans


def _inputs(xp: Any, x: Any, w: Any, *biases: Any) -> Any:
    """``x w^T + biases``: what enters the gates of all steps from outside."""
    out = xp.matmul(x, w.T)
    if biases[0] is not None:
        out += sum(biases[1:], biases[0])
    return out


def _before(xp: Any, start: Any, after: Any, sizes: tuple[int, ...], reverse: bool) -> Any:
    """For each row the state that its step began with, from those with which the steps ended."""
    state, out = start.copy(), xp.empty_like(after)
    for rows, n in spans(sizes, reverse):
        out[rows] = state[:n]
        state[:n] = after[rows]
    return out


def _start(xp: Any, g: Any, like: Any) -> Any:
    """The gradient of a final state, to be changed."""
    return xp.zeros_like(like) if g is None else g.astype(like.dtype, copy=True)


def _ends(xp: Any, d: Any, dh: Any, x: Any, before: Any, w_ih: Any, wanted: tuple) -> tuple:
    """Gradients of x, w_ih, w_hh, b_ih, b_hh from those of the gates: d of what entered them from the
    inputs, dh from the state. ``wanted`` is in this order."""
    none = xp.empty(0, x.dtype)
    return (xp.matmul(d, w_ih) if wanted[0] else none,
            xp.matmul(d.T, x) if wanted[1] else none,
            xp.matmul(dh.T, before) if wanted[2] else none,
            d.sum(axis=0) if wanted[3] else none,
            dh.sum(axis=0) if wanted[4] else none)


# -- plain: h = tanh(a) or relu(a) ---------------------------------------------------------------


def _rnn_kernel(xp: Any, x: Any, h0: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, *,
                sizes: tuple[int, ...], reverse: bool, relu: bool) -> tuple:
    y = _inputs(xp, x, w_ih, b_ih, b_hh)
    h, w = h0.copy(), w_hh.T
    for rows, n in spans(sizes, reverse):
        a = y[rows]
        a += xp.matmul(h[:n], w)
        xp.maximum(a, 0, out=a) if relu else xp.tanh(a, out=a)
        h[:n] = a
    return y, h


def _rnn_grad_kernel(xp: Any, gy: Any, gh: Any, x: Any, h0: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any,
                     y: Any, *, sizes: tuple[int, ...], reverse: bool, relu: bool, wanted: tuple) -> tuple:
    d = xp.empty_like(y) if relu else 1 - y * y
    dh = _start(xp, gh, h0)
    for rows, n in spans(sizes, not reverse):
        h, a = dh[:n], d[rows]
        if gy is not None:
            h += gy[rows]
        xp.copyto(a, xp.where(y[rows] > 0, h, 0)) if relu else xp.multiply(a, h, out=a)
        h[...] = xp.matmul(a, w_hh)
    before = _before(xp, h0, y, sizes, reverse)
    gx, *weights = _ends(xp, d, d, x, before, w_ih, (wanted[0], *wanted[2:]))
    return gx, dh, *weights


# -- LSTM ----------------------------------------------------------------------------------------


def _lstm_kernel(xp: Any, x: Any, h0: Any, c0: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, *,
                 sizes: tuple[int, ...], reverse: bool) -> tuple:
    gates = _inputs(xp, x, w_ih, b_ih, b_hh)
    size = h0.shape[1]
    scale = xp.full(4 * size, 0.5, x.dtype)  # sigmoid(a) = tanh(a / 2) / 2 + 1/2: one tanh for all gates
    scale[2 * size:3 * size] = 1
    shift = 1 - scale
    h, c, w = h0.copy(), c0.copy(), w_hh.T
    y, cells = xp.empty((len(x), size), x.dtype), xp.empty((len(x), size), x.dtype)
    for rows, n in spans(sizes, reverse):
        a = gates[rows]
        a += xp.matmul(h[:n], w)
        a *= scale
        xp.tanh(a, out=a)
        a *= scale
        a += shift
        i, f, g, o = [a[:, k * size:(k + 1) * size] for k in range(4)]
        cell = xp.multiply(c[:n], f, out=cells[rows])
        cell += i * g
        c[:n] = cell
        h[:n] = xp.multiply(xp.tanh(cell), o, out=y[rows])
    return y, h, c, gates, cells


def _lstm_grad_kernel(xp: Any, gy: Any, gh: Any, gc: Any, x: Any, h0: Any, c0: Any, w_ih: Any, w_hh: Any,
                      b_ih: Any, b_hh: Any, y: Any, gates: Any, cells: Any, *, sizes: tuple[int, ...],
                      reverse: bool, wanted: tuple) -> tuple:
    size = h0.shape[1]
    i, f, g, o = [gates[:, k * size:(k + 1) * size] for k in range(4)]
    through = xp.tanh(cells)
    d = xp.empty((len(x), 4, size), x.dtype)
    xp.multiply(g, i * (1 - i), out=d[:, 0])
    xp.multiply(_before(xp, c0, cells, sizes, reverse), f * (1 - f), out=d[:, 1])
    xp.multiply(i, 1 - g * g, out=d[:, 2])
    xp.multiply(through, o * (1 - o), out=d[:, 3])
    to_cell = o * (1 - through * through)
    dh, dc = _start(xp, gh, h0), _start(xp, gc, c0)
    flat = d.reshape(len(x), 4 * size)
    for rows, n in spans(sizes, not reverse):
        h, c = dh[:n], dc[:n]
        if gy is not None:
            h += gy[rows]
        c += h * to_cell[rows]
        d[rows, :3] *= c[:, None]
        d[rows, 3] *= h
        c *= f[rows]
        h[...] = xp.matmul(flat[rows], w_hh)
    before = _before(xp, h0, y, sizes, reverse)
    gx, *weights = _ends(xp, flat, flat, x, before, w_ih, (wanted[0], *wanted[3:]))
    return gx, dh, dc, *weights


# -- GRU -----------------------------------------------------------------------------------------


def _gru_kernel(xp: Any, x: Any, h0: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, *,
                sizes: tuple[int, ...], reverse: bool) -> tuple:
    size = h0.shape[1]
    entered = _inputs(xp, x, w_ih, b_ih)
    gates = xp.empty((len(x), 4 * size), x.dtype)  # r, z, n, and what r multiplies
    y = xp.empty((len(x), size), x.dtype)
    h, w = h0.copy(), w_hh.T
    for rows, n in spans(sizes, reverse):
        a, kept = xp.matmul(h[:n], w), gates[rows]
        if b_hh is not None:
            a += b_hh
        kept[:, 3 * size:] = a[:, 2 * size:]
        rz = xp.add(entered[rows, :2 * size], a[:, :2 * size], out=kept[:, :2 * size])
        rz *= 0.5
        xp.tanh(rz, out=rz)
        rz *= 0.5
        rz += 0.5
        new = xp.multiply(rz[:, :size], kept[:, 3 * size:], out=kept[:, 2 * size:3 * size])
        new += entered[rows, 2 * size:]
        xp.tanh(new, out=new)
        out = xp.multiply(h[:n] - new, rz[:, size:], out=y[rows])
        out += new
        h[:n] = out
    return y, h, gates


def _gru_grad_kernel(xp: Any, gy: Any, gh: Any, x: Any, h0: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any,
                     y: Any, gates: Any, *, sizes: tuple[int, ...], reverse: bool, wanted: tuple) -> tuple:
    size = h0.shape[1]
    r, z, n, inner = [gates[:, k * size:(k + 1) * size] for k in range(4)]
    before = _before(xp, h0, y, sizes, reverse)
    d = xp.empty((len(x), 3, size), x.dtype)
    xp.multiply(1 - z, 1 - n * n, out=d[:, 2])
    xp.multiply(before - n, z * (1 - z), out=d[:, 1])
    xp.multiply(inner * d[:, 2], r * (1 - r), out=d[:, 0])
    to_state = d.copy()
    to_state[:, 2] *= r
    d_flat, flat = [a.reshape(len(x), 3 * size) for a in (d, to_state)]
    dh = _start(xp, gh, h0)
    for rows, count in spans(sizes, not reverse):
        h = dh[:count]
        if gy is not None:
            h += gy[rows]
        d[rows] *= h[:, None]
        to_state[rows] *= h[:, None]
        h *= z[rows]
        h += xp.matmul(flat[rows], w_hh)
    gx, *weights = _ends(xp, d_flat, flat, x, before, w_ih, (wanted[0], *wanted[2:]))
    return gx, dh, *weights


# -- records -------------------------------------------------------------------------------------


def _fit(op: str, gates: int, sizes: tuple[int, ...], x: Meta, states: tuple, w_ih: Meta, w_hh: Meta,
         *biases: Any) -> None:
    floating(x, op)
    size = states[0].shape[1]
    wanted = {"w_ih": (w_ih, (gates * size, x.shape[1])), "w_hh": (w_hh, (gates * size, size)),
              "x": (x, (sum(sizes), x.shape[1])), "h0": (states[0], (max(sizes, default=0), size)),
              "c0": (states[-1], states[0].shape)}
    wanted |= {name: (b, (gates * size,)) for name, b in zip(("b_ih", "b_hh"), biases) if b is not None}
    for name, (given, shape) in wanted.items():
        if given.shape != shape:
            raise ShapeError(f"{op}: {name} must have shape {list(shape)}, got {list(given.shape)}")
        if given.dtype is not x.dtype:
            raise ShapeError(f"{op}: {name} is {given.dtype} but the input is {x.dtype}; convert one")


def _rnn_infer(x: Meta, h0: Meta, *weights: Any, sizes: tuple[int, ...], reverse: bool, relu: bool) -> tuple:
    _fit("rnn", 1, sizes, x, (h0,), *weights)
    return Meta((x.shape[0], h0.shape[1]), x.dtype), h0


def _lstm_infer(x: Meta, h0: Meta, c0: Meta, *weights: Any, sizes: tuple[int, ...], reverse: bool) -> tuple:
    _fit("lstm", 4, sizes, x, (h0, c0), *weights)
    rows, size = x.shape[0], h0.shape[1]
    y = Meta((rows, size), x.dtype)
    return y, h0, c0, Meta((rows, 4 * size), x.dtype), y


def _gru_infer(x: Meta, h0: Meta, *weights: Any, sizes: tuple[int, ...], reverse: bool) -> tuple:
    _fit("gru", 3, sizes, x, (h0,), *weights)
    return Meta((x.shape[0], h0.shape[1]), x.dtype), h0, Meta((x.shape[0], 4 * h0.shape[1]), x.dtype)


def _grad_infer(states: int) -> Any:
    def infer(*inputs: Any, wanted: tuple, **_: Any) -> tuple:
        given = inputs[1 + states:][:5 + states]
        always = range(1, 1 + states)
        return tuple([a if w or k in always else Meta((0,), given[0].dtype)
                      for k, (a, w) in enumerate(zip(given, wanted))])
    return infer


class BySteps:
    """The rule for batches: the rows of a step are those of all examples, whose weights are shared.

    weights: where the four weights and biases stand among the inputs. Examples with weights of their own, or
    with gradients of the weights of their own, are computed one after the other.
    """

    def __init__(self, weights: int) -> None:
        self.weights = slice(weights, weights + 4)

    def on_tensors(self, batched: tuple, settings: dict) -> bool:
        return not any(batched[self.weights]) and "wanted" not in settings

    def __call__(self, op: Op, size: int, arrays: list, batched: tuple, settings: dict) -> Any:
        if any(batched[self.weights]) or any(settings.get("wanted", ())[-4:]):
            return looped(op, size, arrays, batched, settings, warn=False)
        whole = everywhere(size, arrays, batched)
        whole[self.weights] = arrays[self.weights]
        ready = [a if a is None or self.weights.start <= i < self.weights.stop else
                 front_moved(a, 1).reshape((a.shape[1] * size, *a.shape[2:])) for i, a in enumerate(whole)]
        sizes = tuple([n * size for n in settings["sizes"]])
        return tuple([out if out.ndim < 2 else to_front(out.reshape((
            out.shape[0] // size, size, *out.shape[1:])), 1)
            for out in call(op, *ready, **{**settings, "sizes": sizes})])


def _by_unit(native: str, op: Callable, rounded: int = 9) -> Callable | None:
    """What runs on bfloat16 where the CPU has a matrix unit: products of bfloat16, all else in float32.

    The first ``rounded`` results are bfloat16, what backward keeps is not.
    """
    if _native.module is None or not _native.module.has_matrix_unit():
        return None
    kernel = getattr(_native.module, native)

    def run(*arrays: Any, **settings: Any) -> tuple:
        wide = [widen(a) for a in arrays]
        found = kernel(*wide, rounded=True, **settings)
        if found is NotImplemented:
            found = op().cpu(*wide, **settings)
        return *rounded_as(found[:rounded]), *found[rounded:]
    return run


def _asked(found: Any, needs: tuple) -> list:
    return [part if need else None for part, need in zip(found, needs)]


lstm_grad = Op(
    "lstm_grad", "gy gh gc x h0 c0 w_ih w_hh b_ih b_hh y gates cells", batch=BySteps(6),
    kernel=_lstm_grad_kernel, native="lstm_grad", rounded=_by_unit("lstm_grad", lambda: lstm_grad),
    device=cuda_rnn.lstm_grad,
    outputs="gx gh0 gc0 gw_ih gw_hh gb_ih gb_hh", infer=_grad_infer(2),
    vjp=lambda k, gy, gh, gc, x, h0, c0, w_ih, w_hh, b_ih, b_hh, sizes, reverse, wanted, needs: twice(
        lstm_steps, k, (gy, gh, gc), (x, h0, c0, w_ih, w_hh, b_ih, b_hh), wanted, needs, sizes=sizes,
        reverse=reverse))
lstm_op = Op(
    "lstm", "x h0 c0 w_ih w_hh b_ih b_hh", batch=BySteps(3),
    kernel=_lstm_kernel, native="lstm", rounded=_by_unit("lstm", lambda: lstm_op, 3),
    device=cuda_rnn.lstm, outputs="y h c gates cells",
    differentiable=3, infer=_lstm_infer,
    onnx="recurrent('LSTM', x, (h0, c0), w_ih, w_hh, b_ih, b_hh, sizes, reverse, (0, 3, 1, 2))",
    runtime="recurrent('lstm', (x, h0, c0, w_ih, w_hh, b_ih, b_hh), sizes, reverse)",
    vjp=lambda g, x, h0, c0, w_ih, w_hh, b_ih, b_hh, y, gates, cells, sizes, reverse, needs: _asked(
        lstm_grad(*g, x, h0, c0, w_ih, w_hh, b_ih, b_hh, y, gates, cells, sizes=sizes, reverse=reverse,
                  wanted=needs), needs))

gru_grad = Op(
    "gru_grad", "gy gh x h0 w_ih w_hh b_ih b_hh y gates", batch=BySteps(4),
    kernel=_gru_grad_kernel, native="gru_grad", rounded=_by_unit("gru_grad", lambda: gru_grad),
    device=cuda_rnn.gru_grad,
    outputs="gx gh0 gw_ih gw_hh gb_ih gb_hh", infer=_grad_infer(1),
    vjp=lambda k, gy, gh, x, h0, w_ih, w_hh, b_ih, b_hh, sizes, reverse, wanted, needs: twice(
        gru_steps, k, (gy, gh), (x, h0, w_ih, w_hh, b_ih, b_hh), wanted, needs, sizes=sizes, reverse=reverse))
gru_op = Op(
    "gru", "x h0 w_ih w_hh b_ih b_hh", batch=BySteps(2),
    kernel=_gru_kernel, native="gru", rounded=_by_unit("gru", lambda: gru_op, 2),
    device=cuda_rnn.gru, outputs="y h gates",
    differentiable=2, infer=_gru_infer,
    onnx="recurrent('GRU', x, (h0,), w_ih, w_hh, b_ih, b_hh, sizes, reverse, (1, 0, 2), "
         "linear_before_reset=1)",
    runtime="recurrent('gru', (x, h0, w_ih, w_hh, b_ih, b_hh), sizes, reverse)",
    vjp=lambda g, x, h0, w_ih, w_hh, b_ih, b_hh, y, gates, sizes, reverse, needs: _asked(
        gru_grad(*g, x, h0, w_ih, w_hh, b_ih, b_hh, y, gates, sizes=sizes, reverse=reverse, wanted=needs),
        needs))

rnn_grad = Op(
    "rnn_grad", "gy gh x h0 w_ih w_hh b_ih b_hh y", batch=BySteps(4),
    kernel=_rnn_grad_kernel, native="rnn_grad", rounded=_by_unit("rnn_grad", lambda: rnn_grad),
    device=cuda_rnn.rnn_grad,
    outputs="gx gh0 gw_ih gw_hh gb_ih gb_hh", infer=_grad_infer(1),
    vjp=lambda k, gy, gh, x, h0, w_ih, w_hh, b_ih, b_hh, sizes, reverse, relu, wanted, needs: twice(
        rnn_steps, k, (gy, gh), (x, h0, w_ih, w_hh, b_ih, b_hh), wanted, needs, sizes=sizes, reverse=reverse,
        relu=relu))
rnn_op = Op(
    "rnn", "x h0 w_ih w_hh b_ih b_hh", batch=BySteps(2),
    kernel=_rnn_kernel, native="rnn", rounded=_by_unit("rnn", lambda: rnn_op, 2),
    device=cuda_rnn.rnn, outputs="y h", infer=_rnn_infer,
    onnx="recurrent('RNN', x, (h0,), w_ih, w_hh, b_ih, b_hh, sizes, reverse, (0,), activations=active(relu))",
    runtime="recurrent('rnn_relu' if relu else 'rnn_tanh', (x, h0, w_ih, w_hh, b_ih, b_hh), sizes, reverse)",
    vjp=lambda g, x, h0, w_ih, w_hh, b_ih, b_hh, y, sizes, reverse, relu, needs: _asked(
        rnn_grad(*g, x, h0, w_ih, w_hh, b_ih, b_hh, y, sizes=sizes, reverse=reverse, relu=relu,
                 wanted=needs), needs))
