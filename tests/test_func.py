"""framework.func: against PyTorch's transforms, and where those are missing against numbers."""

import inspect

import numpy as np
import pytest

import framework as fw
from framework import func as F
from framework.errors import AutogradError, ShapeError
from framework.func.tree import flatten

POINT = np.array([0.3, 1.2, -0.7])


def wave(x):
    """A function of a vector to itself, written alike for both libraries."""
    return (x.sin() * x.roll(1)).tanh() * x


def total(x):
    return wave(x).sum()


def tensor(a):
    return fw.tensor(a, dtype=fw.float64)


def assert_same(ours, theirs):
    mine, yours = flatten(ours)[0], flatten(theirs)[0]
    assert len(mine) == len(yours)
    for a, b in zip(mine, yours):
        assert not a.requires_grad
        np.testing.assert_allclose(a.numpy(), np.asarray(b.detach()), rtol=1e-9, atol=1e-12)


def columns(f, x, eps=1e-6):
    """The Jacobian by central differences."""
    parts = []
    for place in np.ndindex(*x.shape):
        step = np.zeros(x.shape)
        step[place] = eps
        parts.append((f(tensor(x + step)).numpy() - f(tensor(x - step)).numpy()) / (2 * eps))
    y = f(tensor(x)).numpy()
    return np.stack(parts, -1).reshape(y.shape + x.shape)


# -- derivatives ---------------------------------------------------------------------------------

NESTS = {
    "grad": (lambda M: M.grad(total), lambda x: columns(total, x)),
    "jacrev": (lambda M: M.jacrev(wave), lambda x: columns(wave, x)),
    "jacfwd": (lambda M: M.jacfwd(wave), lambda x: columns(wave, x)),
    "hessian": (lambda M: M.hessian(total), lambda x: columns(F.grad(total), x)),
    "jacrev of jacrev": (lambda M: M.jacrev(M.jacrev(wave)), lambda x: columns(F.jacrev(wave), x)),
    "jacfwd of jacfwd": (lambda M: M.jacfwd(M.jacfwd(wave)), lambda x: columns(F.jacrev(wave), x)),
    "jacrev of jacfwd": (lambda M: M.jacrev(M.jacfwd(wave)), lambda x: columns(F.jacrev(wave), x)),
    "jacfwd of jacrev": (lambda M: M.jacfwd(M.jacrev(wave)), lambda x: columns(F.jacrev(wave), x)),
    "three deep": (
        lambda M: M.jacfwd(M.jacrev(M.jacfwd(wave))),
        lambda x: columns(F.jacrev(F.jacrev(wave)), x),
    ),
    "vmap of grad": (
        lambda M: lambda x: M.vmap(M.grad(lambda x: (x * x.exp()).sum()))(x.reshape(3, 1)),
        lambda x: ((1 + x) * np.exp(x)).reshape(3, 1),
    ),
}


@pytest.mark.parametrize("name", NESTS)
def test_against_numbers(name):
    make, reference = NESTS[name]
    got = make(F)(tensor(POINT))
    assert not got.requires_grad
    np.testing.assert_allclose(got.numpy(), reference(POINT), rtol=1e-6, atol=1e-7)


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")  # PyTorch's forward mode
@pytest.mark.parametrize("name", NESTS)
def test_against_pytorch(name):
    torch = pytest.importorskip("torch")
    import torch.func as theirs

    make, _ = NESTS[name]
    assert_same(make(F)(tensor(POINT)), make(theirs)(torch.tensor(POINT)))


def test_towers():
    """Four derivatives of a number by every mixture of the modes."""
    one, at = tensor(1.0), tensor(0.7)

    def push(f):
        return lambda x: F.jvp(f, (x,), (one,))[1]

    def f(x):
        return (x.sin() * x).exp()

    want = [f]
    for _ in range(4):
        want.append(F.grad(want[-1]))
    x = 0.7
    slope = np.exp(x * np.sin(x)) * (np.sin(x) + x * np.cos(x))
    np.testing.assert_allclose(want[1](at).item(), slope, rtol=1e-12)
    for mixture in range(16):
        g = f
        for bit in range(4):
            g = push(g) if mixture >> bit & 1 else F.grad(g)
            np.testing.assert_allclose(g(at).item(), want[bit + 1](at).item(), rtol=1e-9)


