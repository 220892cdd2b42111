"""Recurrent sequences step by step, out of other ops: their second derivative, and LSTMs with projections."""

from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import Any

from ...autograd.engine import grad
from ...autograd.mode import enable_grad
from ...tensor import Tensor, as_tensor, wrap
from ..linalg.matmul import linear
from ..pointwise.activations import relu as relu_of
from ..pointwise.elementary import sigmoid, tanh
from ..shape.join import cat
from ..shape.split import chunk
from ..shape.view import reshape_op
from ..write.inplace import zero_op


def spans(sizes: tuple[int, ...], reverse: bool) -> Iterator[tuple[slice, int]]:
    """The rows of each step and how many they are, in the order of the recurrence."""
    starts = [0, *accumulate(sizes)]
    steps = range(len(sizes))
    for t in reversed(steps) if reverse else steps:
        yield slice(starts[t], starts[t + 1]), sizes[t]


def _walk(cell: Callable, entered: Any, states: list, sizes: tuple[int, ...], reverse: bool) -> tuple:
    """``cell(rows, *states)`` gives the states after a step; the first of them is the step's output."""
    found = []
    for rows, n in spans(sizes, reverse):
        whole = n == states[0].shape[0]
        new = cell(entered[rows], *[s if whole else s[:n] for s in states])
        found.append(new[0])
        states = [a if whole else cat((a, s[n:])) for a, s in zip(new, states)]
    return cat(found[::-1] if reverse else found), *states


def rnn_steps(x: Any, h0: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, *, sizes: tuple[int, ...],
              reverse: bool, relu: bool) -> tuple:
    """The outputs of the record ``rnn`` that carry a gradient."""
    act: Callable = relu_of if relu else tanh

    def cell(a: Any, h: Any) -> tuple:
        return (act(a + linear(h, w_hh, b_hh)),)
    return _walk(cell, linear(x, w_ih, b_ih), [h0], sizes, reverse)


def lstm_steps(x: Any, h0: Any, c0: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, w_hr: Any = None, *,
               sizes: tuple[int, ...], reverse: bool) -> tuple:
    """The outputs of the record ``lstm`` that carry a gradient; w_hr projects the state (arXiv:1402.1128)."""
    def cell(a: Any, h: Any, c: Any) -> tuple:
        i, f, g, o = chunk(a + linear(h, w_hh, b_hh), 4, 1)
        c = sigmoid(f) * c + sigmoid(i) * tanh(g)
        h = sigmoid(o) * tanh(c)
        return h if w_hr is None else linear(h, w_hr), c
    return _walk(cell, linear(x, w_ih, b_ih), [h0, c0], sizes, reverse)


def gru_steps(x: Any, h0: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, *, sizes: tuple[int, ...],
              reverse: bool) -> tuple:
    """The outputs of the record ``gru`` that carry a gradient."""
    def cell(a: Any, h: Any) -> tuple:
        (ar, az, an), (hr, hz, hn) = chunk(a, 3, 1), chunk(linear(h, w_hh, b_hh), 3, 1)
        z = sigmoid(az + hz)
        n = tanh(an + sigmoid(ar + hr) * hn)
        return (n + z * (h - n),)
    return _walk(cell, linear(x, w_ih, b_ih), [h0], sizes, reverse)


# -- the derivative of backward ------------------------------------------------------------------


def _variable(x: Any) -> Any:
    """A place of its own for a value, on top of where it stands in the graph."""
    if not isinstance(x, Tensor) or x._node is None:
        return None if x is None else wrap(as_tensor(x)._array).requires_grad_()  # type: ignore[attr-defined]
    if x.requires_grad:
        return reshape_op.run(x, shape=x.shape)
    return x + zero_op.run(x).requires_grad_()  # it has tangents


def twice(steps: Callable, k: list, gs: tuple, inputs: tuple, wanted: tuple, needs: tuple,
          **settings: Any) -> list:
    """The derivative of a sequence's backward: of what takes the gradients ``gs`` of the outputs, and the
    inputs, to the gradients of the ``wanted`` inputs, whose cotangents are ``k``.

    The steps anew, differentiated twice; None for what backward was given besides, which follows from the
    inputs.
    """
    asked = [i for i, a in enumerate(k) if a is not None and wanted[i]]
    live = any(isinstance(a, Tensor) for a in (*k, *gs, *inputs))
    with enable_grad():
        seeds, variables = [_variable(g) for g in gs], [_variable(a) for a in inputs]
        outs = steps(*variables, **settings)
        pairs = [(y, g) for y, g in zip(outs, seeds) if g is not None]
        firsts = grad([y for y, _ in pairs], [variables[i] for i in asked], [g for _, g in pairs],
                      create_graph=True, allow_unused=True)
    ends = [(f, as_tensor(k[i])) for f, i in zip(firsts, asked) if f is not None and f.requires_grad]
    places = [*seeds, *variables]
    leading = [i for i, need in enumerate(needs[:len(places)]) if need]
    out: list = [None] * len(needs)
    if ends and leading:
        found = grad([f for f, _ in ends], [places[i] for i in leading], [a for _, a in ends],
                     create_graph=live, allow_unused=True)
        for i, g in zip(leading, found):
            out[i] = g if live or g is None else g._array
    return out
