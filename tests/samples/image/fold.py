"""Rows of ops/image/fold.py."""

from typing import Any

import numpy as np

from framework.errors import ShapeError

from ..base import Sample, normal, row


def _columns(x: Any, kernel: tuple, stride: tuple = (1, 1), padding: tuple = (0, 0),
             dilation: tuple = (1, 1)) -> Any:
    x = np.pad(x, [(0, 0), (0, 0), *((p, p) for p in padding)])
    spans = [d * (k - 1) + 1 for d, k in zip(dilation, kernel)]
    starts = [range(0, s - span + 1, st) for s, span, st in zip(x.shape[2:], spans, stride)]
    columns = [x[:, :, i:i + spans[0]:dilation[0], j:j + spans[1]:dilation[1]].reshape(x.shape[0], -1)
               for i in starts[0] for j in starts[1]]
    return np.stack(columns, -1)


def _image(y: Any, size: tuple, kernel: tuple, **settings: Any) -> Any:
    """The transpose of ``_columns``, from its matrix."""
    c = y.shape[1] // (kernel[0] * kernel[1])
    basis = np.eye(c * size[0] * size[1]).reshape(-1, c, *size)
    matrix = _columns(basis, kernel, **settings).reshape(len(basis), -1)
    return (y.reshape(y.shape[0], -1) @ matrix.T).reshape(-1, c, *size)


row("unfold",
    Sample("plain", lambda M, x: M.nn.functional.unfold(x, 2), (normal(2, 2, 3, 3),),
           lambda x: _columns(x, (2, 2))),
    Sample("settings", lambda M, x: M.nn.functional.unfold(x, (2, 1), (2, 1), (1, 0), (1, 2)),
           (normal(1, 2, 3, 4),), lambda x: _columns(x, (2, 1), (1, 2), (1, 0), (2, 1))),
    Sample("no batch", lambda M, x: M.nn.functional.unfold(x, 2), (normal(1, 3, 3),),
           lambda x: _columns(x[None], (2, 2))[0]),
    namespace="nn.functional",
    errors=[("too large", lambda M: M.nn.functional.unfold(M.ones(1, 1, 2, 2), 3), ShapeError,
             "does not fit"),
            ("dimensions", lambda M: M.nn.functional.unfold(M.ones(2), 3), ShapeError, "4 dimensions")])
row("fold",
    Sample("plain", lambda M, y: M.nn.functional.fold(y, (3, 3), 2), (normal(1, 8, 4),),
           lambda y: _image(y, (3, 3), (2, 2))),
    Sample("settings", lambda M, y: M.nn.functional.fold(y, (3, 4), (2, 1), (2, 1), (1, 0), (1, 2)),
           (normal(1, 4, 6),), lambda y: _image(y, (3, 4), (2, 1), stride=(1, 2), padding=(1, 0),
                                                dilation=(2, 1))),
    Sample("no batch", lambda M, y: M.nn.functional.fold(y, (3, 3), 2), (normal(4, 4),),
           lambda y: _image(y[None], (3, 3), (2, 2))[0]),
    namespace="nn.functional",
    errors=[("sizes", lambda M: M.nn.functional.fold(M.ones(1, 4, 5), (3, 3), 2), ShapeError,
             "(n, c * 4, 4)")])
