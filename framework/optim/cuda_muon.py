"""Muon's steps on GPUs: four launches for all small matrices of a dtype, whatever their shapes and number.

The iteration of small matrices is one launch of all its steps (``newton_schulz.cu``), without matrix units:
there launches are what takes time. Large ones are left to cuBLAS, whose products of bfloat16 go to matrix
units, those of one shape together: 15 products for each shape that there is, in five iterations, and a copy
in each, as a product adds to what is there. Both sum up in float32 and add what is added before they round,
as ``muon.orthogonal`` does.
"""

from pathlib import Path
from typing import Any

import numpy as np

from ..backends import cuda, device_code, device_launcher, device_products, tensor_lists

NUMBERS = "momentum rest nesterov lr shrink adamw eps a b c steps"
# multiplications, of all iterations of all matrices of a shape, that take multiprocessors as long without
# matrix units as the host takes to start the 20 calls that they save, about 0.15 ms; not measured on a device
SMALL = 1 << 30
_SOURCE = device_code.source(Path(__file__).with_name("muon.cu"), tensor_lists.HEADER)
_ITERATION = device_code.source(Path(__file__).with_name("newton_schulz.cu"), tensor_lists.HEADER, "meet.cuh",
                                cooperative=True, dtypes="E")
_TILE, _AT_ONCE = 32, 2  # of its products; blocks that a multiprocessor has room for at once
_BFLOAT16, _IN_FLOAT32, _DEFAULT = 14, 68, -1  # cudaDataType, cublasComputeType_t, the choice of a way


def fits(tensors: list[Any]) -> str:
    """The letter of the dtype of parameter, gradient and momentum that kernels can take; "" of others."""
    char = device_code.char_of(*tensors)
    plain = all(a.flags.c_contiguous for a in tensors) and max(tensors[0].shape) < 2**31
    return char if plain and char in device_code.FLOATS else ""


def step(char: str, group: list[list[Any]], numbers: Any, skip: Any) -> None:
    """Update rows of (parameter, gradient, momentum) of one dtype."""
    *_, a, b, c, steps = numbers["at"][0, :len(NUMBERS.split())].tolist()
    by_shape: dict[tuple[int, int], list[list[Any]]] = {}
    for row in group:
        by_shape.setdefault(row[0].shape, []).append(row)
    small = _Small(int(steps))
    large = [(alike, _Stack(len(alike), *shape)) for shape, alike in by_shape.items()
             if not small.takes(shape, alike)]
    small.lay_out()
    rows = [*small.rows, *[row for alike, _ in large for row in alike]]
    further = [*small.further, *[line for _, stack in large for line in stack.further()]]
    made, blocks = tensor_lists.table(rows, "muon", further)
    width, arrived = 3 + len(further[0]) + 2, device_launcher.empty(1, np.int32)
    parts = device_launcher.empty(blocks, np.float32)

    def launch(name: str, *more: Any) -> None:
        _SOURCE.kernel(name, char)(
            (blocks,), (device_code.THREADS,), (made, len(rows), width, numbers, skip, *more))
    launch("muon_momentum", parts)
    launch("muon_scale", parts, arrived)
    small.iterate(made, width, numbers, skip, arrived)
    _iterate([stack for _, stack in large], a, b, c, int(steps))
    launch("muon_step")


