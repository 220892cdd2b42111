"""Rows of ops/pointwise/activations.py."""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from ..base import Sample, integers, normal, row

X = normal(3, 4)
BIG = np.array([-1e4, -800.0, -30.0, 30.0, 800.0, 1e4])


def sig(x: Any) -> Any:
    """The logistic function."""
    return np.exp(-np.logaddexp(0.0, -x))


def _erf(x: Any) -> Any:
    return np.vectorize(math.erf, otypes=[float])(x)


def activation(name: str, reference: Any, variants: dict | None = None, big: bool = True,
               errors: Any = None, inplace: bool = False, large_torch: bool = True,
               rough: bool = False, torch_grad: bool = True) -> None:
    """A row in nn.functional: plain, large, 0-dim and empty inputs, and each variant of settings."""
    def call(M: Any, x: Any, **settings: Any) -> Any:
        return getattr(M.nn.functional, name)(x, **settings)
    tol: Any = {"tol": 10.0, "why": "PyTorch computes with a constant in float32"} if rough else {}
    samples = [Sample("plain", call, (X,), reference, **tol),
               Sample("scalar", call, (normal(seed=3),), reference, **tol),
               Sample("empty", call, (np.zeros((0, 2)),), reference)]
    if big:
        samples.append(Sample("large", call, (BIG,), reference, order=1, torch=large_torch,
                              why="differences see no curvature; PyTorch's second derivative is nan"))
    if inplace:
        samples.append(Sample("inplace", lambda M, x: call(M, x * 1.0, inplace=True), (X,), reference, **tol))
    for label, settings in (variants or {}).items():
        samples.append(Sample(label, lambda M, x, s=settings: call(M, x, **s), (X,),
                              lambda x, s=settings: reference(x, **s), **tol))
    if not torch_grad:
        samples = [Sample("value", call, (X,), reference, grad=False),
                   *[replace(s, torch=False, why="PyTorch has no second derivative") for s in samples]]
    wrong = ("not a tensor", lambda M: call(M, [1.0]), TypeError, name)
    row(name, *samples, namespace="nn.functional", errors=[wrong, *(errors or [])])


def _elu(x: Any, alpha: float = 1.0) -> Any:
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def _celu(x: Any, alpha: float = 1.0) -> Any:
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0) / alpha))


def _gelu(x: Any, approximate: str = "none") -> Any:
    if approximate == "none":
        return 0.5 * x * (1 + _erf(x / math.sqrt(2)))
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


