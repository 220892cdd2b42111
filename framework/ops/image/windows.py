"""Windows of images as columns of a matrix, one row per (channel, kernel position), in pieces of the batch.

With stride 1 the columns run over whole rows of the padded image, so they are long contiguous copies; the few
columns that straddle two rows are left out when the result is taken (about kernel/width too much work, for
several times the copying speed).
"""

import math
from typing import Any, NamedTuple

import numpy as np

# bytes of columns worked on at once: about a second-level cache on a CPU, a launch's worth on a GPU
_CPU_BYTES, _CUDA_BYTES = 1 << 21, 1 << 29
_MAX_WASTE = 1.5  # how many straddling columns the contiguous layout may add


class Windows(NamedTuple):
    """How the windows of a padded image lie in memory. Sizes count elements, per dimension."""

    kernel: tuple[int, ...]
    padding: tuple[int, ...]
    padded: tuple[int, ...]   # sizes of the padded image
    out: tuple[int, ...]      # number of windows
    steps: tuple[int, ...]    # memory step from one window to the next
    taps: tuple[int, ...]     # memory step inside a window
    row: int                  # memory step of one channel
    length: int               # columns per image: prod(out), or more in the contiguous layout
    flat: bool                # the contiguous layout

    @property
    def positions(self) -> list[int]:
        """Offset of every kernel position from the window's first element."""
        offsets = [0]
        for size, tap in zip(self.kernel, self.taps):
            offsets = [o + i * tap for o in offsets for i in range(size)]
        return offsets


def windows(size: tuple[int, ...], kernel: tuple[int, ...], stride: tuple[int, ...],
            padding: tuple[int, ...], dilation: tuple[int, ...]) -> Windows:
    """The layout for an image of ``size`` (spatial dimensions only)."""
    padded = tuple(s + 2 * p for s, p in zip(size, padding))
    out = out_sizes(size, kernel, stride, padding, dilation)
    memory = [math.prod(padded[i + 1:]) for i in range(len(size))]
    length = 1 + sum((o - 1) * m for o, m in zip(out, memory))
    flat = all(s == 1 for s in stride) and length <= _MAX_WASTE * math.prod(out)
    return Windows(kernel, padding, padded, out, tuple(s * m for s, m in zip(stride, memory)),
                   tuple(d * m for d, m in zip(dilation, memory)), math.prod(padded),
                   length if flat else math.prod(out), flat)


def out_sizes(size: tuple[int, ...], kernel: tuple[int, ...], stride: tuple[int, ...],
              padding: tuple[int, ...], dilation: tuple[int, ...]) -> tuple[int, ...]:
    """How many windows fit along each dimension."""
    return tuple((s + 2 * p - d * (k - 1) - 1) // st + 1
                 for s, k, st, p, d in zip(size, kernel, stride, padding, dilation))


def strided(xp: Any, a: Any, shape: tuple, steps: tuple, offset: int = 0) -> Any:
    """A strided view of the flat array ``a``."""
    return xp.lib.stride_tricks.as_strided(a[offset:], shape, tuple(s * a.itemsize for s in steps))


def column_view(xp: Any, flat: Any, n: int, c: int, at: Windows) -> Any:
    """The windows of ``n`` images of ``c`` channels as (c, *kernel, n, columns...)."""
    spatial, steps = ((at.length,), (1,)) if at.flat else (at.out, at.steps)
    return strided(xp, flat, (c, *at.kernel, n, *spatial), (at.row, *at.taps, c * at.row, *steps))


def result_view(xp: Any, flat: Any, n: int, o: int, at: Windows) -> Any:
    """Columns (o, n, length) as images (n, o, *out), without those that straddle rows."""
    steps = at.steps if at.flat else tuple(math.prod(at.out[i + 1:]) for i in range(len(at.out)))
    return strided(xp, flat, (n, o, *at.out), (at.length, n * at.length, *steps))


def piece(xp: Any, n: int, rows: int, at: Windows, itemsize: int) -> int:
    """How many images to work on at once."""
    most = (_CPU_BYTES if xp is np else _CUDA_BYTES) // max(1, rows * at.length * itemsize)
    return max(1, min(n, most))


def inner(at: Windows) -> tuple:
    """The index of the image inside the padded one."""
    return tuple(slice(p, s - p) for p, s in zip(at.padding, at.padded))


class Columns:
    """The columns of a batch, a piece at a time, in memory that is used again for every piece."""

    def __init__(self, xp: Any, x: Any, at: Windows, groups: int) -> None:
        n, c = x.shape[:2]
        self.xp, self.x, self.at, self.groups = xp, x, at, groups
        self.rows = c // groups * math.prod(at.kernel)
        self.size = piece(xp, n, c * math.prod(at.kernel), at, x.dtype.itemsize)
        self.padded = None
        if any(at.padding):
            self.padded = xp.zeros((self.size, c, *at.padded), x.dtype)
            flat = self.padded.reshape(-1)
        else:
            flat = xp.ascontiguousarray(x).reshape(-1)
        self.source = column_view(xp, flat, self.size if any(at.padding) else n, c, at)
        self.memory = xp.empty(c * math.prod(at.kernel) * self.size * at.length, x.dtype)

    def __call__(self, start: int, stop: int) -> Any:
        """The columns of images start to stop: (groups, rows, images * length)."""
        count, d = stop - start, len(self.at.kernel)
        if self.padded is not None:
            self.padded[(slice(0, count), slice(None), *inner(self.at))] = self.x[start:stop]
            start, stop = 0, count
        source = self.source[(slice(None),) * (d + 1) + (slice(start, stop),)]
        columns = self.memory[:source.size]
        columns.reshape(source.shape)[...] = source
        return columns.reshape(self.groups, self.rows, count * self.at.length)

    def pieces(self) -> list[tuple[int, int]]:
        n = self.x.shape[0]
        return [(i, min(i + self.size, n)) for i in range(0, n, self.size)]


def gradient_columns(xp: Any, y: Any, at: Windows, size: int) -> Any:
    """A function giving y[start:stop] as columns (o, images * length), 0 in those that straddle."""
    o = y.shape[1]
    memory = xp.zeros(o * size * at.length, y.dtype)

    def columns(start: int, stop: int) -> Any:
        count = stop - start
        flat = memory[:o * count * at.length]
        if count != size:
            flat[...] = 0
        result_view(xp, flat, count, o, at)[...] = y[start:stop]
        return flat.reshape(o, count * at.length)
    return columns
