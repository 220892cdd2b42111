"""One step of a recurrent layer: RNNCell, LSTMCell, GRUCell."""

from typing import Any

from ..creation import empty, zeros
from ..errors import DTypeError, ShapeError, kind_of
from ..ops.record.autocast import recurrent, run_lowered
from ..ops.sequence.rnn import gru_op, lstm_op, rnn_op
from ..tensor import Tensor
from .module import Module
from .parameter import Parameter
from .rnn import draw_uniform, positive_sizes


class RNNCellBase(Module):
    """What the cells share: weight_ih (gates * H, in), weight_hh (gates * H, H), bias_ih, bias_hh."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Any = None,
                 dtype: Any = None) -> None:
        super().__init__()
        positive_sizes(type(self).__name__, input_size=input_size, hidden_size=hidden_size)
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        rows = num_chunks * hidden_size
        self.weight_ih = Parameter(empty((rows, input_size), device=device, dtype=dtype))
        self.weight_hh = Parameter(empty((rows, hidden_size), device=device, dtype=dtype))
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(
                name, Parameter(empty(rows, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all parameters anew: U(-1/sqrt(hidden_size), 1/sqrt(hidden_size))."""
        draw_uniform(self, self.hidden_size)

    def extra_repr(self) -> str:
        """The sizes, and the settings that are not the usual ones."""
        usual = {"bias": True, "nonlinearity": "tanh"}
        own = [f"{k}={v}" for k, default in usual.items() if (v := getattr(self, k, default)) != default]
        return ", ".join([str(self.input_size), str(self.hidden_size), *own])

    def _step(self, kind: str, input: Any, states: tuple | None, names: tuple[str, ...],
              **settings: Any) -> tuple:
        """The states after the record of this kind ran one step."""
        if states is None:
            x = _fitting(type(self).__name__, input, self.input_size)
            states = (zeros(*x.shape[:-1], self.hidden_size, dtype=x.dtype, device=x.device),) * len(names)
        return cell_step(type(self).__name__, kind, input, states, names, self.weight_ih, self.weight_hh,
                         self.bias_ih, self.bias_hh, self.input_size, self.hidden_size, **settings)


def cell_step(cell: str, kind: str, input: Any, states: tuple, names: tuple[str, ...], w_ih: Tensor,
              w_hh: Tensor, b_ih: Tensor | None, b_hh: Tensor | None, input_size: int, hidden_size: int,
              **settings: Any) -> tuple:
    """The states of a cell after one step: a function of tensors, which a compiled function may put off."""
    x = _fitting(cell, input, input_size)
    alone = x.ndim == 1
    wanted = (*x.shape[:-1], hidden_size)
    dtype = w_ih._array.dtype
    for name, s in zip(("input", *names), (x, *states)):
        if s is not x and (not isinstance(s, Tensor) or s._array.shape != wanted):
            raise _wrong(cell, s, name, hidden_size, wanted)
        if s._array.dtype != dtype:
            raise DTypeError(f"{cell}: {name} is {s.dtype} but the parameters are "
                             f"{w_ih.dtype}; convert one with .to(dtype)")
    if alone:
        x, states = x.unsqueeze(0), tuple([s.unsqueeze(0) for s in states])
    y, _, *rest = run_lowered(_RECORDS[kind], x, *states, w_ih, w_hh, b_ih, b_hh, sizes=(x.shape[0],),
                              reverse=False, **settings)
    found = (y, *rest[:len(names) - 1])
    return tuple([s.squeeze(0) for s in found]) if alone else found


_RECORDS = {"rnn": rnn_op, "lstm": lstm_op, "gru": gru_op}


def _fitting(cell: str, input: Any, size: int) -> Any:
    if not isinstance(input, Tensor) or input.ndim not in (1, 2) or input.shape[-1] != size:
        raise _wrong(cell, input, "input", size)
    return input


def _wrong(cell: str, given: Any, name: str, size: int, wanted: tuple | None = None) -> Exception:
    if not isinstance(given, Tensor):
        return TypeError(f"{cell}: {name} must be a Tensor, got {kind_of(given)}")
    form = f"[batch, {size}] or [{size}]" if wanted is None else f"{list(wanted)} to fit the input"
    return ShapeError(f"{cell}: {name} must have shape {form}, got {list(given.shape)}")


class RNNCell(RNNCellBase):
    """``h' = tanh(w_ih x + b_ih + w_hh h + b_hh)``, or relu; input (N, in) or (in), hx and h' (N, H) or (H).

    hx: by default 0. Floating dtypes. Raises ShapeError, DTypeError, TypeError or ValueError.

    >>> fw.nn.RNNCell(3, 4)(fw.ones(2, 3)).shape
    (2, 4)
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh",
                 device: Any = None, dtype: Any = None) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"RNNCell: nonlinearity={nonlinearity!r} must be 'tanh' or 'relu'")
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    @recurrent
    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """The new state."""
        states = None if hx is None else (hx,)
        return self._step("rnn", input, states, ("hx",), relu=self.nonlinearity == "relu")[0]


class LSTMCell(RNNCellBase):
    """One step of an LSTM: ``(h', c')``; input (N, in) or (in), hx a pair (h, c) of (N, H) or (H).

    The formula is that of ``LSTM``; hx: by default 0. Floating dtypes. Raises ShapeError, DTypeError or
    TypeError.

    >>> h, c = fw.nn.LSTMCell(3, 4)(fw.ones(2, 3))
    >>> h.shape, c.shape
    ((2, 4), (2, 4))
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None,
                 dtype: Any = None) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    @recurrent
    def forward(self, input: Tensor, hx: Any = None) -> tuple[Tensor, Tensor]:
        """The new states."""
        if hx is not None and (not isinstance(hx, (tuple, list)) or len(hx) != 2):
            raise TypeError(f"LSTMCell: hx must be a pair (h, c), got {type(hx).__name__}")
        h, c = self._step("lstm", input, None if hx is None else tuple(hx), ("h", "c"))
        return h, c


class GRUCell(RNNCellBase):
    """One step of a GRU: the new h; input (N, in) or (in), hx and the result (N, H) or (H).

    The formula is that of ``GRU``; hx: by default 0. Floating dtypes. Raises ShapeError, DTypeError or
    TypeError.

    >>> fw.nn.GRUCell(3, 4)(fw.ones(3)).shape
    (4,)
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None,
                 dtype: Any = None) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    @recurrent
    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """The new state."""
        return self._step("gru", input, None if hx is None else (hx,), ("hx",))[0]
