"""Where the values of a sparse tensor lie: arrays of integers, no tensors and no values.

A pattern never changes, so that what is found out about it once (its order by rows, its transpose) is kept
and shared by all tensors that have it: an adjacency matrix is sorted in the first step of a training only.
"""

import math
from typing import Any

import numpy as np

from ..backends import array_module
from ..layouts import Layout, sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr


class Rows:
    """The places of a matrix row by row, as kernels take them.

    starts (m + 1): where each row begins, and the last one ends. columns (nnz): the column of each place; a
    place may come twice. shape: (m, n).
    """

    __slots__ = ("starts", "columns", "shape", "_of", "_turned")

    def __init__(self, starts: Any, columns: Any, shape: tuple[int, int]) -> None:
        self.starts, self.columns, self.shape = starts, columns, shape
        self._of: Any = None
        self._turned: Any = None

    def __repr__(self) -> str:
        return f"<{len(self.columns)} places of {self.shape[0]}x{self.shape[1]}>"

    @property
    def of(self) -> Any:
        """The row of each place."""
        if self._of is None:
            self._of = expanded(self.starts)
        return self._of

    @property
    def turned(self) -> "tuple[Rows, Any]":
        """The transpose, and which place of this one each of its places is."""
        if self._turned is None:
            m, n = self.shape
            order = array_module(self.columns).argsort(self.columns, kind="stable")
            turned = Rows(starts_of(self.columns, n), self.of[order], (n, m))
            turned._of = self.columns[order]
            back = order.copy()
            back[order] = array_module(order).arange(len(order))
            turned._turned = (self, back)
            self._turned = turned, order
        return self._turned


def expanded(starts: Any) -> Any:
    """The row of each place, from where the rows begin."""
    xp = array_module(starts)
    rows = xp.arange(len(starts) - 1, dtype=starts.dtype)
    return xp.repeat(rows, xp.diff(starts)) if xp is np else xp.repeat(rows, xp.diff(starts).tolist())


def starts_of(rows: Any, count: int) -> Any:
    """Where each of ``count`` rows begins, from the row of each place (in any order)."""
    xp = array_module(rows)
    starts = xp.zeros(count + 1, rows.dtype)
    xp.cumsum(xp.bincount(rows, minlength=count), out=starts[1:])
    return starts


class Coordinates:
    """Indices (k, nnz) into dimensions of these sizes: the layout COO.

    coalesced: whether they are known to be in order, and none twice.
    """

    __slots__ = ("indices", "sizes", "coalesced", "_linear", "_rows", "_merged")
    layout = sparse_coo

    def __init__(self, indices: Any, sizes: tuple[int, ...], coalesced: bool = False) -> None:
        self.indices, self.sizes = indices, sizes
        self.coalesced = coalesced or indices.shape[1] < 2
        self._linear: Any = None
        self._rows: Any = None
        self._merged: Any = None

    def __len__(self) -> int:
        return self.indices.shape[1]

    @property
    def linear(self) -> Any:
        """The place of each value among all elements of the sparse dimensions."""
        if self._linear is None:
            xp, found = array_module(self.indices), None
            for row, size in zip(self.indices, self.sizes):
                found = row if found is None else found * size + row
            self._linear = xp.zeros(len(self), np.int64) if found is None else found
        return self._linear

    @property
    def merged(self) -> "tuple[Coordinates, Any]":
        """The same places in order and each once, and for each place here which of those it is."""
        if self._merged is None:
            xp = array_module(self.indices)
            if self.coalesced or bool((self.linear[1:] > self.linear[:-1]).all()):
                self.coalesced, self._merged = True, (self, None)
            else:
                linear, inverse = xp.unique(self.linear, return_inverse=True)
                self._merged = at_linear(linear, self.sizes), inverse.reshape(-1)
        return self._merged

    def rows(self) -> tuple[Rows, Any]:
        """As rows of a matrix, and which value belongs to each of their places (None: one by one)."""
        if self._rows is None:
            row, column = self.indices
            order = None
            if not self.coalesced:
                order = array_module(row).argsort(self.linear, kind="stable")
                row, column = row[order], column[order]
            rows = Rows(starts_of(row, self.sizes[0]), column, (self.sizes[0], self.sizes[1]))
            rows._of = row
            self._rows = rows, order
        return self._rows