class _Small:
    """Matrices whose iteration is one launch, and where they lie in memory of bfloat16's bits."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.space: Any = None
        self.rows: list[list[Any]] = []
        self.further: list[list[int]] = []  # what the table says of each, beside its tensors
        self.squares = self.longs = 0  # tiles

    def takes(self, shape: tuple[int, int], rows: list[list[Any]]) -> bool:
        """Whether these are small enough; they are added then."""
        size, length = sorted(shape)
        if len(rows) * self.steps * size * size * (2 * length + size) > SMALL:
            return False
        self.rows += rows
        across, along = -(-size // _TILE), -(-length // _TILE)
        for _ in rows:
            self.further.append([*shape, self.squares, self.longs])
            self.squares += across * across
            self.longs += across * along
        return True

    def lay_out(self) -> None:
        """Give each matrix its places: two that the steps write in turn, and those of the two squares."""
        sizes = [(m * n, min(m, n) ** 2) for m, n, *_ in self.further]
        self.space = device_launcher.empty(2 * sum(map(sum, sizes)), np.uint16)
        at = int(self.space.data.ptr)
        for line, (matrix, square) in zip(self.further, sizes):
            line[:0] = [at + 2 * i for i in (0, matrix, 2 * matrix, 2 * matrix + square)]
            at += 4 * (matrix + square)

    def iterate(self, table: Any, width: int, numbers: Any, skip: Any, arrived: Any) -> None:
        """All iterations of all of them; arrived: a counter that is 0."""
        if self.rows and self.steps:
            blocks = min(self.longs, _AT_ONCE * cuda.multiprocessors())
            _ITERATION.kernel("muon_iterate", "E")(
                (blocks,), (device_code.THREADS,),
                (table, len(self.rows), width, self.squares, self.longs, numbers, skip, self.steps, arrived),
                shared_mem=2 * 4 * _TILE * (_TILE + 1))  # two panels of float32


class _Stack:
    """The matrices [m, n] of a shape for cuBLAS, as the bits of bfloat16."""

    def __init__(self, count: int, m: int, n: int) -> None:
        self.shape, self.size, self.tall = (m, n), min(m, n), m > n  # x stands before the others where m > n
        shapes = [(count, m, n)] * 2 + [(count, self.size, self.size)] * 2
        made = [device_launcher.empty(shape, np.uint16) for shape in shapes]
        self.x, self.before, self.gram, self.poly = made

    def further(self) -> list[list[int]]:
        """What the table says of each, beside its tensors."""
        first, each = int(self.x.data.ptr), 2 * self.shape[0] * self.shape[1]
        return [[first + i * each] * 2 + [0, 0, *self.shape, 0, 0] for i in range(len(self.x))]


def _iterate(stacks: list[_Stack], a: float, b: float, c: float, steps: int) -> None:
    """``x = a x + (b g + c g g) x`` with ``g = x x'``, a few times. Libraries take columns that lie together:
    there matrices are transposed, and factors change places."""
    targets, sources = ([getattr(s, name) for s in stacks for name in names]
                        for names in (("poly", "before"), ("gram", "x")))
    for _ in range(steps if stacks else 0):
        for s in stacks:
            turned, length = ((0, 1) if s.tall else (1, 0)), max(s.shape)
            _multiply(turned, (s.size, s.size, length), 1.0, s.x, s.x, 0.0, s.gram)
        if not tensor_lists.copy_all(targets, sources):
            for target, source in zip(targets, sources):
                cuda.cupy().copyto(target, source)
        for s in stacks:
            _multiply((0, 0), (s.size,) * 3, c, s.gram, s.gram, b, s.poly)
            first, second = (s.poly, s.before) if s.tall else (s.before, s.poly)
            _multiply((0, 0), (s.shape[1], s.shape[0], s.size), 1.0, first, second, a, s.x)


def _multiply(turned: tuple[int, int], sizes: tuple[int, int, int], by: float, x: Any, y: Any, kept: float,
              out: Any) -> None:
    """``out = by x y + kept out`` of batches of bfloat16 whose columns lie together, as cuBLAS has it."""
    module, factors = cuda.cupy(), np.array([by, kept], np.float32)
    a, b, c = ((t.data.ptr, _BFLOAT16, t.shape[2], t.shape[1] * t.shape[2]) for t in (x, y, out))
    device_products.gemm(
        module.cuda.device.get_cublas_handle(), *turned, *sizes, factors[:1].ctypes.data, *a, *b,
        factors[1:].ctypes.data, *c, len(out), _IN_FLOAT32, _DEFAULT)