def test_perturbations_are_not_confused():
    one, at = tensor(1.0), tensor(0.7)

    def push(f):
        return lambda x: F.jvp(f, (x,), (one,))[1]

    for outer in (F.grad, push):
        for inner in (F.grad, push):
            got = outer(lambda x, inner=inner: x * inner(lambda y: x + y)(one))(one)
            assert got.item() == 1.0, (outer, inner)
            got = outer(lambda x, inner=inner: x * inner(lambda y: x * y)(x))(at)
            np.testing.assert_allclose(got.item(), 1.4, rtol=1e-12)


def test_arguments_are_nests():
    x, y = tensor([1.0, 2.0]), tensor([3.0, 4.0])

    def f(d, k=1):
        return k * (d["a"] * d["b"][0]).sum()

    got = F.grad(f)({"a": x, "b": (y, [])}, k=2)
    assert_same(got, {"a": 2 * y, "b": (2 * x, [])})
    got = F.grad(lambda x, y: (x * y).sum(), argnums=(1, 0))(x, y)
    assert_same(got, (x, y))
    assert_same(F.grad(lambda x, y: (x * y).sum(), argnums=-1)(x, y), x)
    for jac in (F.jacrev, F.jacfwd):
        got = jac(lambda x, y: {"p": x * y, "s": (x.sum(),)}, argnums=(0, 1))(x, y)
        assert isinstance(got["p"], tuple)
        assert_same(got["p"], (y.diag(), x.diag()))
        assert_same(got["s"], ((fw.ones(2, dtype=fw.float64), fw.zeros(2, dtype=fw.float64)),))


def test_aux_and_value():
    x = tensor([1.0, 2.0])

    def f(x):
        return (x * x).sum(), {"twice": x * 2, "n": 3}

    g, aux = F.grad(f, has_aux=True)(x)
    assert g.tolist() == [2, 4] and aux["n"] == 3 and not aux["twice"].requires_grad
    g, (value, aux) = F.grad_and_value(f, has_aux=True)(x)
    assert value.item() == 5 and aux["twice"].tolist() == [2, 4]
    (value, aux), g = F.value_and_grad(f, has_aux=True)(x)
    assert value.item() == 5 and g.tolist() == [2, 4]
    value, pull, aux = F.vjp(f, x, has_aux=True)
    assert pull(tensor(1.0))[0].tolist() == [2, 4] and aux["n"] == 3
    value, t, aux = F.jvp(f, (x,), (x,), has_aux=True)
    assert t.item() == 10 and aux["twice"].tolist() == [2, 4] and aux["twice"]._node is None
    for jac in (F.jacrev, F.jacfwd):
        j, aux = jac(f, has_aux=True)(x)
        assert j.tolist() == [2, 4] and aux["n"] == 3


def test_vjp_and_linearize():
    x = tensor(POINT)
    y, pull = F.vjp(wave, x)
    first, second = pull(y), pull(y)
    assert_same(first, second)
    jacobian = columns(wave, POINT)
    np.testing.assert_allclose(first[0].numpy(), y.numpy() @ jacobian, rtol=1e-6)
    y, push = F.linearize(wave, x)
    for v in (POINT, POINT**2):
        np.testing.assert_allclose(push(tensor(v)).numpy(), jacobian @ v, rtol=1e-6)
    np.testing.assert_allclose(F.jvp(wave, (x,), (x,))[1].numpy(), jacobian @ POINT, rtol=1e-6)
    (g,), (h,) = F.hvp(total, (x,), (x,))
    np.testing.assert_allclose(g.numpy(), columns(total, POINT), rtol=1e-6)
    np.testing.assert_allclose(h.numpy(), columns(F.grad(total), POINT) @ POINT, rtol=1e-6)


