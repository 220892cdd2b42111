"""Dropout on GPUs: kernels draw the coins that the CPU draws (``kernels.cu``, ``backends/philox.cuh``)."""

from pathlib import Path
from typing import Any

import numpy as np

from ...backends import cuda, device_code
from ...backends.replayed import GraphKey

_SOURCE = device_code.source(Path(__file__).with_name("kernels.cu"), "philox.cuh")
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
