"""Recurrent layers on GPUs: all steps in one launch (``recurrent.cu``), products of matrices around it; or
several layers at once by cuDNN, where it is installed (``backends/cudnn_recurrent.py``)."""

from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from ...autograd.mode import state
from ...backends import cuda, cudnn_recurrent, device_code, device_launcher
from ..language.cuda import DeviceKernel
from ..language.cuda_fold import fold_of_elements
from ..linalg.contract import plain_product

_SOURCE = device_code.source(Path(__file__).with_name("recurrent.cu"), "meet.cuh", cooperative=True,
                             dtypes="fd")
_STEPS = np.dtype([(name, "i8") for name in ("batch", "size", "steps", "reverse", "units")])
_SHARED = 48 * 1024
_plus_one = DeviceKernel("x + b", ("x", "b"), lambda x, b: x + b)
_plus_two = DeviceKernel("x + b + c", ("x", "b", "c"), lambda x, b, c: x + b + c)
_starts: dict[tuple, Any] = {}


class _Layer:
    """A layer of ``gates`` gates whose steps can be one launch; ``fits`` says whether they can."""

    def __init__(self, gates: int, sizes: tuple[int, ...], reverse: bool, x: Any, h0: Any,
                 *others: Any) -> None:
        self.char = device_code.char_of(x, h0, *[a for a in others if a is not None])
        self.gates, self.sizes, self.shape, self.x = gates, sizes, h0.shape, x
        self.fits = self.char in ("f", "d") and bool(x.size and h0.size)
        if not self.fits:
            return
        (batch, size), multiprocessors = h0.shape, cuda.multiprocessors()
        units = max(1, -(-size // multiprocessors))
        while units > 1 and self._bytes(units) > _SHARED:
            units -= 1
        self.blocks, self.shared = -(-size // units), self._bytes(units)
        # all blocks have to run at once, as they wait for each other
        self.fits = self.shared <= _SHARED and self.blocks <= 2 * multiprocessors
        self.plan = np.array([(batch, size, len(sizes), reverse, units)], _STEPS)

    def _bytes(self, units: int) -> int:
        return units * self.gates * self.shape[1] * self.x.itemsize

    def starts(self) -> Any:
        """Where the rows of each step begin, on the device."""
        module = cuda.cupy()  # another stream would have to wait for the copy
        key = (module, int(module.cuda.runtime.getDevice()), module.cuda.get_current_stream().ptr, self.sizes)
        found = _starts.get(key)
        if found is None:
            found, lasts = cuda.sent(np.array([0, *accumulate(self.sizes)], np.int64))
            if lasts:
                if len(_starts) > 256:
                    _starts.clear()
                _starts[key] = found
        return found

    def launch(self, name: str, *arguments: Any) -> None:
        _SOURCE.kernel(name, self.char)(
            (self.blocks,), (device_code.THREADS,),
            (*arguments, self.starts(), self.plan, cuda.cupy().zeros(1, np.int32)), shared_mem=self.shared)

    def rows(self, width: int = 1) -> Any:
        """Memory for ``width`` numbers of each unit in each row."""
        return device_launcher.empty((len(self.x), width * self.shape[1]), self.x.dtype)

    def states(self, *count: int) -> Any:
        return device_launcher.empty((*count, *self.shape), self.x.dtype)

    def entering(self, w_ih: Any, *biases: Any) -> Any:
        """What enters the gates of all steps from outside."""
        out = plain_product(self.x, w_ih.T)
        there = [b for b in biases if b is not None]
        if there:
            (_plus_one if len(there) == 1 else _plus_two)(out, *there, out=out)
        return out

    def gradients(self, d: Any, slopes: Any, before: Any, w_ih: Any, wanted: tuple) -> tuple:
        """Those of x, then of w_ih, w_hh, b_ih, b_hh, as far as they are wanted, in this order."""
        none, width = device_launcher.empty(0, d.dtype), (d.shape[1],)
        return (plain_product(d, w_ih) if wanted[0] else none,
                plain_product(d.T, self.x) if wanted[1] else none,
                plain_product(slopes.T, before) if wanted[2] else none,
                *[fold_of_elements("sum", (0,), width, of) if want else none
                  for want, of in zip(wanted[3:], (d, slopes))])


def _rows(*arrays: Any) -> list:
    return [None if a is None else cuda.cupy().ascontiguousarray(a) for a in arrays]


def rnn(x: Any, h0: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, *, sizes: tuple[int, ...], reverse: bool,
        relu: bool) -> Any:
    """The device function of rnn."""
    layer = _Layer(1, sizes, reverse, x, h0, w_ih, w_hh, b_ih, b_hh)
    if not layer.fits:
        return NotImplemented
    y, h = layer.rows(), layer.states()
    layer.launch("rnn_relu" if relu else "rnn_tanh", y, h, layer.entering(w_ih, b_ih, b_hh), layer.states(2),
                 *_rows(w_hh, h0))
    return y, h


def rnn_grad(gy: Any, gh: Any, x: Any, h0: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, y: Any, *,
             sizes: tuple[int, ...], reverse: bool, relu: bool, wanted: tuple) -> Any:
    """The device function of its backward."""
    layer = _Layer(1, sizes, reverse, x, h0, gy, gh, w_ih, w_hh, y)
    if not layer.fits:
        return NotImplemented
    d, before, dh = layer.rows(), layer.rows(), layer.states()
    layer.launch("rnn_relu_grad" if relu else "rnn_tanh_grad", d, before, dh, *_rows(gy, gh, w_hh, h0, y))
    gx, *weights = layer.gradients(d, d, before, w_ih, (wanted[0], *wanted[2:]))
    return gx, dh, *weights


def lstm(x: Any, h0: Any, c0: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, *, sizes: tuple[int, ...],
         reverse: bool) -> Any:
    """The device function of lstm."""
    layer = _Layer(4, sizes, reverse, x, h0, c0, w_ih, w_hh, b_ih, b_hh)
    if not layer.fits:
        return NotImplemented
    gates = layer.entering(w_ih, b_ih, b_hh)
    y, cells, h, c = layer.rows(), layer.rows(), layer.states(), layer.states()
    layer.launch("lstm", y, h, c, gates, cells, layer.states(2), *_rows(w_hh, h0, c0))
    return y, h, c, gates, cells


def lstm_grad(gy: Any, gh: Any, gc: Any, x: Any, h0: Any, c0: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any,
              y: Any, gates: Any, cells: Any, *, sizes: tuple[int, ...], reverse: bool, wanted: tuple) -> Any:
    """The device function of its backward."""
    layer = _Layer(4, sizes, reverse, x, h0, gy, gh, gc, c0, w_ih, w_hh, y, gates, cells)
    if not layer.fits:
        return NotImplemented
    d, before, dh, dc = layer.rows(4), layer.rows(), layer.states(), layer.states()
    layer.launch("lstm_grad", d, before, dh, dc, *_rows(gy, gh, gc, w_hh, h0, c0, y, gates, cells))
    gx, *weights = layer.gradients(d, d, before, w_ih, (wanted[0], *wanted[3:]))
    return gx, dh, dc, *weights


def gru(x: Any, h0: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, *, sizes: tuple[int, ...],
        reverse: bool) -> Any:
    """The device function of gru."""
    layer = _Layer(3, sizes, reverse, x, h0, w_ih, w_hh, b_ih, b_hh)
    if not layer.fits:
        return NotImplemented
    y, h, gates = layer.rows(), layer.states(), layer.rows(4)
    layer.launch("gru", y, h, gates, layer.entering(w_ih, b_ih), *_rows(b_hh), layer.states(2),
                 *_rows(w_hh, h0))
    return y, h, gates


def gru_grad(gy: Any, gh: Any, x: Any, h0: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, y: Any,
             gates: Any, *, sizes: tuple[int, ...], reverse: bool, wanted: tuple) -> Any:
    """The device function of its backward."""
    layer = _Layer(3, sizes, reverse, x, h0, gy, gh, w_ih, w_hh, y, gates)
    if not layer.fits:
        return NotImplemented
    d, slopes, before, dh = layer.rows(3), layer.rows(3), layer.rows(), layer.states()
    layer.launch("gru_grad", d, slopes, before, dh, *_rows(gy, gh, w_hh, h0, y, gates))
    gx, *weights = layer.gradients(d, slopes, before, w_ih, (wanted[0], *wanted[2:]))
    return gx, dh, *weights


def stack(x: Any, h0: Any, c0: Any, weights: Any, *, stack: Any, lying: Any, sizes: tuple[int, ...],
          training: bool) -> Any:
    """The device function of recurrent_stack."""
    x, h0, c0, weights = _rows(x, h0, c0, weights)
    found = cudnn_recurrent.forward(stack, sizes, x, h0, c0, weights, training)
    return NotImplemented if found is None else found


def stack_grad(gy: Any, gh: Any, gc: Any, x: Any, h0: Any, c0: Any, weights: Any, y: Any, kept: Any, *,
               stack: Any, lying: Any, sizes: tuple[int, ...], wanted: tuple) -> tuple:
    """That of its backward."""
    module = cuda.cupy()
    gy = module.zeros_like(y) if gy is None else gy
    if state.walk is None or state.walk.retains:  # cuDNN writes into what it kept
        kept = kept.copy()
    gy, gh, gc, x, h0, c0, weights, y = _rows(gy, gh, gc, x, h0, c0, weights, y)
    found = cudnn_recurrent.backward(stack, sizes, gy, gh, gc, x, h0, c0, weights, y, kept, wanted)
    return tuple([device_launcher.empty(0, x.dtype) if a is None else a for a in found])