def test_results_lead_to_what_is_recorded_outside():
    """To parameters that the function closes over and to recorded arguments, and to nothing else."""
    x = tensor(POINT)
    w = tensor([1.0, 2.0, 3.0]).requires_grad_()

    def f(x):
        return (x * x * w).sum()

    for g in (F.grad(f)(x), F.jacrev(f)(x), F.jacfwd(f)(x), F.vjp(f, x)[1](tensor(1.0))[0]):
        np.testing.assert_allclose(fw.autograd.grad(g.sum(), w)[0].numpy(), 2 * POINT)
    assert w.grad is None
    assert not F.grad(lambda x: (x * x).sum() + w.sum())(x).requires_grad
    at = tensor(POINT).requires_grad_()
    for second in (F.hessian(total)(at), F.jacrev(F.jacrev(total))(at)):
        (g,) = fw.autograd.grad(second.sum(), at)
        np.testing.assert_allclose(g.numpy(), F.jacrev(F.hessian(total))(x).sum((0, 1)).numpy())
    with fw.no_grad():
        assert not F.grad(f)(x).requires_grad and not F.jacfwd(f)(x).requires_grad


def test_empty_and_integer_outputs():
    empty = fw.zeros(0)
    for jac in (F.jacrev, F.jacfwd):
        assert jac(lambda x: x * 2)(empty).shape == (0, 0)
        assert jac(lambda x: fw.ones(3))(empty).shape == (3, 0)
        assert jac(lambda x: x.sum().reshape(1, 1))(fw.ones(2)).tolist() == [[[1, 1]]]
        assert jac(lambda x: fw.ones(2))(fw.ones(1)).tolist() == [[0], [0]]


def test_errors():
    x = fw.ones(2)
    with pytest.raises(ShapeError, match=r"got shape \[2\]"):
        F.grad(lambda x: x)(x)
    with pytest.raises(TypeError, match="got float"):
        F.grad(lambda x: 1.0)(x)
    with pytest.raises(TypeError, match="found int"):
        F.grad(lambda x: x)(3)
    with pytest.raises(TypeError, match="int64"):
        F.grad(lambda x: x)(fw.tensor(3))
    with pytest.raises(IndexError, match="argnums=1 is out of range"):
        F.jacrev(lambda x: x, argnums=1)(x)
    with pytest.raises(ValueError, match="twice"):
        F.jacrev(lambda x: x, argnums=(0, -1))(x)
    with pytest.raises(TypeError, match="argnums"):
        F.jacrev(lambda x: x, argnums=0.0)(x)
    with pytest.raises(TypeError, match="has_aux=True"):
        F.grad(lambda x: x.sum(), has_aux=True)(x)
    with pytest.raises(TypeError, match="must be tuples"):
        F.jvp(lambda x: x, x, (x,))
    with pytest.raises(ValueError, match="structure"):
        F.jvp(lambda x: x, (x,), (x, x))
    with pytest.raises(ShapeError, match="tangents"):
        F.jvp(lambda x: x, (x,), (fw.ones(3),))
    with pytest.raises(AutogradError, match="does not depend"):
        F.jvp(lambda x: fw.ones(2), (x,), (x,), strict=True)
    assert F.jvp(lambda x: fw.ones(2), (x,), (x,))[1].tolist() == [0, 0]
    with pytest.raises(ShapeError, match="cotangents"):
        F.vjp(lambda x: x, x)[1](fw.ones(3))
    with pytest.raises(RuntimeError, match="randomness"):
        F.jacfwd(lambda x: x * fw.rand(()))(x)
    with pytest.raises(ZeroDivisionError):
        F.jvp(lambda x: 1 / 0, (x,), (x,))
    assert fw.autograd.forward_ad.unpack_dual(x) == (x, None)  # the level was closed


