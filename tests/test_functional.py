"""autograd.functional: against PyTorch where it is there, and against closed forms."""

import numpy as np
import pytest

import framework as fw
from framework.autograd import functional as AF
from framework.errors import AutogradError, ShapeError

X, Y, V = np.array([0.5, 1.5]), np.array([[1.0, -2.0], [0.3, 0.7]]), np.array([1.0, 2.0])


def two(x, y):
    return (y * x).exp().sum(1), x * x


def one(x, y):
    return ((y * x).exp().sum() * x).sum()


def leaves(value):
    return [leaf for v in value for leaf in leaves(v)] if isinstance(value, (tuple, list)) else [value]


def make(M, a):
    return (fw.from_numpy if M is fw else M.from_numpy)(a.copy())


CALLS = {
    "vjp": lambda M, F: F.vjp(two, (make(M, X), make(M, Y)), (make(M, V), make(M, V))),
    "vjp of one": lambda M, F: F.vjp(lambda x: (x**3).sum(), make(M, X)),
    "jvp": lambda M, F: F.jvp(two, (make(M, X), make(M, Y)), (make(M, V), make(M, Y))),
    "jvp of a linear function": lambda M, F: F.jvp(lambda x: x * 3, make(M, X), make(M, V)),
    "jacobian": lambda M, F: F.jacobian(two, (make(M, X), make(M, Y))),
    "jacobian of one": lambda M, F: F.jacobian(lambda x: x.sum() * x, make(M, X)),
    "jacobian of a constant": lambda M, F: F.jacobian(lambda x: M.ones(3, dtype=M.float64), make(M, X)),
    "hessian": lambda M, F: F.hessian(one, (make(M, X), make(M, Y))),
    "hessian of one": lambda M, F: F.hessian(lambda x: (x**4).sum(), make(M, X)),
    "jacobian, forward": lambda M, F: F.jacobian(
        two, (make(M, X), make(M, Y)), strategy="forward-mode", vectorize=True
    ),
    "hessian, forward over reverse": lambda M, F: F.hessian(
        one, (make(M, X), make(M, Y)), outer_jacobian_strategy="forward-mode", vectorize=True
    ),
    "hvp": lambda M, F: F.hvp(one, (make(M, X), make(M, Y)), (make(M, V), make(M, Y))),
    "vhp": lambda M, F: F.vhp(one, (make(M, X), make(M, Y)), (make(M, V), make(M, Y))),
}


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")  # PyTorch's forward mode
@pytest.mark.parametrize("name", CALLS)
def test_like_torch(name):
    torch = pytest.importorskip("torch")
    ours = leaves(CALLS[name](fw, AF))
    theirs = leaves(CALLS[name](torch, torch.autograd.functional))
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs):
        assert a.shape == tuple(b.shape) and not a.requires_grad
        np.testing.assert_allclose(a.numpy(), b.detach().numpy(), rtol=1e-10)


def test_closed_forms():
    x = fw.from_numpy(X)
    np.testing.assert_allclose(AF.jacobian(lambda x: x * x, x).numpy(), np.diag(2 * X))
    np.testing.assert_allclose(AF.hessian(lambda x: (x**3).sum(), x).numpy(), np.diag(6 * X))
    for product in (AF.hvp, AF.vhp):
        np.testing.assert_allclose(
            product(lambda x: (x**3).sum(), x, fw.from_numpy(V))[1].numpy(), 6 * X * V
        )


def test_create_graph_reaches_the_inputs():
    x = fw.tensor(X, dtype=fw.float64, requires_grad=True)
    for result in (
        AF.jacobian(lambda x: x**3, x, create_graph=True),
        AF.vjp(lambda x: x**3, x, fw.ones(2, dtype=fw.float64), create_graph=True)[1],
        AF.jvp(lambda x: x**3, x, fw.ones(2, dtype=fw.float64), create_graph=True)[1],
        AF.hessian(lambda x: (x**4).sum() / 4, x, create_graph=True),
    ):
        (g,) = fw.autograd.grad(result.sum(), x)
        np.testing.assert_allclose(g.numpy(), 6 * X)
    assert x.grad is None


def test_errors():
    x = fw.from_numpy(X)
    with pytest.raises(AutogradError, match="vjp: v may be left out"):
        AF.vjp(lambda x: x * 2, x)
    with pytest.raises(ShapeError, match=r"jvp: v has shapes \[\[3\]\]"):
        AF.jvp(lambda x: x * 2, x, fw.ones(3, dtype=fw.float64))
    with pytest.raises(ShapeError, match="hvp|vhp"):
        AF.hvp(lambda x: x * 2, x, x)
    with pytest.raises(TypeError, match="inputs must be a Tensor"):
        AF.jacobian(lambda x: x, 3.0)
    with pytest.raises(AutogradError, match="strict=True"):
        AF.jacobian(lambda x: fw.ones(2), x, strict=True)


def test_forward_strategy():
    """It runs func once per input; strict and create_graph mean what they do in reverse."""
    x = fw.from_numpy(X).requires_grad_()
    runs = []

    def cube(x):
        runs.append(1)
        return x**3

    j = AF.jacobian(cube, x, create_graph=True, strategy="forward-mode")
    assert len(runs) == 1 and j.requires_grad
    np.testing.assert_allclose(fw.autograd.grad(j.sum(), x)[0].numpy(), 6 * X)
    assert not AF.jacobian(cube, x, strategy="forward-mode").requires_grad
    h = AF.hessian(lambda x: (x**4).sum(), x, create_graph=True, outer_jacobian_strategy="forward-mode")
    np.testing.assert_allclose(fw.autograd.grad(h.sum(), x)[0].numpy(), 24 * X)
    with pytest.raises(AutogradError, match="does not depend"):
        AF.jacobian(lambda x: fw.ones(2), x, strict=True, strategy="forward-mode")
    with pytest.raises(ValueError, match="sideways"):
        AF.jacobian(cube, x, strategy="sideways")
