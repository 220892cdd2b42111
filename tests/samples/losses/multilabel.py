"""Rows of multilabel_soft_margin_loss."""

from typing import Any

import numpy as np

from ..base import Sample, masks, normal, positive, row

X, T = normal(3, 4), masks(3, 4).astype(float)


def _soft(x: Any, t: Any, w: Any = 1.0) -> Any:
    s = 1 / (1 + np.exp(-x))
    return (-(t * np.log(s) + (1 - t) * np.log(1 - s)) * w).mean(-1)


row("multilabel_soft_margin_loss",
    Sample("mean", lambda M, x, t: M.nn.functional.multilabel_soft_margin_loss(x, t), (X, T),
           lambda x, t: _soft(x, t).mean()),
    Sample("weight", lambda M, x, t, w: M.nn.functional.multilabel_soft_margin_loss(
        x, t, w, reduction="none"), (X, T, positive(4)), _soft),
    Sample("sum", lambda M, x, t: M.nn.functional.multilabel_soft_margin_loss(x, t, reduction="sum"), (X, T),
           lambda x, t: _soft(x, t).sum()),
    namespace="nn.functional", errors=[("shapes", lambda M: M.nn.functional.multilabel_soft_margin_loss(
        M.ones(2, 2), M.ones(2, 3)), ValueError, "[2, 3]")])
