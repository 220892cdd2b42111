"""make_tensor: a tensor of random numbers of any dtype."""

from typing import Any

import framework as fw

from ..tensor import Tensor


def make_tensor(*shape: Any, dtype: Any, device: Any, low: float | None = None, high: float | None = None,
                requires_grad: bool = False, noncontiguous: bool = False, exclude_zero: bool = False,
                memory_format: Any = None) -> Tensor:
    """Uniform numbers in [low, high): floats by default in [-9, 9), integers in [-10, 10), unsigned in [0,
    10).

    noncontiguous: every second element of a tensor twice as wide. exclude_zero: where 0 was drawn stands the
    smallest positive number (1 for integers). Raises ValueError for an empty range.

    >>> x = fw.testing.make_tensor(2, 3, dtype=fw.float32, device="cpu", low=0, high=1)
    >>> x.shape, bool(((x >= 0) & (x < 1)).all())
    ((2, 3), True)
    """
    sizes = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape
    whole = dtype.category < 2
    unsigned = whole and dtype is not fw.bool and fw.iinfo(dtype).min == 0
    first, last = (0, 2) if dtype is fw.bool else (0 if unsigned else -10, 10) if whole else (-9, 9)
    bottom, top = first if low is None else low, last if high is None else high
    if not bottom < top:
        raise ValueError(f"make_tensor: low must be below high, got low={low} and high={high}")
    wide = (*sizes[:-1], 2 * sizes[-1]) if noncontiguous and sizes else sizes
    if whole:
        x = fw.randint(int(bottom), int(top), wide, device=device, dtype=fw.int64).to(dtype)
    else:
        x = fw.empty(wide, dtype=dtype, device=device).uniform_(float(bottom), float(top))
    if exclude_zero:
        x = x.masked_fill(x == 0, 1 if whole else fw.finfo(dtype).tiny)
    if noncontiguous and sizes:
        x = x[..., ::2]
    if memory_format is not None:
        x = x.contiguous(memory_format=memory_format)
    return x.requires_grad_(requires_grad) if requires_grad else x
