"""Derivatives of derivatives."""

from types import ModuleType
from typing import Any

from ..workload import Case, fill, normal, workload


@workload(tiny={"batch": 4, "width": 8})
def double_backward(M: ModuleType, *, batch: int = 128, width: int = 256) -> Case:
    """Gradient penalty of an MLP of width 256, batch 128: backward through backward."""
    L, T = M.nn.Linear, M.nn.Tanh
    model = fill(M, M.nn.Sequential(L(width, width), T(), L(width, width), T(), L(width, 1)))
    x = normal(M, batch, width, requires_grad=True)

    def run() -> Any:
        model.zero_grad()
        x.grad = None
        g, = M.autograd.grad(model(x).sum(), x, create_graph=True)
        loss = (g.square().sum(1).sqrt() - 1).square().mean()
        loss.backward()
        return loss
    # weights of the last layer have a gradient here, its bias has none
    return Case(run, lambda loss: [loss, x.grad, *[p.grad for _, p in sorted(model.named_parameters())
                                                   if p.grad is not None]])


@workload(tiny={"size": 3})
def hessian_vector(M: ModuleType, *, size: int = 200) -> Case:
    """Hessian times a vector of the Rosenbrock function of 200 numbers."""
    x, v = normal(M, size, requires_grad=True), normal(M, size, seed=1)

    def run() -> Any:
        y = (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()
        g, = M.autograd.grad(y, x, create_graph=True)
        return M.autograd.grad(g, x, v)[0]
    return Case(run)
