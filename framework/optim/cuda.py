"""Steps of optimizers on GPUs: one launch for all parameters of a dtype, however many (``kernels.cu``).

The kernel finds parameters, gradients and states by a table of addresses on the device, which is sent again
only when an address has changed; memory that comes from a pool mostly is the same at each step.
"""

from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..backends import cuda, device_code, device_launcher, tensor_lists
from ..memory_formats import dense_axes
from . import cuda_adafactor, cuda_muon

_SOURCE = device_code.source(Path(__file__).with_name("kernels.cu"), tensor_lists.HEADER)
_MOST = 24
_NUMBERS = np.dtype([("at", "f8", (_MOST,)), ("there", "u8")])
_GRADIENT, _DENOMINATOR, _MOMENTS = "maximize weight_decay", "eps eps_inside", "shrink b1 rest1 b2 rest2"
_ORDER = {  # what ``at`` is, by name of the kernel
    "sgd_step": f"{_GRADIENT} lr momentum has_momentum share first dampened nesterov",
    "adam_step": f"{_GRADIENT} {_DENOMINATOR} correction root_correction corrected lr shrink b1 rest1 b2 "
    "rest2 decoupled amsgrad",
    "rmsprop_step": f"{_GRADIENT} {_DENOMINATOR} lr alpha rest momentum centered has_momentum",
    "adagrad_step": f"{_GRADIENT} {_DENOMINATOR} lr",
    "adadelta_step": f"{_GRADIENT} lr rho rest eps",
    "adamax_step": f"{_GRADIENT} lr b1 rest1 b2 eps",
    "nadam_step": f"{_GRADIENT} {_MOMENTS} correction eps by_gradient by_mean",
    "radam_step": f"{_GRADIENT} {_MOMENTS} eps lr rectified",
    "rprop_step": "maximize shorter longer least most",
    "asgd_step": f"{_GRADIENT} shrink lr share",
    "adafactor_step": cuda_adafactor.NUMBERS,
    "muon_step": cuda_muon.NUMBERS,
    "lion_step": "maximize shrink lr b1 rest1 b2 rest2",
}


def takes(function: str) -> bool:
    """Whether there is a kernel for a step of this name."""
    return function in _ORDER


def _fits(tensors: list[Any]) -> str:
    """The letter of the dtype of tensors that a kernel can take; "" of others."""
    first = tensors[0]
    shape, strides, dtype = first.shape, first.strides, first.dtype
    for a in tensors:
        if a.dtype is not dtype or a.strides != strides or a.shape != shape:
            break
    else:  # nearly always: lying alike
        char = device_code.letter(dtype) if device_code.enabled else ""
        whole = first.flags.c_contiguous or dense_axes(first) is not None
        return char if whole and char in device_code.FLOATS else ""
    char = device_code.char_of(*tensors)
    alike = all(a.shape == first.shape and a.strides == first.strides for a in tensors) \
        or all(a.shape == first.shape and a.flags.c_contiguous for a in tensors)
    return char if alike and char in device_code.FLOATS and dense_axes(first) is not None else ""


def _as_parameter(tensors: list[Any]) -> list[Any]:
    """The tensors with a gradient that lies as its parameter does, copied where it lay another way."""
    parameter, gradient, *states = tensors
    same = gradient.strides == parameter.strides
    same = same or gradient.flags.c_contiguous and parameter.flags.c_contiguous
    if same or gradient.shape != parameter.shape or dense_axes(parameter) is None:
        return tensors
    with parameter.device:
        laid = cuda.cupy().empty_like(parameter, dtype=gradient.dtype)
        laid[...] = gradient
    return [parameter, laid, *states]


def _said(names: list[str], parts: list[dict[str, float]], again: Callable[[], list] | None) -> list[Any]:
    """Numbers as kernels take them, for each of ``parts``; again: gives the parts of the next replay."""
    made = []
    for part in parts:
        values = np.zeros(1, _NUMBERS)
        values["at"][0, : len(names)] = [part[n] for n in names]
        made.append(values)
    if again is not None:
        def said() -> np.ndarray:
            return np.array([part[n] for part in again() for n in names], np.float64)
        at = cuda.capture_here().words().address_of(said, len(parts) * len(names))
        for i, values in enumerate(made):
            values["there"] = at + 8 * i * len(names)
    return made


def _numbers(plan: Any, names: list[str], again: Callable[[], Any] | None) -> tuple[Any, Any]:
    """The numbers of a step, and what has to live until it is launched."""
    if plan.rate is None:
        return _said(names, [plan.numbers], None if again is None else lambda: [again().numbers])[0], None

    def parts(of: Any) -> list[dict[str, float]]:
        return [of.numbers, of.slopes]
    start, slopes = _said(names, parts(plan), None if again is None else lambda: parts(again()))
    with plan.rate.device:
        made = device_launcher.empty(_MOST, np.float64)
        _SOURCE.kernel("numbers_of_rate", device_code.letter(plan.rate.dtype))(
            (1,), (32,), (made, start, slopes, plan.rate, len(names)))
    values = start.copy()
    values["there"] = int(made.data.ptr)
    return values, made


def step(plan: Any, rows: list[list[Any]], skip: Any = None,
         again: Callable[[], Any] | None = None) -> Collection[int]:
    """Make the step that a ``Fused`` says of rows of (parameter, gradient, states); gives the positions of
    those left out.

    skip: a number on the device; where it is not 0, nothing is changed. again: for work that is recorded,
    gives the next step; it is asked before each replay.
    """
    function, names = plan.function, _ORDER[plan.function].split()
    if not all(isinstance(plan.numbers[n], (int, float)) for n in names):
        return range(len(rows))
    values, _made = _numbers(plan, names, again)
    fits, make = _SEVERAL.get(function, (_fits, partial(_in_one_launch, function)))
    work: dict[tuple[str, int], list[list[Any]]] = {}
    others = [a.data.device_id for a in (skip, plan.rate) if a is not None]
    left, seen = [], set()
    for i, tensors in enumerate(map(_as_parameter, rows)):
        if not tensors[0].size:
            continue
        memory = tensors[0].data
        char, pointer, device = fits(tensors), memory.ptr, memory.device_id
        elsewhere = others and any(other != device for other in others)
        if not char or elsewhere or pointer in seen:  # parameters that share memory go one after the other
            left.append(i)
        else:
            seen.add(pointer)
            work.setdefault((char, device), []).append(tensors)
    for (char, device), group in work.items():
        with cuda.cupy().cuda.Device(device):
            make(char, group, values, skip)
    return left


def _in_one_launch(function: str, char: str, group: list[list[Any]], values: Any, skip: Any) -> None:
    table, blocks = tensor_lists.table(group, function)
    _SOURCE.kernel(function, char)(
        (blocks,), (device_code.THREADS,), (table, len(group), len(group[0]) + 2, values, skip)
    )


# which tensors a step in several launches takes, and what makes it
_SEVERAL = {
    "adafactor_step": (cuda_adafactor.fits, cuda_adafactor.step),
    "muon_step": (cuda_muon.fits, cuda_muon.step),
}
