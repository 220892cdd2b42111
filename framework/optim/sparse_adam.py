"""SparseAdam: Adam for gradients that are there for some rows only."""

from typing import Any

from ..backends import array_module
from .arrays import zeros_like
from .fused import run_rows
from .groups import LIMITS, Limit, ParamsT, real_only
from .optimizer import Optimizer

POSITIVE: Limit = (lambda v: 0 < v < float("inf"), "a finite number > 0")


class SparseAdam(Optimizer):
    r"""Adam that changes the means and the parameter only where there is a gradient.

    For the rows with a gradient, with ``b1, b2 = betas`` and ``t`` the number of the step::

        m = m + (1 - b1) * (g - m)
        v = v + (1 - b2) * (g ** 2 - v)
        p = p - lr * sqrt(1 - b2 ** t) / (1 - b1 ** t) * m / (sqrt(v) + eps)

    The other rows keep their means as they are, which makes it cheap for large embeddings of which a
    step sees few rows. The gradient is sparse, as of an embedding with ``sparse=True``. Of a dense gradient
    [n, *], which PyTorch refuses here, the rows are taken that are not all 0; a row is an index of the first
    dimension.

    >>> table = fw.ones(3, 2, requires_grad=True)
    >>> optimizer = fw.optim.SparseAdam([table], lr=0.5)
    >>> fw.nn.functional.embedding(fw.tensor([0, 2]), table, sparse=True).sum().backward()
    >>> optimizer.step()
    >>> table.detach()
    tensor([[0.5000, 0.5000],
            [1.0000, 1.0000],
            [0.5000, 0.5000]])
    """

    _flushes = True
    limits = {**LIMITS, "lr": POSITIVE, "eps": POSITIVE}

    def __init__(self, params: ParamsT, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
                 eps: float = 1e-8, maximize: bool = False) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})

    def check_group(self, group: dict[str, Any]) -> None:
        """Raise for options out of range and for complex parameters."""
        super().check_group(group)
        real_only("SparseAdam", group, ValueError)

    def init_state(self, p: Any, group: dict[str, Any]) -> dict[str, Any]:
        """The mean and the mean of squares, of all rows."""
        return {"exp_avg": zeros_like(p), "exp_avg_sq": zeros_like(p)}

    def update(self, p: Any, g: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        """One step of one parameter, by the rows of a dense gradient."""
        if not p.ndim:
            p, g = p.reshape(1), g.reshape(1)
            state = {**state, "exp_avg": state["exp_avg"].reshape(1),
                     "exp_avg_sq": state["exp_avg_sq"].reshape(1)}
        there = g.reshape(len(g), -1).any(axis=1) if g.size else array_module(p).zeros(len(g), dtype=bool)
        (rows,) = there.nonzero()
        self.update_where(p, (rows,), g[rows], state, group)

    def update_where(self, p: Any, indices: tuple, values: Any, state: dict[str, Any],
                     group: dict[str, Any]) -> None:
        """One step of one parameter at ``p[indices]``, whose gradient is ``values``; no place twice.

        indices: k arrays [n] for the first k dimensions, as a coalesced sparse gradient has them.
        """
        (b1, b2), t = group["betas"], state["step"]
        rate = group["lr"] * (1 - b2 ** t) ** 0.5 / (1 - b1 ** t)
        if run_rows("sparse_adam_rows", [p, values, state["exp_avg"], state["exp_avg_sq"]], indices,
                    {"rest1": 1 - b1, "rest2": 1 - b2, "eps": group["eps"], "lr": rate}):
            return
        m, v = state["exp_avg"][indices], state["exp_avg_sq"][indices]
        m += (1 - b1) * (values - m)
        v += (1 - b2) * (values * values - v)
        state["exp_avg"][indices], state["exp_avg_sq"][indices] = m, v
        d = array_module(p).sqrt(v)
        d += group["eps"]
        p[indices] -= rate * m / d
