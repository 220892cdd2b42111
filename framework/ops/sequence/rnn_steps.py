"""Recurrent sequences step by step, out of other ops: for second derivatives, and LSTMs with projections."""

from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import Any

from ..linalg.matmul import linear
from ..pointwise.activations import relu as relu_of
from ..pointwise.elementary import sigmoid, tanh
from ..shape.join import cat
from ..shape.split import chunk


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
