"""Rows of ops/shape/slices.py."""

from ..base import Sample, normal, row

X = normal(3, 4)
row(
    "narrow_copy",
    Sample("plain", lambda M, x: M.narrow_copy(x, 1, 1, 2), (X,), lambda x: x[:, 1:3]),
    Sample("method", lambda M, x: x.narrow_copy(0, 1, 1), (X,), lambda x: x[1:2]),
    Sample(
        "from the end",
        lambda M, x: x.narrow_copy(0, -1, 1),
        (X,),
        lambda x: x[-1:],
        torch=False,
        why="PyTorch's gradient is 0",
    ),
    errors=[("range", lambda M: M.narrow_copy(M.ones(2), 0, 1, 3), (IndexError, ValueError), "narrow")],
)
