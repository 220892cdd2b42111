"""One row per exported optimizer: option variants and the method as a plain NumPy loop.

``reference(p, grad, steps, **options)`` gives the parameter after ``steps`` steps, where ``grad(p, t)``
is the gradient at step ``t`` = 0, 1, ...; written from the papers' formulas, not from the package.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Gradient = Callable[[np.ndarray, int], np.ndarray]


@dataclass(frozen=True)
class OptimizerRow:
    """variants: options to run with. noisy: whether the loss may change from step to step.

    ours: options PyTorch does not have; variants with one of them are not compared with it.
    """

    name: str
    reference: Callable[..., np.ndarray]
    variants: list[dict[str, Any]]
    noisy: bool = True
    ours: set[str] = field(default_factory=lambda: {"eps_inside"})


def _gradients(p: np.ndarray, grad: Gradient, t: int, weight_decay: float, maximize: bool) -> np.ndarray:
    g = grad(p, t)
    return (-g if maximize else g) + weight_decay * p


def sgd(p, grad, steps, lr=1e-3, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False,
        maximize=False):
    b = None
    for t in range(steps):
        g = _gradients(p, grad, t, weight_decay, maximize)
        if momentum:
            b = g if b is None else momentum * b + (1 - dampening) * g
            g = g + momentum * b if nesterov else b
        p = p - lr * g
    return p


def adagrad(p, grad, steps, lr=1e-2, lr_decay=0.0, weight_decay=0.0, initial_accumulator_value=0.0,
            eps=1e-10, maximize=False, eps_inside=False):
    s = np.zeros_like(p) + initial_accumulator_value
    for t in range(steps):
        g = _gradients(p, grad, t, weight_decay, maximize)
        s = s + g ** 2
        root = np.sqrt(s + eps) if eps_inside else np.sqrt(s) + eps
        p = p - lr / (1 + t * lr_decay) * g / root
    return p


def rmsprop(p, grad, steps, lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0.0, momentum=0.0, centered=False,
            maximize=False, eps_inside=False):
    v = m = b = 0.0
    for t in range(steps):
        g = _gradients(p, grad, t, weight_decay, maximize)
        v = alpha * v + (1 - alpha) * g ** 2
        m = alpha * m + (1 - alpha) * g
        spread = v - m ** 2 if centered else v
        b = momentum * b + g / (np.sqrt(spread + eps) if eps_inside else np.sqrt(spread) + eps)
        p = p - lr * b
    return p


def adam(p, grad, steps, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, amsgrad=False,
         maximize=False, eps_inside=False, decoupled=False):
    m = v = top = 0.0
    for t in range(steps):
        g = _gradients(p, grad, t, 0.0 if decoupled else weight_decay, maximize)
        if decoupled:
            p = p - lr * weight_decay * p
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g ** 2
        top = np.maximum(top, v)
        m_hat = m / (1 - betas[0] ** (t + 1))
        v_hat = (top if amsgrad else v) / (1 - betas[1] ** (t + 1))
        p = p - lr * m_hat / (np.sqrt(v_hat + eps) if eps_inside else np.sqrt(v_hat) + eps)
    return p


def adamw(p, grad, steps, weight_decay=1e-2, **options):
    return adam(p, grad, steps, weight_decay=weight_decay, decoupled=True, **options)


def adadelta(p, grad, steps, lr=1.0, rho=0.9, eps=1e-6, weight_decay=0.0, maximize=False):
    v = a = 0.0
    for t in range(steps):
        g = _gradients(p, grad, t, weight_decay, maximize)
        v = rho * v + (1 - rho) * g ** 2
        u = np.sqrt(a + eps) / np.sqrt(v + eps) * g
        a = rho * a + (1 - rho) * u ** 2
        p = p - lr * u
    return p


def adamax(p, grad, steps, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, maximize=False):
    m = n = 0.0
    for t in range(steps):
        g = _gradients(p, grad, t, weight_decay, maximize)
        m = betas[0] * m + (1 - betas[0]) * g
        n = np.maximum(betas[1] * n, np.abs(g) + eps)
        p = p - lr / (1 - betas[0] ** (t + 1)) * m / n
    return p


def inverse_hessian(pairs: list, size: int) -> np.ndarray:
    """The matrix that L-BFGS implies, by the BFGS formula on the whole matrix."""
    if not pairs:
        return np.eye(size)
    s, y = pairs[-1]
    h = np.eye(size) * (s @ y) / (y @ y)
    for s, y in pairs:
        rho = 1.0 / (y @ s)
        left = np.eye(size) - rho * np.outer(s, y)
        h = left @ h @ left.T + rho * np.outer(s, s)
    return h


def lbfgs(p, grad, steps, lr=1.0, history_size=100, **options):
    """With ``max_iter=1`` and no line search: each step is one quasi-Newton step of length lr."""
    pairs, before = [], None
    for t in range(steps if p.size else 0):
        g = grad(p, t).reshape(-1)
        if before is not None:
            pairs = [*pairs, (p.reshape(-1) - before[0].reshape(-1), g - before[1])][-history_size:]
        length = lr if pairs else lr * min(1.0, 1.0 / np.abs(g).sum())
        before = p, g
        p = p - length * (inverse_hessian(pairs, g.size) @ g).reshape(p.shape)
    return p


ONE = {"max_iter": 1, "max_eval": 1, "line_search_fn": None}
ROWS = {row.name: row for row in [
    OptimizerRow("SGD", sgd, [
        {}, {"lr": 0.1}, {"lr": 0.1, "momentum": 0.9}, {"lr": 0.1, "momentum": 0.9, "dampening": 0.3},
        {"lr": 0.1, "momentum": 0.5, "nesterov": True, "weight_decay": 0.1}, {"lr": 0.01, "maximize": True}]),
    OptimizerRow("Adagrad", adagrad, [
        {}, {"lr": 0.1, "lr_decay": 0.1}, {"weight_decay": 0.1, "initial_accumulator_value": 0.5},
        {"lr": 0.1, "eps": 0.1, "maximize": True}, {"lr": 0.1, "eps": 0.1, "eps_inside": True}]),
    OptimizerRow("RMSprop", rmsprop, [
        {}, {"momentum": 0.9}, {"centered": True}, {"momentum": 0.5, "centered": True, "weight_decay": 0.1},
        {"alpha": 0.5, "eps": 0.1, "maximize": True}, {"eps": 0.1, "eps_inside": True, "centered": True}]),
    OptimizerRow("Adam", adam, [
        {}, {"lr": 0.1, "betas": (0.5, 0.9)}, {"weight_decay": 0.1}, {"lr": 0.1, "amsgrad": True},
        {"lr": 0.1, "eps": 0.1, "maximize": True},
        {"lr": 0.1, "eps": 0.1, "eps_inside": True, "amsgrad": True}]),
    OptimizerRow("AdamW", adamw, [
        {}, {"lr": 0.1, "weight_decay": 0.3}, {"lr": 0.1, "amsgrad": True}, {"maximize": True},
        {"eps": 0.1, "eps_inside": True}]),
    OptimizerRow("Adadelta", adadelta, [
        {}, {"lr": 0.5, "rho": 0.5}, {"eps": 1e-2, "weight_decay": 0.1}, {"maximize": True}]),
    OptimizerRow("Adamax", adamax, [
        {}, {"lr": 0.1, "betas": (0.5, 0.9)}, {"weight_decay": 0.1}, {"eps": 0.1, "maximize": True}]),
    OptimizerRow("LBFGS", lbfgs, [dict(lr=0.3, **ONE), dict(lr=0.3, history_size=3, **ONE)], noisy=False),
]}