def _softplus(x: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
    return np.where(x * beta > threshold, x, np.logaddexp(0, beta * x) / beta)


row("relu",
    Sample("plain", lambda M, x: M.relu(x), (X,), lambda x: np.maximum(x, 0)),
    Sample("method", lambda M, x: x.relu(), (X,), lambda x: np.maximum(x, 0)),
    Sample("in place", lambda M, x: (x * 1.0).relu_(), (X,), lambda x: np.maximum(x, 0)),
    Sample("integers", lambda M, x: M.relu(x), (integers(5, low=-5),), lambda x: np.maximum(x, 0),
           grad=False),
    errors=[("not a tensor", lambda M: M.relu([1.0]), TypeError, "relu")])
activation("relu", lambda x: np.maximum(x, 0), inplace=True)
activation("relu6", lambda x: np.clip(x, 0, 6), inplace=True)
activation("sigmoid", sig)
activation("tanh", np.tanh)
activation("elu", _elu, {"alpha": {"alpha": 0.7}}, inplace=True)
activation("celu", _celu, {"alpha": {"alpha": 0.7}}, inplace=True, rough=True, errors=[
    ("alpha 0", lambda M: M.nn.functional.celu(M.ones(2), alpha=0.0), ValueError, "alpha")])
activation("selu", lambda x: 1.0507009873554805 * _elu(x, 1.6732632423543772), inplace=True)
activation("leaky_relu", lambda x, negative_slope=0.01: np.where(x > 0, x, negative_slope * x),
           {"slope": {"negative_slope": 0.3}}, inplace=True)
activation("gelu", _gelu, {"tanh": {"approximate": "tanh"}}, errors=[
    ("approximate", lambda M: M.nn.functional.gelu(M.ones(2), approximate="erf"), ValueError,
     "approximate must be")])
activation("silu", lambda x: x * sig(x), inplace=True)
activation("mish", lambda x: x * np.tanh(np.logaddexp(0, x)), inplace=True,
           large_torch=False)
activation("hardswish", lambda x: x * np.clip(x + 3, 0, 6) / 6, inplace=True)
activation("hardsigmoid", lambda x: np.clip(x + 3, 0, 6) / 6, inplace=True,
           torch_grad=False)
activation("hardtanh", lambda x, min_val=-1.0, max_val=1.0: np.clip(x, min_val, max_val),
           {"limits": {"min_val": -0.3, "max_val": 0.2}}, inplace=True, errors=[
    ("limits", lambda M: M.nn.functional.hardtanh(M.ones(2), 2.0, 1.0), ValueError, "min_val")])
activation("hardshrink", lambda x, lambd=0.5: np.where(np.abs(x) <= lambd, 0.0, x),
           {"lambd": {"lambd": 0.8}})
activation("softshrink", lambda x, lambd=0.5: np.sign(x) * np.maximum(np.abs(x) - lambd, 0),
           {"lambd": {"lambd": 0.8}}, errors=[
    ("negative", lambda M: M.nn.functional.softshrink(M.ones(2), -1.0), ValueError, "lambd")])
activation("tanhshrink", lambda x: x - np.tanh(x))
activation("softplus", _softplus, {"beta": {"beta": 2.0}, "threshold": {"beta": 2.0, "threshold": 1.0}})
activation("softsign", lambda x: x / (1 + np.abs(x)))
activation("logsigmoid", lambda x: -np.logaddexp(0, -x))

row("threshold",
    Sample("plain", lambda M, x: M.nn.functional.threshold(x, 0.1, -2.0), (X,),
           lambda x: np.where(x > 0.1, x, -2.0)),
    Sample("in place", lambda M, x: M.nn.functional.threshold(x * 1.0, 0.1, -2.0, True), (X,),
           lambda x: np.where(x > 0.1, x, -2.0)),
    Sample("integers", lambda M, x: M.nn.functional.threshold(x, 3, 7), (integers(6),),
           lambda x: np.where(x > 3, x, 7), grad=False),
    Sample("a fraction of integers", lambda M, x: M.nn.functional.threshold(x, 2.5, 7), (integers(6),),
           lambda x: np.where(x > 2.5, x, 7), grad=False),
    namespace="nn.functional",
    errors=[("not a tensor", lambda M: M.nn.functional.threshold(1.0, 0.1, 0.0), TypeError, "threshold"),
            ("beyond the dtype", lambda M: M.nn.functional.threshold(M.ones(2, dtype=M.uint8), 3, -2),
             (ValueError, OverflowError), "-2 is out of bounds for uint8")])


def _prelu(x: Any, w: Any) -> Any:
    if w.size > 1:
        w = w.reshape((-1,) + (1,) * (x.ndim - 2))
    return np.where(x > 0, x, w * x)


row("prelu",
    Sample("one", lambda M, x, w: M.nn.functional.prelu(x, w), (X, np.array([0.3])), _prelu),
    Sample("channels", lambda M, x, w: M.nn.functional.prelu(x, w), (X, normal(4)), _prelu),
    Sample("images", lambda M, x, w: M.nn.functional.prelu(x, w), (normal(2, 3, 2, 2), normal(3)), _prelu),
    Sample("vector", lambda M, x, w: M.nn.functional.prelu(x, w), (normal(5), np.array([0.3])), _prelu),
    namespace="nn.functional", errors=[
        ("channels", lambda M: M.nn.functional.prelu(M.ones(2, 3), M.ones(2)), RuntimeError,
         "one per channel"),
        ("not a tensor", lambda M: M.nn.functional.prelu(M.ones(2, 3), 0.2), TypeError, "weight")])


def _glu(x: Any, dim: int = -1) -> Any:
    a, b = np.split(x, 2, axis=dim)
    return a * sig(b)


row("glu",
    Sample("last", lambda M, x: M.nn.functional.glu(x), (X,), _glu),
    Sample("dim 0", lambda M, x: M.nn.functional.glu(x, 0), (normal(4, 3),), lambda x: _glu(x, 0)),
    Sample("middle", lambda M, x: M.nn.functional.glu(x, dim=-2), (normal(2, 2, 3),),
           lambda x: _glu(x, -2)),
    namespace="nn.functional", errors=[
        ("odd", lambda M: M.nn.functional.glu(M.ones(2, 3)), RuntimeError, "even"),
        ("dim", lambda M: M.nn.functional.glu(M.ones(2, 4), 2), IndexError, "dim=2")])