def test_randomness():
    x = fw.ones(3)
    same = F.jacfwd(lambda x: x * fw.rand(()), randomness="same")(x).diagonal()
    assert (same == same[0]).all()
    different = F.vmap(lambda x: x * fw.rand(()), randomness="different")(x)
    assert len(set(different.tolist())) == 3
    with pytest.raises(RuntimeError, match="vmap: the function drew"):
        F.vmap(lambda x: x * fw.rand(()))(x)
    with pytest.raises(ValueError, match="got 'no'"):
        F.vmap(lambda x: x, randomness="no")(x)


# -- vmap ----------------------------------------------------------------------------------------


def test_vmap():
    a, b = fw.randn(4, 3), fw.randn(3, 4)
    assert fw.allclose(F.vmap(fw.dot, in_dims=(0, 1))(a, b), (a * b.t()).sum(1))
    assert fw.allclose(F.vmap(fw.mv, in_dims=(None, 0))(fw.eye(3), a), a)
    out = F.vmap(lambda d: (d["x"] * 2, d["x"].sum()), in_dims=({"x": 0},), out_dims=(1, 0))({"x": a})
    assert fw.allclose(out[0], 2 * a.t()) and fw.allclose(out[1], a.sum(1))
    nested = F.vmap(F.vmap(lambda x, y: x * y, in_dims=(0, None)), in_dims=(None, 0))(fw.ones(3), a[:, 0])
    assert nested.shape == (4, 3)
    w = fw.ones(3, requires_grad=True)
    F.vmap(lambda x: (x * w).sum())(a).sum().backward()
    assert fw.allclose(w.grad, a.sum(0))


def test_vmap_errors():
    a = fw.ones(4, 3)
    for call, kind, text in [
        (lambda: F.vmap(fw.dot)(a, fw.ones(3, 3)), ValueError, "different sizes"),
        (lambda: F.vmap(fw.dot, in_dims=None)(a, a), ValueError, "no argument"),
        (lambda: F.vmap(fw.dot, in_dims=(0,))(a, a), ValueError, "in_dims"),
        (lambda: F.vmap(fw.sum, in_dims=2)(a), IndexError, "out of range"),
        (lambda: F.vmap(lambda x: 1.0)(a), TypeError, "found float"),
        (lambda: F.vmap(fw.sum)(1.0), TypeError, "is float"),
        (lambda: F.vmap(fw.sum)(fw.ones(0, 2)), ValueError, "empty"),
        (lambda: F.vmap(fw.sum, out_dims=None)(a), ValueError, "out_dims"),
    ]:
        with pytest.raises(kind, match=text):
            call()


# -- modules -------------------------------------------------------------------------------------


