"""One row per exported optimizer: option variants and the method as a plain NumPy loop.

``reference(p, grad, steps, **options)`` gives the parameter after ``steps`` steps, where ``grad(p, t)``
is the gradient at step ``t`` = 0, 1, ...; written from the papers' formulas, not from the package.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from framework import optim

Gradient = Callable[[np.ndarray, int], np.ndarray]


@dataclass(frozen=True)
class OptimizerRow:
    """variants: options to run with. noisy: whether the loss may change from step to step.

    ours: options PyTorch does not have; variants with one of them are not compared with it. theirs:
    whether PyTorch has it. matrices: whether it takes real matrices only. real: whether it takes real
    parameters only. close: how near the loop comes, where the method itself is of low precision.
    """

    name: str
    reference: Callable[..., np.ndarray]
    variants: list[dict[str, Any]]
    noisy: bool = True
    ours: set[str] = field(default_factory=lambda: {"eps_inside"})
    theirs: bool = True
    matrices: bool = False
    real: bool = False
    close: float = 0.0

    @property
    def takes(self) -> set[str]:
        """The names of the options."""
        return set(inspect.signature(getattr(optim, self.name)).parameters)


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


def adafactor(p, grad, steps, lr=1e-2, beta2_decay=-0.8, eps=(None, 1e-3), d=1.0, weight_decay=0.0,
              maximize=False):
    rows = columns = v = 0.0
    tiny = np.finfo("float64").eps if eps[0] is None else eps[0]
    for t in range(1, steps + 1 if p.size else 1):
        g = _gradients(p, grad, t - 1, 0.0, maximize)
        keep, length = 1 - t ** beta2_decay, max(eps[1], np.sqrt(np.mean(p ** 2))) * min(lr, 1 / np.sqrt(t))
        p = p - lr * weight_decay * p
        if p.ndim > 1:
            rows = keep * rows + (1 - keep) * np.mean(g ** 2, -1)
            columns = keep * columns + (1 - keep) * np.mean(g ** 2, -2)
            mean = np.maximum(np.mean(rows, -1), tiny)
            v = np.einsum("...i,...j->...ij", rows, columns) / mean[..., None, None]
        else:
            v = keep * v + (1 - keep) * g ** 2
        u = g / np.sqrt(np.maximum(v, tiny ** 2))
        p = p - length * u / max(1.0, np.sqrt(np.mean(u ** 2)) / d)
    return p


def asgd(p, grad, steps, lr=1e-2, lambd=1e-4, alpha=0.75, t0=1e6, weight_decay=0.0, maximize=False):
    for t in range(steps):
        g = _gradients(p, grad, t, weight_decay, maximize)
        s = lr / (1 + lambd * lr * t) ** alpha
        p = p - s * (lambd * p + g)
    return p


def muon(p, grad, steps, lr=1e-3, weight_decay=0.1, momentum=0.95, nesterov=True, eps=1e-7, ns_steps=5,
         ns_coefficients=(3.4445, -4.7750, 2.0315), adjust_lr_fn=None):
    """Exactly, where the method itself works in bfloat16."""
    m, (a, b, c) = 0.0, ns_coefficients
    for t in range(steps if p.size else 0):
        g = grad(p, t)
        m = momentum * m + (1 - momentum) * g
        u = (1 - momentum) * g + momentum * m if nesterov else m
        left, sizes, right = np.linalg.svd(u, full_matrices=False)  # the iteration acts on singular values
        sizes = sizes / max(np.sqrt(np.sum(sizes ** 2)), eps)
        for _ in range(ns_steps):
            sizes = a * sizes + b * sizes ** 3 + c * sizes ** 5
        n, k = p.shape
        ratio = 0.2 * np.sqrt(max(n, k)) if adjust_lr_fn == "match_rms_adamw" else np.sqrt(max(1, n / k))
        p = p * (1 - lr * weight_decay) - lr * ratio * (left * sizes) @ right
    return p


def nadam(p, grad, steps, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, momentum_decay=4e-3,
          decoupled_weight_decay=False, maximize=False):
    m = v = 0.0
    for t in range(1, steps + 1):
        g = _gradients(p, grad, t - 1, 0.0 if decoupled_weight_decay else weight_decay, maximize)
        if decoupled_weight_decay:
            p = p - lr * weight_decay * p
        u = [betas[0] * (1 - 0.5 * 0.96 ** (i * momentum_decay)) for i in range(1, t + 2)]
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g ** 2
        ahead = u[-1] * m / (1 - np.prod(u)) + (1 - u[-2]) * g / (1 - np.prod(u[:-1]))
        p = p - lr * ahead / (np.sqrt(v / (1 - betas[1] ** t)) + eps)
    return p


def radam(p, grad, steps, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0,
          decoupled_weight_decay=False, maximize=False):
    m = v = 0.0
    most = 2 / (1 - betas[1]) - 1
    for t in range(1, steps + 1):
        g = _gradients(p, grad, t - 1, 0.0 if decoupled_weight_decay else weight_decay, maximize)
        if decoupled_weight_decay:
            p = p - lr * weight_decay * p
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g ** 2
        m_hat, now = m / (1 - betas[0] ** t), most - 2 * t * betas[1] ** t / (1 - betas[1] ** t)
        if now <= 5:
            p = p - lr * m_hat
            continue
        r = np.sqrt((now - 4) * (now - 2) * most / ((most - 4) * (most - 2) * now))
        p = p - lr * m_hat * r * np.sqrt(1 - betas[1] ** t) / (np.sqrt(v) + eps)
    return p


def rprop(p, grad, steps, lr=1e-2, etas=(0.5, 1.2), step_sizes=(1e-6, 50), maximize=False):
    before, size = np.zeros_like(p), np.full_like(p, lr)
    for t in range(steps):
        g = _gradients(p, grad, t, 0.0, maximize)
        turned = g * before < 0
        size = np.clip(np.where(turned, size * etas[0], np.where(g * before > 0, size * etas[1], size)),
                       *step_sizes)
        before = np.where(turned, 0, g)
        p = p - np.sign(before) * size
    return p


def sparse_adam(p, grad, steps, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, maximize=False):
    """Where every element has a gradient."""
    m = v = 0.0
    for t in range(1, steps + 1):
        g = _gradients(p, grad, t - 1, 0.0, maximize)
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g ** 2
        p = p - lr * np.sqrt(1 - betas[1] ** t) / (1 - betas[0] ** t) * m / (np.sqrt(v) + eps)
    return p


def lion(p, grad, steps, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0, maximize=False):
    m = 0.0
    for t in range(steps):
        g = _gradients(p, grad, t, 0.0, maximize)
        p = p - lr * (np.sign(betas[0] * m + (1 - betas[0]) * g) + weight_decay * p)
        m = betas[1] * m + (1 - betas[1]) * g
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
            pair = p.reshape(-1) - before[0].reshape(-1), g - before[1]
            pairs = [*pairs, *([pair] if pair[0] @ pair[1] > 1e-10 else [])][-history_size:]
        length = lr if t else lr * min(1.0, 1.0 / np.abs(g).sum())
        before, d = (p, g), inverse_hessian(pairs, g.size) @ g
        if g @ d >= 1e-9 and np.abs(g).max() > 1e-7:
            p = p - length * d.reshape(p.shape)
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
    OptimizerRow("Adafactor", adafactor, [
        {}, {"lr": 0.1, "weight_decay": 0.1}, {"beta2_decay": -0.5, "d": 2.0},
        {"eps": (1e-3, 0.1), "maximize": True}], real=True),
    OptimizerRow("ASGD", asgd, [
        {}, {"lr": 0.1, "lambd": 0.1, "alpha": 0.5}, {"t0": 5, "weight_decay": 0.1}, {"maximize": True}]),
    OptimizerRow("Muon", muon, [
        {}, {"momentum": 0.8, "weight_decay": 0.3}, {"nesterov": False, "adjust_lr_fn": "match_rms_adamw"},
        {"ns_steps": 6, "ns_coefficients": (3.4, -4.7, 2.0), "adjust_lr_fn": "original"}],
        matrices=True, real=True, close=2e-3),
    OptimizerRow("NAdam", nadam, [
        {}, {"lr": 0.1, "betas": (0.5, 0.9), "momentum_decay": 0.1}, {"weight_decay": 0.1},
        {"weight_decay": 0.1, "decoupled_weight_decay": True}, {"lr": 0.1, "eps": 0.1, "maximize": True}]),
    OptimizerRow("RAdam", radam, [
        {}, {"lr": 0.1, "betas": (0.5, 0.9)}, {"weight_decay": 0.1},
        {"weight_decay": 0.1, "decoupled_weight_decay": True}, {"lr": 0.1, "eps": 0.1, "maximize": True}]),
    OptimizerRow("Rprop", rprop, [
        {}, {"lr": 0.1, "etas": (0.3, 1.5)}, {"step_sizes": (0.005, 0.02)}, {"maximize": True}]),
    OptimizerRow("SparseAdam", sparse_adam, [
        {}, {"lr": 0.1, "betas": (0.5, 0.9)}, {"lr": 0.1, "eps": 0.1, "maximize": True}], real=True),
    OptimizerRow("Lion", lion, [
        {}, {"lr": 0.01, "betas": (0.5, 0.9)}, {"weight_decay": 0.1}, {"maximize": True}], theirs=False),
    OptimizerRow("LBFGS", lbfgs, [dict(lr=0.3, **ONE), dict(lr=0.3, history_size=3, **ONE)], noisy=False),
]}
