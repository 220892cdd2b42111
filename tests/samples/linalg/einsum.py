"""Rows of ops/linalg/einsum.py."""

from typing import Any

import numpy as np

from framework.errors import ShapeError

from ..base import Sample, normal, row

row("bilinear",
    Sample("plain", lambda M, *xs: M.nn.functional.bilinear(*xs),
           (normal(2, 2), normal(2, 3), normal(2, 2, 3), normal(2)),
           lambda x, y, w, b: np.einsum("ni,oij,nj->no", x, w, y) + b, noncontiguous=False),
    namespace="nn.functional",
    errors=[("sizes", lambda M: M.nn.functional.bilinear(M.ones(1, 2), M.ones(1, 2), M.ones(1, 2, 3)),
             ShapeError, "[1, 2, 3]")])


def _einsum(equation: str, *shapes: tuple, reference: str = "", **more: Any) -> Sample:
    def call(M: Any, *xs: Any) -> Any:
        return M.einsum(equation, *xs)

    def numpy(*xs: Any) -> Any:
        return np.einsum(reference or equation, *xs)
    arrays = tuple(normal(*s, seed=i) for i, s in enumerate(shapes))
    return Sample(equation, call, arrays, numpy, **more)


row("einsum",
    _einsum("ij,jk->ik", (2, 3), (3, 2)), _einsum("ij,jk", (2, 3), (3, 2)),
    _einsum("bij,bjk->bik", (2, 2, 3), (2, 3, 2)), _einsum("i,j->ij", (2,), (3,)),
    _einsum("i,i->", (3,), (3,)), _einsum("ij->ji", (2, 3)), _einsum("ba", (2, 3)),
    _einsum("ij->", (2, 3)), _einsum("ii->i", (3, 3)), _einsum("ii", (3, 3)),
    _einsum("iji->j", (2, 3, 2)), _einsum("iii->i", (2, 2, 2)),
    _einsum("...ij,...jk->...ik", (2, 2, 3), (3, 2)), _einsum("...i,...i", (2, 3), (2, 3)),
    _einsum("ij,ik->i", (2, 3), (2, 2)), _einsum("ij,k->", (2, 2), (3,)),
    _einsum("ijk,k->ji", (2, 2, 3), (3,)), _einsum("i,oij,j->o", (2,), (2, 2, 3), (3,)),
    _einsum("ij,jk,kl->il", (2, 2), (2, 3), (3, 2)), _einsum("ii,ij->j", (2, 2), (2, 3)),
    _einsum("ij,ij->ij", (1, 3), (2, 3)), _einsum("ij,jk->ik", (0, 2), (2, 3)), _einsum("i->", (0,)),
    Sample("sublists", lambda M, x, y: M.einsum(x, [0, 1], y, [1, 2], [0, 2]), (normal(2, 3), normal(3, 2)),
           np.matmul),
    errors=[("sizes", lambda M: M.einsum("ij,jk->ik", M.ones(2, 3), M.ones(4, 2)), ShapeError,
             "index 'j'"),
            ("dimensions", lambda M: M.einsum("ij->i", M.ones(2)), ShapeError, "operand 0"),
            ("number", lambda M: M.einsum("i,j->ij", M.ones(2)), ValueError, "2 operands"),
            ("output", lambda M: M.einsum("i->k", M.ones(2)), ValueError, "output index 'k'"),
            ("letter", lambda M: M.einsum("i?->i", M.ones(2, 2)), ValueError, "letters"),
            ("type", lambda M: M.einsum(3, M.ones(2)), TypeError, "string")])
