"""Losses by margins on GPUs (``margins.cu``): one kernel forward and one back, and no wait for the device.

A target that is no class is told at the next wait for the device.
"""

from pathlib import Path
from typing import Any

import numpy as np

from ...backends import cuda, device_code, device_flags, device_launcher
from ..reduce.sums import mean_op, sum_op

_SOURCE = device_code.source(Path(__file__).with_name("margins.cu"), dtypes="fd")
_NAMES = ("rows", "classes", "places", "squares", "single")
_MARGINS = np.dtype([*((name, "i8") for name in _NAMES), ("margin", "f8")])
_WRONG = ": a target is class {value}, but there are {size} classes (0 to {last})"
_TARGETS = [device_flags.site(op + _WRONG) for op in ("multilabel_margin_loss", "multi_margin_loss")]


def _given(x: Any, target: Any, p: int, margin: float, single: bool) -> Any:
    """(letter, room for marks, scores, targets, plan); None for what is left to formulas."""
    char, module = device_code.char_of(x), cuda.cupy()
    if char not in ("f", "d") or not x.size or not target.size:
        return None
    classes = x.shape[-1] if x.ndim else 1
    rows = x.size // classes
    plan = np.array([(rows, classes, target.size // rows, p == 2, single, margin)], _MARGINS)
    return (char, device_launcher.empty(x.shape, np.uint8), module.ascontiguousarray(x),
            module.ascontiguousarray(target.astype(np.int64, copy=False)), plan)


def _launched(name: str, char: str, plan: Any, *arguments: Any) -> None:
    threads = min(256, max(32, 1 << int(plan["classes"][0] - 1).bit_length()))
    _SOURCE.kernel(name, char)((device_code.blocks(int(plan["rows"][0]), 1),), (threads,), arguments)


def margin_loss(x: Any, target: Any, *, p: int, margin: float, single: bool, reduction: str) -> Any:
    """The device function of margin_loss."""
    found = _given(x, target, p, margin, single)
    if found is None:
        return NotImplemented
    char, wanted, x, target, plan = found
    losses = device_launcher.empty(x.shape[:-1], x.dtype)
    _launched("margin_losses", char, plan, losses, wanted, x, target, plan, device_flags.memory(),
              _TARGETS[single])
    if reduction == "none" or x.ndim < 2:
        return losses
    return (mean_op if reduction == "mean" else sum_op)(losses, dims=(0,), keepdim=False)


def margin_loss_grad(g: Any, x: Any, target: Any, *, p: int, margin: float, single: bool,
                     reduction: str) -> Any:
    """The device function of its backward."""
    found = _given(x, target, p, margin, single)
    if found is None or device_code.char_of(g) != found[0]:
        return NotImplemented
    char, wanted, x, target, plan = found
    module = cuda.cupy()
    out = device_launcher.empty(x.shape, x.dtype)
    by_row = reduction == "none" and x.ndim == 2
    _launched("margin_grads", char, plan, out, wanted, module.ascontiguousarray(g), x, target, plan,
              int(by_row), float(x.shape[0] if reduction == "mean" and x.ndim == 2 else 1))
    return out
