"""Rows of ops/sequence/rnn.py: the recurrent layers, called with their parameters as inputs."""

from typing import Any

import numpy as np

from ..base import Sample, normal, row

IN, H, T, N = 2, 3, 3, 2
GATES = {"RNN": 1, "LSTM": 4, "GRU": 3}
X = normal(T, N, IN)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _step(kind: str, relu: bool, x: Any, state: list, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any,
          w_hr: Any = None) -> list:
    """The states of one sequence after a step."""
    a, b = w_ih @ x + b_ih, w_hh @ state[0] + b_hh
    if kind == "RNN":
        return [np.maximum(a + b, 0) if relu else np.tanh(a + b)]
    if kind == "GRU":
        (ar, az, an), (br, bz, bn) = np.split(a, 3), np.split(b, 3)
        z, n = sigmoid(az + bz), np.tanh(an + sigmoid(ar + br) * bn)
        return [(1 - z) * n + z * state[0]]
    i, f, g, o = np.split(a + b, 4)
    c = sigmoid(f) * state[1] + sigmoid(i) * np.tanh(g)
    h = sigmoid(o) * np.tanh(c)
    return [h if w_hr is None else w_hr @ h, c]


def _direction(kind: str, relu: bool, rows: list, start: list, weights: tuple) -> tuple:
    """Outputs and final states of one sequence."""
    state, found = start, []
    for x in rows:
        state = _step(kind, relu, x, state, *weights)
        found.append(state[0])
    return found, state


def _reference(kind: str, lengths: tuple = (T,) * N, both: bool = False, relu: bool = False,
               bias: bool = True) -> Any:
    """One sequence after the other; the results as the layer gives them, packed ones as the rows."""
    def compute(x: Any, h: Any, *others: Any) -> tuple:
        starts, weights = ([h], others) if kind != "LSTM" else ([h, others[0]], others[1:])
        per = len(weights) // (1 + both)
        ends: list = [np.zeros_like(s) for s in starts]
        y = np.zeros((*x.shape[:2], h.shape[2] * (1 + both)))
        for n, length in enumerate(lengths):
            for d in range(1 + both):
                own = weights[d * per:(d + 1) * per]
                own = own if bias else (*own[:2], np.zeros(len(own[0])), np.zeros(len(own[0])), *own[2:])
                order = range(length)[::-1 if d else 1]
                found, last = _direction(kind, relu, [x[t, n] for t in order], [s[d, n] for s in starts], own)
                for t, out in zip(order, found):
                    y[t, n, d * h.shape[2]:(d + 1) * h.shape[2]] = out
                for end, s in zip(ends, last):
                    end[d, n] = s
        rows = [y[t, n] for t in range(T) for n, length in enumerate(lengths) if t < length]
        return (y if len(set(lengths)) == 1 else np.array(rows), *ends)
    return compute


def _sample(label: str, kind: str, lengths: tuple = (T,) * N, both: bool = False, bias: bool = True,
            proj: int = 0, **settings: Any) -> Sample:
    out = proj or H
    shapes = {"weight_ih_l0": (GATES[kind] * H, IN), "weight_hh_l0": (GATES[kind] * H, out)}
    shapes |= {"bias_ih_l0": (GATES[kind] * H,), "bias_hh_l0": (GATES[kind] * H,)} if bias else {}
    shapes |= {"weight_hr_l0": (proj, H)} if proj else {}
    shapes |= {f"{name}_reverse": shape for name, shape in shapes.items()} if both else {}
    states = [normal(1 + both, N, out, seed=1), normal(1 + both, N, H, seed=2)][:2 if kind == "LSTM" else 1]
    given = {"bidirectional": both, "bias": bias, **({"proj_size": proj} if proj else {}), **settings}

    def call(M: Any, x: Any, *others: Any) -> tuple:
        layer = getattr(M.nn, kind)(IN, H, **given).to(x.dtype)
        hx = others[0] if kind != "LSTM" else others[:2]
        packed = len(set(lengths)) > 1
        if packed:
            x = M.nn.utils.rnn.pack_padded_sequence(x, list(lengths))
        y, ends = M.func.functional_call(layer, dict(zip(shapes, others[len(states):])), (x, hx))
        return (y.data if packed else y, *(ends if kind == "LSTM" else (ends,)))
    weights = [normal(*shape, seed=3 + k) for k, shape in enumerate(shapes.values())]
    return Sample(label, call, (X, *states, *weights),
                  _reference(kind, lengths, both, settings.get("nonlinearity") == "relu", bias),
                  noncontiguous=not both)


def _samples(kind: str) -> list[Sample]:
    return [_sample("one direction", kind), _sample("both directions", kind, both=True),
            _sample("packed", kind, lengths=(3, 1)), _sample("packed, both", kind, lengths=(3, 2), both=True),
            _sample("no bias", kind, bias=False)]


def _wrong(kind: str) -> list:
    return [("features", lambda M: getattr(M.nn, kind)(2, 3)(M.ones(3, 2, 4)), ValueError, "input_size=2"),
            ("state", lambda M: getattr(M.nn, kind)(2, 3)(M.ones(3, 2, 2), M.ones(1, 3)),
             (TypeError, ValueError), "hx")]


row("RNN", *_samples("RNN"), _sample("relu", "RNN", nonlinearity="relu"), namespace="nn",
    errors=_wrong("RNN"))
row("LSTM", *_samples("LSTM"), _sample("projected", "LSTM", proj=2), namespace="nn", errors=_wrong("LSTM"))
row("GRU", *_samples("GRU"), namespace="nn", errors=_wrong("GRU"))
