"""Random numbers on GPUs: dropout, whose kernel draws the coins that the CPU draws (``kernels.cu``,
``backends/philox.cuh``), places drawn by weights (``picks.cu``), and derivatives of samples (``slopes.cu``).
"""

from pathlib import Path
from typing import Any

import numpy as np

from ...backends import backend_of, cuda, device_code, device_flags
from ...backends.replayed import GraphKey
from ...random import Generator, uniform_array
from ..reduce.cuda import topk
from ..special.numbers import cuda_text

_SOURCE = device_code.source(Path(__file__).with_name("kernels.cu"), "philox.cuh")
_SLOPES = device_code.source(Path(__file__).with_name("slopes.cu"), begins=lambda char: cuda_text())
_PICKS = device_code.source(Path(__file__).with_name("picks.cu"))
_COINS = np.dtype([("key", "u8"), ("whole", "i8"), ("rest", "f8"), ("there", "u8")])


def coins(key: int, p: float) -> np.ndarray:
    """The coins of a key as a kernel takes them."""
    whole, there = int(p * 65536), 0
    if isinstance(key, GraphKey):
        there = key.address
        if (capture := cuda.capture_here()) is not None:
            capture.kept.append(key)  # another graph's, whose memory has to stay
    return np.array([(key, whole, p * 65536 - whole, there)], _COINS)


def factor(p: float) -> float:
    """What is kept is multiplied by this."""
    return 1 / (1 - p) if p < 1 else 1.0


def dropout(x: Any, *, p: float, key: int) -> Any:
    """The device function of dropout."""
    char = device_code.char_of(x)
    if char not in device_code.FLOATS or not x.size:
        return NotImplemented
    module = cuda.cupy()
    out = module.empty(x.shape, x.dtype)
    _SOURCE.kernel("dropout", char)(
        (device_code.blocks(x.size, 16 * device_code.THREADS),),
        (device_code.THREADS,),
        (out, module.ascontiguousarray(x), x.size, coins(key, p), factor(p)),
    )
    return out


# -- places drawn by weights ---------------------------------------------------------------------------

_WRONG = device_flags.site("multinomial: weights must be finite and not negative, found {real}", ValueError)
_NOTHING = device_flags.site("multinomial: the weights of row {value} are all 0", ValueError)


def picks(x: Any, *, num_samples: int, replacement: bool, generator: Generator | None) -> Any:
    """The device function of multinomial; what is wrong with weights is told at the next wait."""
    char, k = device_code.char_of(x), num_samples
    if char not in device_code.FLOATS or not x.size:
        return NotImplemented
    module, n = cuda.cupy(), x.shape[-1]
    rows, once = x.size // n, replacement or k == 1
    if not once and k > n:
        raise ValueError(f"multinomial: {k} samples without replacement need as many weights above 0, there "
                         f"are {n} weights; pass replacement=True")
    draws = uniform_array((rows, k if once else n), np.dtype("f8"), backend_of(x).device_of(x), generator)
    threads = (min(1024, max(32, 1 << (n // 4).bit_length())),)
    given = module.empty((rows, n), np.float64), module.ascontiguousarray(x), draws, rows, n, k, \
        device_flags.memory(), _WRONG, _NOTHING
    if once:
        out = module.empty((*x.shape[:-1], k), np.int64)
        _PICKS.kernel("pick_by_height", char)((device_code.blocks(rows, 1),), threads, (out, *given))
        return out
    few = device_flags.site(f"multinomial: {k} samples without replacement need as many weights above 0, row "
                            "{value} has {size}; pass replacement=True", ValueError)
    _PICKS.kernel("weighted_keys", char)((device_code.blocks(rows, 1),), threads, (*given, few))
    return topk(given[0], k=k, dim=1, largest=False)[1].reshape(*x.shape[:-1], k)


# -- derivatives of samples ----------------------------------------------------------------------------


def gamma_slope(x: Any, y: Any) -> Any:
    """The device function of how gamma numbers move with their shapes."""
    char, module = device_code.char_of(x, y), cuda.cupy()
    if char not in device_code.FLOATS:
        return NotImplemented
    if x.shape != y.shape:
        x, y = module.broadcast_arrays(x, y)
    x, y = module.ascontiguousarray(x), module.ascontiguousarray(y)
    out = module.empty(x.shape, x.dtype)
    if out.size:
        _SLOPES.kernel("gamma_slope", char)(
            (device_code.blocks(out.size),), (device_code.THREADS,), (out, x, y, out.size))
    return out


def dirichlet_slope(x: Any, y: Any, w: Any) -> Any:
    """That of how parts of Dirichlet samples move with their concentrations, whose sums are ``w``."""
    char, module = device_code.char_of(x, y, w), cuda.cupy()
    if char not in device_code.FLOATS or x.shape != y.shape or w.shape != (*x.shape[:-1], 1):
        return NotImplemented
    out = module.empty(x.shape, x.dtype)
    if out.size:
        _SLOPES.kernel("dirichlet_slope", char)(
            (device_code.blocks(out.size),), (device_code.THREADS,),
            (out, *map(module.ascontiguousarray, (x, y, w)), x.shape[-1], out.size))
    return out
