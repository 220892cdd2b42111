"""Random numbers on GPUs: dropout, whose kernel draws the coins that the CPU draws (``kernels.cu``,
``backends/philox.cuh``), places drawn by weights (``picks.cu``), permutations, numbers of distributions whose
parameters are tensors (``variates.cu``, the numbers of the CPU), and derivatives of samples (``slopes.cu``).
"""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ... import _native
from ...autograd.mode import state
from ...backends import backend_of, cuda, device_code, device_flags, device_launcher, device_random
from ...backends.replayed import place_of
from ...device import Device
from ...dtypes import finfo
from ...random import Generator, fresh_key, integers_array, uniform_array
from ..reduce.cuda import sort, topk
from ..special.numbers import cuda_text

_SOURCE = device_code.source(Path(__file__).with_name("kernels.cu"), "philox.cuh")


def _slopes_text(char: str) -> str:
    """The text of derivatives of samples that the extension is compiled from, and what it needs."""
    path = Path(_native.__file__).parent / "random" / "slope_numbers.h"
    return f"{cuda_text()}\n{device_code.text_of(str(path))}"


_SLOPES = device_code.source(Path(__file__).with_name("slopes.cu"), begins=_slopes_text)


def _numbers_text(char: str) -> str:
    """The text of numbers of distributions that the extension is compiled from, with its tables."""
    path = Path(_native.__file__).parent / "random" / "variate_numbers.h"
    tables = device_random.normal_tables("double", True)
    return f"namespace fw::variates {{\n{tables}}}\n{device_code.text_of(str(path))}"


_VARIATES = device_code.source(Path(__file__).with_name("variates.cu"), "philox.cuh", begins=_numbers_text,
                               options=device_code.SEPARATE)
_PICKS = device_code.source(Path(__file__).with_name("picks.cu"))
# what parameters must be, as errors say it here and on the host
MOST_RATE = 9.2e18  # beyond, numbers do not fit int64, in which NumPy counts
RATES = ("input must not be below 0", f"input must not be above {MOST_RATE:g}")
TRIALS = ("count must be whole numbers >= 0", "prob must be in [0, 1]")
SPREADS = "concentrations must not be below 0"
_COINS = np.dtype([("key", "u8"), ("whole", "i8"), ("rest", "f8"), ("there", "u8")])


def coins(key: int, p: float) -> np.ndarray:
    """The coins of a key as a kernel takes them."""
    whole = int(p * 65536)
    return np.array([(key, whole, p * 65536 - whole, place_of(key))], _COINS)


def factor(p: float) -> float:
    """What is kept is multiplied by this."""
    return 1 / (1 - p) if p < 1 else 1.0


