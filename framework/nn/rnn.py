"""Recurrent layers over whole sequences: RNN, LSTM, GRU. Their cells: ``rnn_cell``."""

import math
import warnings
from itertools import product
from typing import Any

from .. import dtypes
from ..creation import empty, zeros
from ..errors import DTypeError, ShapeError, kind_of
from ..ops.record.autocast import recurrent, run_lowered
from ..ops.sequence import stacked
from ..ops.sequence.rnn import gru_op, lstm_op, rnn_op
from ..ops.sequence.rnn_steps import lstm_steps
from ..ops.shape.join import cat, stack
from ..tensor import Tensor
from . import functional as F
from . import init
from .module import Module
from .parameter import Parameter
from .utils.rnn import PackedSequence

GATES = {"RNN_TANH": 1, "RNN_RELU": 1, "LSTM": 4, "GRU": 3}
RECORDS = {"RNN_TANH": (rnn_op, {"relu": False}), "RNN_RELU": (rnn_op, {"relu": True}), "LSTM": (lstm_op, {}),
           "GRU": (gru_op, {})}


def run_sequence(mode: str, inputs: tuple, sizes: tuple[int, ...], reverse: bool) -> tuple:
    """One direction of one layer: the record of a kind of layer, of the input, the states and the weights."""
    op, settings = RECORDS[mode]
    return run_lowered(op, *inputs, sizes=sizes, reverse=reverse, **settings)


def positive_sizes(name: str, **sizes: Any) -> None:
    """Raise unless the sizes of a layer are positive ints."""
    for argument, value in sizes.items():
        if type(value) is not int:
            raise TypeError(f"{name}: {argument}={value!r} must be an int")
        if value <= 0:
            raise ValueError(f"{name}: {argument}={value} must be positive")


def draw_uniform(module: Module, size: int) -> None:
    """All parameters uniform in [-1/sqrt(size), 1/sqrt(size))."""
    bound = 1.0 / math.sqrt(size)
    for p in module.parameters():
        init.uniform_(p, -bound, bound)