class Tied(fw.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = fw.nn.Linear(2, 2, bias=False)
        self.b = fw.nn.Linear(2, 2, bias=False)
        self.b.weight = self.a.weight
        self.register_buffer("calls", fw.zeros(1))

    def forward(self, x, k=1):
        self.calls.add_(1)
        return self.b(self.a(x)) * k


def test_functional_call():
    m, x = Tied(), fw.ones(1, 2)
    before = {name: (t, t.tolist()) for name, t in m.state_dict(keep_vars=True).items()}
    given = fw.eye(2) * 2
    for name in ("a.weight", "b.weight"):
        assert F.functional_call(m, {name: given}, x).tolist() == [[4, 4]]
    own = F.functional_call(m, {"a.weight": given}, (x,), tie_weights=False)
    assert fw.allclose(own, m.b(2 * x))
    calls = fw.zeros(1)
    assert F.functional_call(m, [{"a.weight": given}, {"calls": calls}], x, {"k": 2}).tolist() == [[8, 8]]
    assert calls.item() == 1 and m.calls.item() == 3
    for name, t in m.state_dict(keep_vars=True).items():
        assert t is before[name][0]
        assert t.tolist() == ([3.0] if name == "calls" else before[name][1])


def test_functional_call_after_an_error():
    m = Tied()
    weight = m.a.weight
    with pytest.raises(ShapeError):
        F.functional_call(m, {"a.weight": fw.ones(3, 3)}, fw.ones(1, 2))
    assert m.a.weight is weight and m.b.weight is weight
    for call, kind, text in [
        (lambda: F.functional_call(m, {"a.weight": 3}, ()), TypeError, "'a.weight' must be a Tensor"),
        (lambda: F.functional_call(m, 3, fw.ones(1, 2)), TypeError, "got int"),
        (lambda: F.functional_call(3, {}, fw.ones(1, 2)), TypeError, "got int"),
        (lambda: F.functional_call(m, [{"x": weight}, {"x": weight}], ()), ValueError, "more than one"),
        (
            lambda: F.functional_call(m, {"a.weight": fw.eye(2), "b.weight": fw.eye(2)}, fw.ones(1, 2)),
            ValueError,
            "one tied tensor",
        ),
        (lambda: F.functional_call(m, {"q": weight}, (), strict=True), RuntimeError, "unknown are.*'q'"),
        (lambda: F.functional_call(m, {"a.weight": weight}, (), strict=True), RuntimeError, "missing.*calls"),
    ]:
        with pytest.raises(kind, match=text):
            call()


def test_gradients_of_functional_call():
    m, x = fw.nn.Linear(3, 1).double(), tensor(POINT)
    params = {name: p.detach() for name, p in m.named_parameters()}

    def loss(params, x):
        return F.functional_call(m, params, (x,)).square().sum()

    got = F.grad(loss)(params, x)
    loss(dict(m.named_parameters()), x).backward()
    assert_same(got, {name: p.grad for name, p in m.named_parameters()})
    each = F.vmap(F.grad(loss), in_dims=(None, 0))(params, fw.stack([x, x]))
    assert fw.allclose(each["weight"][1], got["weight"])


def test_ensembles():
    models = [fw.nn.Sequential(fw.nn.Linear(2, 3), fw.nn.BatchNorm1d(3)).eval() for _ in range(3)]
    params, buffers = F.stack_module_state(models)
    assert params["0.weight"].shape == (3, 3, 2) and params["0.weight"].is_leaf
    assert params["0.weight"].requires_grad and not buffers["1.running_mean"].requires_grad
    x = fw.randn(4, 2)
    out = F.vmap(lambda p, b: F.functional_call(models[0], (p, b), (x,)))(params, buffers)
    assert fw.allclose(out, fw.stack([m(x) for m in models]))
    with pytest.raises(ValueError, match="at least one"):
        F.stack_module_state([])
    with pytest.raises(TypeError, match="Linear"):
        F.stack_module_state([models[0], fw.nn.Linear(1, 1)])
    with pytest.raises(ValueError, match="training mode"):
        F.stack_module_state([models[0], fw.nn.Sequential(fw.nn.Linear(2, 3), fw.nn.BatchNorm1d(3))])


# -- PyTorch's arguments -------------------------------------------------------------------------


SAME_NAMES = [
    *("grad", "grad_and_value", "vjp", "jvp", "linearize", "jacrev", "jacfwd", "hessian"),
    *("vmap", "functional_call", "stack_module_state"),
]


def test_signatures():
    torch = pytest.importorskip("torch")
    import torch.func as theirs
    from torch.nn.utils import stateless

    pairs = [
        (getattr(F, name), getattr(theirs, name))
        for name in SAME_NAMES
    ]
    pairs.append((fw.nn.utils.stateless.functional_call, stateless.functional_call))
    pairs += [
        (getattr(fw.autograd.functional, name), getattr(torch.autograd.functional, name))
        for name in ("jvp", "vjp", "hvp", "vhp", "jacobian", "hessian")
    ]
    for a, b in pairs:
        ours, yours = [
            [(p.name, p.kind, p.default) for p in inspect.signature(f).parameters.values()] for f in (a, b)
        ]
        assert ours == yours, a.__name__