def dropout(x: Any, *, p: float, key: int) -> Any:
    """The device function of dropout."""
    char = device_code.char_of(x)
    if char not in device_code.FLOATS or not x.size:
        return NotImplemented
    module = cuda.cupy()
    out = device_launcher.empty(x.shape, x.dtype)
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
    threads = (min(512, max(32, 1 << (n // 4).bit_length())),)
    given = device_launcher.empty((rows, n), np.float64), module.ascontiguousarray(x), draws, rows, n, k, \
        device_flags.memory(), _WRONG, _NOTHING
    if once:
        out = device_launcher.empty((*x.shape[:-1], k), np.int64)
        _PICKS.kernel("pick_by_height", char)((device_code.blocks(rows, 1),), threads, (out, *given))
        return out
    few = device_flags.site(f"multinomial: {k} samples without replacement need as many weights above 0, row "
                            "{value} has {size}; pass replacement=True", ValueError)
    _PICKS.kernel("weighted_keys", char)((device_code.blocks(rows, 1),), threads, (*given, few))
    return topk(given[0], k=k, dim=1, largest=False)[1].reshape(*x.shape[:-1], k)


def permutation(n: int, device: Device, generator: Generator | None) -> Any:
    """The numbers 0 to n - 1 in the order of random keys, or NotImplemented."""
    if device.type != "cuda" or not n or n >= 1 << 31 or state.batches or not device_code.enabled:
        return NotImplemented
    keys = integers_array(-1 << 63, 1 << 63, (n,), np.dtype(np.int64), device, generator)
    with keys.device:
        return sort(keys, dim=0, descending=False)[1]


# -- numbers of distributions --------------------------------------------------------------------------


def _drawn(kernel: str, x: Any, *others: Any, generator: Generator | None, settings: tuple = ()) -> Any:
    """What a kernel draws for each element of parameters, by a key of the generator."""
    char = device_code.char_of(x, *others)
    if char not in device_code.FLOATS or state.batches:
        return NotImplemented
    module = cuda.cupy()
    given, out = [module.ascontiguousarray(a) for a in (x, *others)], device_launcher.empty(x.shape, x.dtype)
    if out.size:
        _VARIATES.kernel(kernel, char)(
            (device_code.blocks(x.size),), (device_code.THREADS,),
            (out, *given, x.size, _key(x, generator), *settings))
    return out


def _key(x: Any, generator: Generator | None) -> np.ndarray:
    return device_random.key_of(fresh_key(backend_of(x).device_of(x), generator))


def lowest(like: Any) -> float:
    """The smallest normal number: where a draw underflows, its logarithm stays finite."""
    return _lowest(like.dtype)


@cache
def _lowest(dtype: np.dtype) -> float:
    return finfo(dtype).tiny


def gamma(x: Any, *, generator: Generator | None) -> Any:
    """The device function of gamma numbers of shapes ``x``."""
    return _drawn("gamma_numbers", x, generator=generator, settings=(lowest(x),))


def dirichlet(x: Any, *, generator: Generator | None) -> Any:
    """That of rows of Dirichlet's distribution; a block makes a row."""
    char = device_code.char_of(x)
    if char not in device_code.FLOATS or state.batches:
        return NotImplemented
    module, n = cuda.cupy(), x.shape[-1]
    out, logs = device_launcher.empty(x.shape, x.dtype), device_launcher.empty(x.shape, np.float64)
    if out.size:
        _VARIATES.kernel("dirichlet_rows", char)(
            (device_code.blocks(x.size // n, 1),), (min(256, max(32, 1 << (n // 2).bit_length())),),
            (out, logs, module.ascontiguousarray(x), x.size // n, n, _key(x, generator), lowest(x)))
    return out


def poisson(x: Any, *, generator: Generator | None) -> Any:
    """That of Poisson numbers; a rate that is none is told at the next wait."""
    told = [device_flags.site(f"poisson: {text}, found {{real}}", ValueError) for text in RATES]
    return _drawn("poisson_numbers", x, generator=generator,
                  settings=(MOST_RATE, device_flags.memory(), *told))


def binomial(count: Any, prob: Any, *, dtype: np.dtype, generator: Generator | None) -> Any:
    """That of numbers of successes; what is wrong is told at the next wait."""
    module = cuda.cupy()
    if device_code.letter(dtype) not in device_code.FLOATS:
        return NotImplemented
    count, prob = (a.astype(dtype, copy=False) for a in module.broadcast_arrays(count, prob))
    told = [device_flags.site(f"binomial: {text}, found {{real}}", ValueError) for text in TRIALS]
    return _drawn("binomial_numbers", count, prob, generator=generator,
                  settings=(device_flags.memory(), *told))


def angles(x: Any, *, generator: Generator | None) -> Any:
    """That of angles of von Mises' distribution; a concentration below 0 is told at the next wait."""
    told = device_flags.site(f"von_mises: {SPREADS}, found {{real}}", ValueError)
    return _drawn("angles", x, generator=generator, settings=(device_flags.memory(), told))


# -- derivatives of samples ----------------------------------------------------------------------------


def gamma_slope(x: Any, y: Any) -> Any:
    """The device function of how gamma numbers move with their shapes."""
    char, module = device_code.char_of(x, y), cuda.cupy()
    if char not in device_code.FLOATS:
        return NotImplemented
    if x.shape != y.shape:
        x, y = module.broadcast_arrays(x, y)
    x, y = module.ascontiguousarray(x), module.ascontiguousarray(y)
    out = device_launcher.empty(x.shape, x.dtype)
    if out.size:
        _SLOPES.kernel("gamma_slope", char)(
            (device_code.blocks(out.size),), (device_code.THREADS,), (out, x, y, out.size))
    return out


def dirichlet_slope(x: Any, y: Any, w: Any) -> Any:
    """That of how parts of Dirichlet samples move with their concentrations, whose sums are ``w``."""
    char, module = device_code.char_of(x, y, w), cuda.cupy()
    if char not in device_code.FLOATS or x.shape != y.shape or w.shape != (*x.shape[:-1], 1):
        return NotImplemented
    out = device_launcher.empty(x.shape, x.dtype)
    if out.size:
        _SLOPES.kernel("dirichlet_slope", char)(
            (device_code.blocks(out.size),), (device_code.THREADS,),
            (out, *map(module.ascontiguousarray, (x, y, w)), x.shape[-1], out.size))
    return out