class RNNBase(Module):
    """What recurrent layers share; ``RNN``, ``LSTM`` and ``GRU`` are the layers.

    Of each layer l and direction (the second one ends in ``_reverse``) there are weight_ih_l (gates * H, in),
    weight_hh_l (gates * H, H), bias_ih_l and bias_hh_l (gates * H); all start as U(-1/sqrt(H), 1/sqrt(H)).
    """

    def __init__(self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
                 batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False,
                 proj_size: int = 0, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        name = type(self).__name__
        positive_sizes(name, input_size=input_size, hidden_size=hidden_size, num_layers=num_layers)
        for what, value in (("bias", bias), ("batch_first", batch_first)):
            if not isinstance(value, bool):
                raise TypeError(f"{name}: {what} must be a bool, got {type(value).__name__}")
        if isinstance(dropout, bool) or not 0 <= dropout <= 1:
            raise ValueError(f"{name}: dropout={dropout!r} is a probability, it must be in [0, 1]")
        if not 0 <= proj_size < hidden_size:
            raise ValueError(f"{name}: proj_size={proj_size} must be in [0, hidden_size={hidden_size})")
        if dropout and num_layers == 1:
            warnings.warn(f"{name}: dropout={dropout} acts between layers, and there is only one; set "
                          f"num_layers to 2 or more, or dropout to 0", UserWarning, stacklevel=3)
        self.mode, self.input_size, self.hidden_size = mode, input_size, hidden_size
        self.num_layers, self.bias, self.batch_first = num_layers, bias, batch_first
        self.dropout, self.bidirectional, self.proj_size = float(dropout), bidirectional, proj_size
        self._all_weights: list[list[str]] = []
        for layer, end in product(range(num_layers), self._directions()):
            named = {f"{key}_l{layer}{end}": shape for key, shape in self._shapes(layer).items()}
            for key, shape in named.items():
                setattr(self, key, Parameter(empty(shape, device=device, dtype=dtype)))
            self._all_weights.append(list(named))
        self.reset_parameters()

    def _shapes(self, layer: int) -> dict[str, tuple[int, ...]]:
        """The shapes of one direction's parameters, by the beginnings of their names."""
        rows, out = GATES[self.mode] * self.hidden_size, self.proj_size or self.hidden_size
        width = out * len(self._directions()) if layer else self.input_size
        shapes: dict[str, tuple[int, ...]] = {"weight_ih": (rows, width), "weight_hh": (rows, out)}
        if self.bias:
            shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
        if self.proj_size:
            shapes["weight_hr"] = (self.proj_size, self.hidden_size)
        return shapes

    def _directions(self) -> tuple[str, ...]:
        return ("", "_reverse") if self.bidirectional else ("",)

    def reset_parameters(self) -> None:
        """Draw all parameters anew: U(-1/sqrt(hidden_size), 1/sqrt(hidden_size))."""
        draw_uniform(self, self.hidden_size)

    def flatten_parameters(self) -> None:
        """Nothing: the kernels take the parameters where they are."""

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def extra_repr(self) -> str:
        """The sizes, and the settings that are not the usual ones."""
        usual = {"proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False, "dropout": 0,
                 "bidirectional": False}
        own = [f"{k}={getattr(self, k)}" for k, default in usual.items() if getattr(self, k) != default]
        return ", ".join([str(self.input_size), str(self.hidden_size), *own])

    # -- forward ---------------------------------------------------------------------------------

    @recurrent
    def forward(self, input: Any, hx: Any = None) -> tuple:
        """``(output, state)``; see the class."""
        if isinstance(input, PackedSequence):
            return self._of_packed(input, hx)
        self._check_input(input, (2, 3))
        x: Any = input
        batched, turned = x.ndim == 3, self.batch_first and x.ndim == 3
        if not batched:
            x = x.unsqueeze(1)
        if turned:
            x = x.transpose(0, 1)
        steps, n, width = x.shape
        if not steps:
            raise ShapeError(f"{self._get_name()}: input of shape {list(input.shape)} has length 0; wanted "
                             f"at least one step")
        states = None if hx is None else self._states(hx, n, x, batched)
        y, ends = self._layers(x.reshape(steps * n, width), states, (n,) * steps)
        y = y.reshape(steps, n, y.shape[1])
        if turned:
            y = y.transpose(0, 1)
        if batched:
            return y, self._given_out(ends)
        return y.squeeze(1), self._given_out([s.squeeze(1) for s in ends])

    def _of_packed(self, input: PackedSequence, hx: Any) -> tuple:
        data, sizes, order, back = input
        self._check_input(data, (2,))
        counts = tuple(sizes.tolist())  # type: ignore[attr-defined]
        states = None if hx is None else self._states(hx, counts[0], data, True, order)
        y, ends = self._layers(data, states, counts)
        if back is not None:
            ends = [s.index_select(1, back) for s in ends]
        return PackedSequence(y, sizes, order, back), self._given_out(ends)

    def _check_input(self, x: Any, ndims: tuple[int, ...]) -> None:
        name, weight = self._get_name(), getattr(self, self._all_weights[0][0])
        if not isinstance(x, Tensor):
            raise TypeError(f"{name}: input must be a Tensor or a PackedSequence, got {kind_of(x)}")
        if x.ndim not in ndims:
            form = "batch, length" if self.batch_first else "length, batch"
            raise ShapeError(f"{name}: input must be ({form}, features), or (length, features) without a "
                             f"batch, got shape {list(x.shape)}")
        if x.shape[-1] != self.input_size:
            raise ShapeError(f"{name}: input of shape {list(x.shape)} has {x.shape[-1]} features, wanted "
                             f"input_size={self.input_size}")
        if x.dtype is not weight.dtype:
            raise DTypeError(f"{name}: input is {x.dtype} but the parameters are {weight.dtype}; convert one "
                             f"with .to(dtype)")

    def _state_names(self) -> tuple[str, ...]:
        return ("hx",)

    def _given_out(self, ends: list) -> Any:
        return ends[0]

    def _states(self, hx: Any, n: int, x: Any, batched: bool, order: Any = None) -> list[list[Tensor]]:
        """For each kind of state that was given its tensors (n, size), one per layer and direction."""
        count, names = len(self._all_weights), self._state_names()
        sizes = (self.proj_size or self.hidden_size, self.hidden_size)
        given, layer = (hx,) if len(names) == 1 else hx, self._get_name()
        if not isinstance(given, (tuple, list)) or len(given) != len(names):
            raise TypeError(f"{layer}: hx must be a pair ({', '.join(names)}), got {type(hx).__name__}")
        found = []
        for name, s, size in zip(names, given, sizes):
            wanted = (count, n, size) if batched else (count, size)
            if not isinstance(s, Tensor):
                raise TypeError(f"{layer}: {name} must be a Tensor, got {kind_of(s)}")
            if s.shape != wanted:
                raise ShapeError(f"{layer}: {name} must have shape {list(wanted)} (layers times directions"
                                 f"{', batch' * batched}, size), got {list(s.shape)}")
            if s.dtype is not x.dtype:
                raise DTypeError(f"{layer}: {name} is {s.dtype} but the input is {x.dtype}; convert one with "
                                 f".to(dtype)")
            if order is not None:
                s = s.index_select(1, order)  # type: ignore[attr-defined]
            found.append(list(s.reshape(count, n, size).unbind()))  # type: ignore[attr-defined]
        return found

    def _zeros(self, n: int, x: Any) -> list[list[Tensor]]:
        """The same where none are given."""
        sizes, count = (self.proj_size or self.hidden_size, self.hidden_size), len(self._all_weights)
        return [[zeros(n, size, dtype=x.dtype, device=x.device)] * count
                for _, size in zip(self._state_names(), sizes)]

    def _layers(self, x: Any, states: list[list[Tensor]] | None,
                sizes: tuple[int, ...]) -> tuple[Any, list]:
        """The rows of the last layer's outputs, and the final states (layers * directions, n, size).

        The first states are zeros where none are given.
        """
        ends: list = []
        directions, on_gpu = len(self._directions()), not dtypes.plain and x.is_cuda
        drops = bool(self.dropout) and self.training and self.num_layers > 1
        if on_gpu and not drops:
            found = self._at_once(x, states, sizes, range(len(self._all_weights)))
            if found is not None:
                return found
        starts = states or self._zeros(sizes[0], x)
        for layer in range(self.num_layers):
            if layer and self.dropout:
                x = F.dropout(x, self.dropout, self.training)
            places = range(layer * directions, (layer + 1) * directions)
            if on_gpu and drops and (found := self._at_once(x, states, sizes, places)) is not None:
                x, kinds = found
                ends += zip(*[kind.unbind() for kind in kinds])
                continue
            outs = []
            for k in places:
                y, *last = self._sequence(x, [s[k] for s in starts], self._all_weights[k], sizes,
                                          k % directions == 1)
                outs.append(y)
                ends.append(last)
            x = y if directions == 1 else cat(outs, 1)
        return x, [stack(kind) for kind in zip(*ends)]

    def _at_once(self, x: Any, states: list[list[Tensor]] | None, sizes: tuple[int, ...],
                 places: range) -> tuple[Any, list] | None:
        """The same of some layers' directions, by cuDNN; None where it is not there or declines."""
        own = self.__dict__
        weights = [own[name] for k in places for name in self._all_weights[k]]
        starts: list = [stack([s[k] for k in places]) for s in states or ()]
        return run_lowered(stacked, x, *starts, *[None] * (2 - len(starts)), *weights, mode=self.mode,
                           layers=len(places) // len(self._directions()),
                           directions=len(self._directions()), hidden=self.hidden_size,
                           outputs=self.proj_size or self.hidden_size, sizes=sizes)

    def _sequence(self, x: Any, states: list, names: list[str], sizes: tuple[int, ...],
                  reverse: bool) -> tuple:
        own = self.__dict__
        weights = [own[name] for name in names]
        if not self.bias:
            weights[2:2] = [None, None]
        if self.proj_size:
            return lstm_steps(x, *states, *weights, sizes=sizes, reverse=reverse)
        return run_sequence(self.mode, (x, *states, *weights), sizes, reverse)[:1 + len(states)]


class RNN(RNNBase):
    """``h_t = tanh(w_ih x_t + b_ih + w_hh h_(t-1) + b_hh)`` over a sequence; ``(output, h_n)``.

    input (L, N, input_size), with ``batch_first`` (N, L, input_size), without a batch (L, input_size), or a
    PackedSequence; hx (layers * directions, N, H), by default 0. output (L, N, directions * H): the last
    layer's h_t, both directions' side by side; h_n: as hx. nonlinearity "tanh" or "relu"; dropout between
    layers, in training. Floating dtypes. Raises ShapeError, DTypeError, TypeError or ValueError (Elman 1990).

    >>> y, h = fw.nn.RNN(3, 4, num_layers=2)(fw.ones(5, 2, 3))
    >>> y.shape, h.shape
    ((5, 2, 4), (2, 2, 4))
    """

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, nonlinearity: str = "tanh",
                 bias: bool = True, batch_first: bool = False, dropout: float = 0.0,
                 bidirectional: bool = False, device: Any = None, dtype: Any = None) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"RNN: nonlinearity={nonlinearity!r} must be 'tanh' or 'relu'")
        super().__init__(f"RNN_{nonlinearity.upper()}", input_size, hidden_size, num_layers, bias,
                         batch_first, dropout, bidirectional, device=device, dtype=dtype)
        self.nonlinearity = nonlinearity


