"""Rows of ops/copies.py."""

from typing import Any

import numpy as np

from .base import Sample, normal, row

X = normal(3, 4)
SHAPES = ValueError, IndexError, RuntimeError


def _copy(name: str, reference: Any, *args: Any, x: Any = X, bad: Any = None, said: str = "",
          **more: Any) -> None:
    """The copy equals the view's elements, also once the base was changed."""

    def call(M: Any, x: Any) -> Any:
        base = x * 1
        out = getattr(M, name)(base, *args)
        base.mul_(2.0)
        return out

    row(
        name,
        Sample("of its own memory", call, (x,), reference, **more),
        errors=[("bad", bad, SHAPES, said)]
        if bad
        else [("type", lambda M: getattr(M, name)([1.0]), TypeError, "must be a Tensor")],
    )


_copy("alias_copy", lambda x: x)
_copy("as_strided_copy", lambda x: x.ravel()[[1, 3]], (2,), (2,), 1, noncontiguous=False)
_copy("diagonal_copy", lambda x: np.diagonal(x, 1), 1)
_copy("expand_copy", lambda x: np.broadcast_to(x, (2, 3, 4)), (2, 3, 4))
_copy("permute_copy", lambda x: x.T, (1, 0))
_copy("select_copy", lambda x: x[:, 2], 1, 2,
      bad=lambda M: M.select_copy(M.ones(2), 0, 2), said="out of range")
_copy("slice_copy", lambda x: x[:, 1:4:2], 1, 1, 4, 2,
      bad=lambda M: M.slice_copy(M.ones(2), 0, 0, 2, 0), said="positive")
_copy("split_copy", lambda x: (x[:2], x[2:]), 2)
_copy("split_with_sizes_copy", lambda x: (x[:1], x[1:]), [1, 2])
_copy("squeeze_copy", lambda x: x[0], x=X[None])
_copy("t_copy", lambda x: x.T)
_copy("transpose_copy", lambda x: x.T, 0, 1)
_copy("unbind_copy", lambda x: (x[0], x[1], x[2]))
_copy("unfold_copy", lambda x: np.stack([x[:, 0:2], x[:, 2:4]], 1), 1, 2, 2)
_copy("unsqueeze_copy", lambda x: x[:, None], 1)
_copy("view_as_complex_copy", lambda x: x[..., 0] + 1j * x[..., 1], x=normal(3, 2),
      noncontiguous=False, torch=False, why="it has no derivative there")
_copy("view_as_real_copy", lambda x: np.stack([x.real, x.imag], -1), x=normal(3) + 1j * normal(3, seed=1))
_copy("view_copy", lambda x: x.reshape(2, 6), (2, 6),
      bad=lambda M: M.view_copy(M.ones(4), (3,)), said="3")
