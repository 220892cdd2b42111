"""Rows of ops/random/draws.py: what no seed can change. Samples, gradients: tests/test_distributions.py."""

from typing import Any

import numpy as np

from ..base import Sample, normal, row

OFF: dict[str, Any] = {"grad": False}
SHAPES = np.array([[0.5, 1.0, 2.0], [3.0, 40.0, 1e-3]])


def _sum(M: Any, x: Any) -> Any:
    return M._sample_dirichlet(x).sum(-1)


def _rising(M: Any, x: Any) -> Any:
    """1 where the sample grows with its shape."""
    y = x.detach().requires_grad_()
    return (M.autograd.grad(M._standard_gamma(y).sum(), y)[0] > 0).double()


def _first_grows(M: Any, x: Any) -> Any:
    """1 where the first part grows with its concentration."""
    y = x.detach().requires_grad_()
    return (M.autograd.grad(M._sample_dirichlet(y)[0], y)[0].sign()).double()


row("_standard_gamma",
    Sample("gradient", _rising, (np.array([0.5, 3.0]),), lambda x: np.ones(2), **OFF),
    Sample("positive", lambda M, x: (M._standard_gamma(x) >= 0).double(), (SHAPES,),
           lambda x: np.ones((2, 3)), **OFF),
    Sample("empty", lambda M: M._standard_gamma(M.zeros(0, 3)), (), lambda: np.zeros((0, 3), np.float32),
           **OFF),
    errors=[("integers", lambda M: M._standard_gamma(M.tensor([1])), (TypeError, RuntimeError), ""),
            ("complex", lambda M: M._standard_gamma(M.tensor([1j])), (TypeError, RuntimeError), "")])
row("_sample_dirichlet",
    Sample("gradient", _first_grows, (np.array([1.5, 3.0, 2.0]),), lambda x: np.array([1.0, -1.0, -1.0]),
           torch=False, why="there the gradient is a function of its own", **OFF),
    Sample("sums to 1", _sum, (SHAPES,), lambda x: np.ones(2), **OFF),
    Sample("one part", lambda M, x: M._sample_dirichlet(x), (np.array([[2.0], [0.1]]),),
           lambda x: np.ones((2, 1)), **OFF),
    Sample("empty", lambda M: M._sample_dirichlet(M.zeros(0, 3)), (), lambda: np.zeros((0, 3), np.float32),
           **OFF),
    errors=[("integers", lambda M: M._sample_dirichlet(M.tensor([1])), (TypeError, RuntimeError), "")])
row("poisson",
    Sample("rate 0", lambda M, x: M.poisson(x * 0), (SHAPES,), lambda x: np.zeros((2, 3)), **OFF),
    Sample("whole", lambda M, x: M.poisson(x).frac(), (SHAPES,), lambda x: np.zeros((2, 3)), **OFF),
    errors=[("negative", lambda M: M.poisson(M.tensor([-1.0])), (ValueError, RuntimeError), ""),
            ("integers", lambda M: M.poisson(M.tensor([1])), (TypeError, RuntimeError), "")])
row("binomial",
    Sample("certain", lambda M, n: M.binomial(n, M.ones_like(n)), (np.array([3.0, 0.0, 7.0]),),
           lambda n: n, **OFF),
    Sample("broadcast", lambda M, n: M.binomial(n, M.zeros(2, 1, dtype=n.dtype)), (np.array([3.0, 0.0,
                                                                                             7.0]),),
           lambda n: np.zeros((2, 3)), **OFF),
    errors=[("above 1", lambda M: M.binomial(M.ones(1), M.full((1,), 2.0)), (ValueError, RuntimeError), ""),
            ("integers", lambda M: M.binomial(M.tensor([1]), M.tensor([1])), (TypeError, RuntimeError), "")])
M23 = normal(2, 3)
COIN = np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 0.0]])
row("normal",
    Sample("std 0", lambda M, x: M.normal(x, M.zeros_like(x)), (M23,), lambda x: x, **OFF),
    Sample("number std", lambda M, x: M.normal(x, 0.0), (M23,), lambda x: x, **OFF),
    Sample("number mean", lambda M, x: M.normal(2.0, x * 0), (M23,),
           lambda x: np.full((2, 3), 2.0), **OFF),
    Sample("broadcast", lambda M, x: M.normal(x, M.zeros(4, 1, 3, dtype=x.dtype)), (M23,),
           lambda x: np.broadcast_to(x, (4, 2, 3)), **OFF),
    Sample("numbers", lambda M: M.normal(2.0, 0.0, (2,)), (), lambda: np.full(2, 2, np.float32), **OFF),
    errors=[("negative std", lambda M: M.normal(M.ones(2), -1.0), ValueError, "std"),
            ("shapes", lambda M: M.normal(M.ones(2), M.ones(3)), RuntimeError, ""),
            ("integers", lambda M: M.normal(M.tensor([1]), 1.0), RuntimeError, "")])
row("bernoulli",
    Sample("certain", lambda M, x: M.bernoulli(x), (COIN,), lambda x: x, **OFF),
    Sample("p", lambda M, x: M.bernoulli(x, 1.0), (M23,), lambda x: np.ones((2, 3)), **OFF),
    Sample("method", lambda M, x: x.bernoulli(), (COIN,), lambda x: x, **OFF),
    errors=[("above 1", lambda M: M.bernoulli(M.tensor([2.0])), ValueError, ""),
            ("nan", lambda M: M.bernoulli(M.tensor([float("nan")])), ValueError, ""),
            ("integers", lambda M: M.bernoulli(M.tensor([1])), RuntimeError, "")])
row("multinomial",
    Sample("one possible", lambda M, x: M.multinomial(x, 3, replacement=True),
           (np.array([[0.0, 2.0, 0.0], [0.0, 0.0, 1.0]]),),
           lambda x: np.array([[1, 1, 1], [2, 2, 2]]), **OFF),
    Sample("all", lambda M, x: M.multinomial(x, 3).sort()[0], (np.array([0.5, 2.0, 1.0]),),
           lambda x: np.arange(3), **OFF),
    Sample("method", lambda M, x: x.multinomial(1), (np.array([0.0, 2.0]),), lambda x: np.array([1]), **OFF),
    errors=[("too many", lambda M: M.multinomial(M.ones(2), 3), ValueError, ""),
            ("all 0", lambda M: M.multinomial(M.zeros(2), 1), ValueError, ""),
            ("negative", lambda M: M.multinomial(M.tensor([-1.0, 2.0]), 1), ValueError, ""),
            ("none", lambda M: M.multinomial(M.ones(2), 0), ValueError, ""),
            ("3 dims", lambda M: M.multinomial(M.ones(2, 2, 2), 1), RuntimeError, "")])