class LSTM(RNNBase):
    """``c_t = f * c_(t-1) + i * g, h_t = o * tanh(c_t)`` over a sequence; ``(output, (h_n, c_n))``.

    i, f, o = sigmoid and g = tanh of the four parts of ``w_ih x_t + b_ih + w_hh h_(t-1) + b_hh``. Shapes and
    errors: as ``RNN``; hx is a pair (h_0, c_0). proj_size: h_t times weight_hr (proj_size, H), so that h and
    the output have that size (Hochreiter and Schmidhuber 1997; arXiv:1402.1128).

    >>> y, (h, c) = fw.nn.LSTM(3, 4, bidirectional=True)(fw.ones(5, 2, 3))
    >>> y.shape, h.shape, c.shape
    ((5, 2, 8), (2, 2, 4), (2, 2, 4))
    """

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
                 batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False,
                 proj_size: int = 0, device: Any = None, dtype: Any = None) -> None:
        super().__init__("LSTM", input_size, hidden_size, num_layers, bias, batch_first, dropout,
                         bidirectional, proj_size, device, dtype)

    def _state_names(self) -> tuple[str, ...]:
        return "h_0", "c_0"

    def _given_out(self, ends: list) -> Any:
        return tuple(ends)


class GRU(RNNBase):
    """``h_t = (1 - z) * n + z * h_(t-1)`` over a sequence; ``(output, h_n)``.

    With a = w_ih x_t + b_ih and b = w_hh h_(t-1) + b_hh in three parts: r = sigmoid(a_r + b_r),
    z = sigmoid(a_z + b_z), n = tanh(a_n + r * b_n). Shapes and errors: as ``RNN`` (arXiv:1406.1078).

    >>> y, h = fw.nn.GRU(3, 4, batch_first=True)(fw.ones(2, 5, 3))
    >>> y.shape, h.shape
    ((2, 5, 4), (1, 2, 4))
    """

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
                 batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False,
                 device: Any = None, dtype: Any = None) -> None:
        super().__init__("GRU", input_size, hidden_size, num_layers, bias, batch_first, dropout,
                         bidirectional, device=device, dtype=dtype)