def at_linear(linear: Any, sizes: tuple[int, ...]) -> Coordinates:
    """The coordinates of ascending places among all elements of dimensions of these sizes."""
    xp = array_module(linear)
    rows = xp.unravel_index(linear, sizes) if sizes else ()
    indices = xp.stack(rows).astype(np.int64) if rows else xp.zeros((0, len(linear)), np.int64)
    made = Coordinates(indices, sizes, True)
    made._linear = linear
    return made


class Compressed:
    """Rows (or columns) one after the other: the layouts CSR and CSC, and of blocks BSR and BSC.

    starts: where the places of each row (by="row") or column begin. others: the other coordinate of each.
    sizes: of the whole matrix. block: the size of a block, (1, 1) for single elements.
    """

    __slots__ = ("starts", "others", "sizes", "by", "block", "blocked", "_rows", "_coordinates")

    def __init__(self, starts: Any, others: Any, sizes: tuple[int, int], by: str = "row",
                 block: tuple[int, int] | None = None) -> None:
        self.starts, self.others, self.sizes, self.by = starts, others, sizes, by
        self.blocked = block is not None
        self.block = block or (1, 1)
        self._rows: Any = None
        self._coordinates: Any = None

    coalesced = True  # the constructors have looked

    def __len__(self) -> int:
        return len(self.others)

    @property
    def layout(self) -> Layout:
        """CSR, CSC, BSR or BSC."""
        if self.by == "row":
            return sparse_bsr if self.blocked else sparse_csr
        return sparse_bsc if self.blocked else sparse_csc

    @property
    def grid(self) -> tuple[int, int]:
        """How many blocks there are in each dimension."""
        return self.sizes[0] // self.block[0], self.sizes[1] // self.block[1]

    def _of_blocks(self) -> Rows:
        """The blocks as rows, of the transpose if they are by columns."""
        grid = self.grid if self.by == "row" else self.grid[::-1]
        return Rows(self.starts, self.others, grid)

    def rows(self) -> tuple[Rows, Any]:
        """As ``Coordinates.rows``, of single elements; values are counted through all blocks."""
        if self._rows is None:
            if not self.blocked:
                rows = self._of_blocks()
                self._rows = (rows, None) if self.by == "row" else rows.turned
            else:
                self._rows = self._elements().rows()
        return self._rows

    def _elements(self) -> Coordinates:
        """The coordinates of all elements of all blocks, in the order of the values."""
        xp, blocks = array_module(self.others), self._of_blocks()
        row, column = (blocks.of, self.others) if self.by == "row" else (self.others, blocks.of)
        (a, b), n = self.block, len(self)
        row = xp.broadcast_to((row * a)[:, None, None] + xp.arange(a)[:, None], (n, a, b))
        column = xp.broadcast_to((column * b)[:, None, None] + xp.arange(b), (n, a, b))
        return Coordinates(xp.stack([row.reshape(-1), column.reshape(-1)]).astype(np.int64), self.sizes)

    @property
    def coordinates(self) -> Coordinates:
        """The places of single elements in the order of the values, blocks taken apart."""
        if self._coordinates is None:
            if self.blocked:
                self._coordinates = self._elements()
            else:
                xp, rows = array_module(self.others), self._of_blocks()
                pair = (rows.of, self.others) if self.by == "row" else (self.others, rows.of)
                self._coordinates = Coordinates(xp.stack(pair).astype(np.int64), self.sizes,
                                                self.by == "row")
        return self._coordinates


Pattern = Coordinates | Compressed


def count_of(sizes: tuple[int, ...]) -> int:
    """The number of elements of these sizes; OverflowError where 63 bits do not hold it."""
    count = math.prod(sizes)
    if count >= 1 << 63:
        raise OverflowError(f"sparse tensors: sizes {list(sizes)} have more elements than 63 bits count")
    return count
