"""Every optimizer against its NumPy loop and PyTorch, and what the base promises to all of them."""

import copy
import inspect
import pickle
import warnings

import numpy as np
import pytest
from optimizer_rows import ROWS
from test_cuda import cupy  # noqa: F401  (a fixture)

import framework as fw
from framework import optim
from framework.backends import cuda as backend
from framework.errors import AutogradError, CheckpointError, DTypeError, ShapeError
from framework.node import Leaf
from framework.optim import SGD, Adam, Optimizer, RMSprop

STEPS = 30
EXPORTED = sorted(n for n, v in vars(optim).items()
                  if isinstance(v, type) and issubclass(v, Optimizer) and v is not Optimizer)
CASES = [pytest.param(row, options, id=f"{row.name}-{options}")
         for row in ROWS.values() for options in row.variants]


class Problem:
    """A sum of parabolas, one per element; the minimum moves from step to step if ``noisy``."""

    def __init__(self, shape, dtype="float64", noisy=True):
        rng = np.random.default_rng(7)
        self.start = rng.normal(size=shape).astype(dtype)
        self.scale = rng.uniform(0.5, 2.0, size=shape).astype(dtype)
        self.centers = [rng.normal(size=shape).astype(dtype) for _ in range(STEPS)]
        self.noisy = noisy

    def center(self, t):
        return self.centers[t if self.noisy else 0]

    def grad(self, p, t):
        return self.scale * (p - self.center(t))

    def run(self, optimizer, p, steps, tensor=fw.tensor):
        scale = tensor(self.scale)
        for t in steps:
            center = tensor(self.center(t))

            def closure():
                optimizer.zero_grad()
                loss = (0.5 * scale * (p - center) * (p - center)).sum()
                loss.backward()
                return loss

            optimizer.step(closure)
        return p.detach().numpy()


def leaf(values, dtype=None):
    return fw.tensor(values, dtype=dtype, requires_grad=True)


def with_grad(p, g):
    p.grad = fw.tensor(g, dtype=p.dtype)
    return p


def test_every_exported_optimizer_has_a_row():
    assert sorted(ROWS) == EXPORTED


@pytest.mark.parametrize("shape", [(), (2, 3), (0, 2), (2, 3, 2)], ids=str)
@pytest.mark.parametrize("dtype, tol", [("float64", 1e-10), ("float32", 2e-5)])
@pytest.mark.parametrize("row, options", CASES)
def test_equals_the_numpy_loop(row, options, dtype, tol, shape):
    if row.matrices and len(shape) != 2:
        pytest.skip("takes matrices only")
    problem = Problem(shape, dtype, row.noisy)
    p, tol = leaf(problem.start), max(tol, row.close)
    got = problem.run(getattr(optim, row.name)([p], **options), p, range(STEPS))
    exact = Problem(shape, "float64", row.noisy)
    assert got.dtype == dtype and got.shape == shape
    np.testing.assert_allclose(got, row.reference(exact.start, exact.grad, STEPS, **options), tol, tol)


@pytest.fixture
def wide_numbers():
    """PyTorch keeps some numbers of its states as tensors of its default dtype; ours are float64."""
    torch = pytest.importorskip("torch")
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("dtype, tol", [("float64", 1e-12), ("float32", 1e-5)])
@pytest.mark.parametrize("row, options", CASES)
def test_equals_pytorch(row, options, dtype, tol, wide_numbers):
    torch = pytest.importorskip("torch")
    if row.ours & set(options) or not row.theirs:
        pytest.skip("PyTorch does not have it")
    tol = max(tol, row.close / 10)
    problem = Problem((2, 3), dtype, row.noisy)
    p, q = leaf(problem.start), torch.tensor(problem.start, requires_grad=True)
    ours = problem.run(getattr(optim, row.name)([p], **options), p, range(STEPS))
    theirs = getattr(torch.optim, row.name)([q], **options)
    if row.name == "SparseAdam":
        q.register_post_accumulate_grad_hook(lambda q: setattr(q, "grad", q.grad.to_sparse()))
    theirs = problem.run(theirs, q, range(STEPS), torch.tensor)
    np.testing.assert_allclose(ours, theirs, tol, tol)


@pytest.mark.parametrize("row", [r for r in ROWS.values() if r.theirs], ids=lambda r: r.name)
def test_defaults_and_arguments_are_those_of_pytorch(row):
    torch = pytest.importorskip("torch")
    make = getattr(torch.optim, row.name)
    ours = getattr(optim, row.name)([fw.ones(1, 1)]).defaults
    theirs = {**make([torch.ones(1, 1)]).defaults, **({"line_search_fn": ours["line_search_fn"]}
                                                      if row.name == "LBFGS" else {})}
    assert {k: v for k, v in ours.items() if k not in row.ours} == theirs
    here = inspect.signature(getattr(optim, row.name)).parameters
    there = inspect.signature(make).parameters
    assert [(n, p.kind) for n, p in here.items() if n not in row.ours] == [
        (n, p.kind) for n, p in there.items()]


@pytest.mark.parametrize("how", ["state_dict", "pickle", "deepcopy"])
@pytest.mark.parametrize("row, options", CASES)
def test_resume_is_bitwise_equal(row, options, how):
    problem = Problem((2, 3), "float32", row.noisy)
    make = getattr(optim, row.name)
    p = leaf(problem.start)
    whole = problem.run(make([("p", p)], **options), p, range(STEPS)).copy()

    p = leaf(problem.start)
    first = make([("p", p)], **options)
    problem.run(first, p, range(10))
    if how == "state_dict":
        q = leaf(p.detach().numpy())
        second = make([("p", q)])
        second.load_state_dict(copy.deepcopy(first.state_dict()))
    else:
        second = pickle.loads(pickle.dumps(first)) if how == "pickle" else copy.deepcopy(first)
        q = second.param_groups[0]["params"][0]
        assert q is not p
    assert problem.run(second, q, range(10, STEPS)).tobytes() == whole.tobytes()


@pytest.mark.parametrize("name", EXPORTED)
def test_missing_gradients_leave_parameters_alone(name):
    a, b = leaf([[1.0, 2.0]]), leaf([[3.0]])
    optimizer = getattr(optim, name)([a, b], lr=0.1)

    def closure():
        optimizer.zero_grad()
        loss = (a * a).sum()
        loss.backward()
        return loss

    loss = optimizer.step(closure)
    assert float(loss) == 5.0
    assert b.tolist() == [[3.0]] and a.tolist() != [[1.0, 2.0]]
    if name != "LBFGS":
        optimizer.zero_grad()
        before = a.tolist()
        assert optimizer.step() is None
        assert a.tolist() == before and optimizer.state[a]["step"] == 1
        assert (optimizer.state[b]["step"] == 0) if name == "Adagrad" else b not in optimizer.state


@pytest.mark.parametrize("name", EXPORTED)
def test_a_step_changes_versions_and_records_nothing(name):
    p = leaf([[1.0, 2.0]])
    optimizer = getattr(optim, name)([p], lr=0.1)
    y = (p * p).sum()
    version = p._version

    def closure():
        optimizer.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    with fw.no_grad():  # the closure still records
        optimizer.step(closure)
    assert p._version > version and type(p._node) is Leaf and p.is_leaf
    assert all(not s.requires_grad for s in optimizer.state[p].values() if isinstance(s, fw.Tensor))
    with pytest.raises(AutogradError, match=f"{name}.step"):
        y.backward()


@pytest.mark.parametrize("name", EXPORTED)
def test_the_gradient_is_not_changed(name):
    p = with_grad(leaf([[1.0, 2.0]]), [[0.5, -0.5]])
    options = {k: v for k, v in {"maximize": True, "weight_decay": 0.1}.items() if k in ROWS[name].takes}
    optimizer = getattr(optim, name)([p], **options)
    optimizer.step(lambda: 1.0)
    assert p.grad.tolist() == [[0.5, -0.5]]


def test_options_of_groups():
    a, b = with_grad(leaf([1.0]), [1.0]), with_grad(leaf([1.0]), [1.0])
    optimizer = SGD([{"params": [a]}, {"params": b, "lr": 0.25}], lr=0.5)
    optimizer.step()
    assert (a.item(), b.item()) == (0.5, 0.75)
    assert repr(optimizer).startswith("SGD (\nParameter Group 0\n    dampening: 0\n")
    assert "    lr: 0.5\n" in repr(optimizer) and "    lr: 0.25\n" in repr(optimizer)


@pytest.mark.parametrize("name", EXPORTED)
@pytest.mark.parametrize("params, error, text", [
    ([], ValueError, "empty parameter list"),
    (fw.ones(2), TypeError, "params must be an iterable of tensors or of dicts, got Tensor"),
    ({fw.ones(2)}, TypeError, "must be ordered, got a set"),
    ([1.0], TypeError, r"params\[0\] must be a Tensor, got float"),
    ([fw.ones(2, requires_grad=True) * 2], ValueError, "non-leaf"),
    ([fw.tensor([1, 2])], DTypeError, "must be floating or complex, it is framework.int64"),
    ([{"lr": 1.0}], ValueError, "needs the key 'params'"),
    ([("a", fw.ones(1)), fw.ones(1)], ValueError, "either all parameters come as"),
    ([("a", fw.ones(1)), ("a", fw.ones(1))], ValueError, r"names \['a'\] are given to two"),
    ([{"params": [fw.ones(1)], "lr": -1.0}], ValueError, r"lr=-1.0 must be a finite number >"),
])
def test_wrong_parameters(name, params, error, text):
    with pytest.raises(error, match=text):
        getattr(optim, name)(params)


@pytest.mark.parametrize("name, options, error, text", [
    *[(n, {"lr": -0.5}, ValueError, rf"{n}: lr=-0.5 must be") for n in EXPORTED],
    *[(n, {"lr": float("nan")}, ValueError, "lr=nan must be") for n in EXPORTED],
    *[(n, {"lr": "fast"}, TypeError, "lr must be a number, got str") for n in EXPORTED],
    *[(n, {"weight_decay": -1}, ValueError, "weight_decay=-1") for n in EXPORTED
      if "weight_decay" in ROWS[n].takes],
    *[(n, {"eps": -1e-8}, ValueError, "eps=-1e-08") for n in EXPORTED
      if "eps" in ROWS[n].takes and n != "Adafactor"],
    *[(n, {"betas": (0.9, 1.0)}, ValueError, r"betas=\(0.9, 1.0\) must be in \[0, 1\)")
      for n in ("Adam", "AdamW", "Adamax")],
    *[(n, {"differentiable": True}, ValueError, "differentiable=True is not supported")
      for n in EXPORTED if "differentiable" in ROWS[n].takes],
    *[(n, {"capturable": True}, ValueError, "capturable=True is not supported")
      for n in EXPORTED if "capturable" in ROWS[n].takes
      and not getattr(fw.optim, n)._has_kernels(True)],
    *[(n, {"foreach": True, "fused": True}, RuntimeError, "are two forms")
      for n in EXPORTED if "fused" in ROWS[n].takes],
    *[(n, {"lr": fw.ones(2)}, ValueError, "a number or a tensor of one element") for n in EXPORTED],
    ("Adam", {"lr": fw.ones(1), "foreach": True}, ValueError, "which foreach=True does not take"),
    ("Adafactor", {"eps": (-1.0, 1.0)}, ValueError, "eps="),
    ("Adafactor", {"d": 0.5}, ValueError, "d=0.5 must be at least 1"),
    ("Adafactor", {"beta2_decay": 0.5}, ValueError, "beta2_decay=0.5 must be at most 0"),
    ("ASGD", {"lambd": -1}, ValueError, "lambd=-1"),
    ("Muon", {"adjust_lr_fn": "x"}, ValueError, "adjust_lr_fn='x' must be"),
    ("Muon", {"ns_steps": 100}, ValueError, "ns_steps=100"),
    ("Muon", {"ns_coefficients": (1.0,)}, ValueError, "must be three numbers"),
    ("NAdam", {"momentum_decay": -1}, ValueError, "momentum_decay=-1"),
    ("Rprop", {"etas": (1.5, 2.0)}, ValueError, "must be a factor in"),
    ("SparseAdam", {"eps": 0.0}, ValueError, "a finite number > 0"),
    *[(n, {"speed": 1}, TypeError, "speed") for n in EXPORTED],
    ("Adam", {"betas": (0.9,)}, ValueError, "must be two numbers"),
    ("SGD", {"momentum": -0.1}, ValueError, "momentum=-0.1"),
    ("SGD", {"nesterov": True}, ValueError, "nesterov=True needs momentum > 0"),
    ("SGD", {"nesterov": True, "momentum": 0.9, "dampening": 0.1}, ValueError, "dampening=0.1"),
    ("Adagrad", {"lr_decay": -1}, ValueError, "lr_decay=-1"),
    ("Adagrad", {"initial_accumulator_value": -1}, ValueError, "initial_accumulator_value=-1"),
    ("RMSprop", {"alpha": -1}, ValueError, "alpha=-1"),
    ("Adadelta", {"rho": 1.5}, ValueError, r"rho=1.5 must be in \[0, 1\]"),
])
def test_wrong_options(name, options, error, text):
    with pytest.raises(error, match=text):
        getattr(optim, name)([fw.ones(1, 1, requires_grad=True)], **options)


@pytest.mark.parametrize("name, parameter, text", [
    ("Muon", fw.ones(2), r"takes matrices only, got a parameter of shape \[2\]"),
    ("Muon", fw.ones(2, 2, dtype=fw.complex64), "complex parameters are not supported"),
    ("Adafactor", fw.ones(2, dtype=fw.complex64), "complex parameters are not supported"),
    ("SparseAdam", fw.ones(2, dtype=fw.complex64), "complex parameters are not supported")])
def test_parameters_that_do_not_fit(name, parameter, text):
    complex_there = parameter.is_complex() and name != "SparseAdam"
    with pytest.raises(DTypeError if complex_there else ValueError, match=text):
        getattr(optim, name)([parameter.requires_grad_()])


def test_speed_hints_are_taken_and_change_nothing():
    found = []
    for hints in ({}, {"foreach": True, "fused": False, "capturable": False, "differentiable": False},
                  {"fused": True}):
        p = with_grad(leaf([1.0]), [0.5])
        optimizer = optim.Adam([p], **hints)
        assert {name: optimizer.param_groups[0][name] for name in hints} == hints
        optimizer.step()
        found.append(p.item())
    assert found[0] < 1 and found.count(found[0]) == 3


def test_add_param_group_changes_nothing_on_failure():
    a, b = leaf([1.0]), leaf([2.0])
    optimizer = SGD([a], lr=0.1)
    for group, error in [({"params": [b, a]}, ValueError), ({"params": [b, 1.0]}, TypeError),
                         ({"params": [b], "lr": -1}, ValueError), ([b], TypeError),
                         ({"params": [("b", b)]}, ValueError)]:
        with pytest.raises(error):
            optimizer.add_param_group(group)
        assert len(optimizer.param_groups) == 1
    optimizer.add_param_group({"params": (p for p in [b]), "lr": 1.0})
    assert optimizer.param_groups[1]["params"][0] is b and optimizer.param_groups[1]["momentum"] == 0


def test_zero_grad():
    p = with_grad(leaf([1.0, 2.0]), [1.0, 1.0])
    optimizer = SGD([p])
    kept = p.grad
    optimizer.zero_grad(set_to_none=False)
    assert p.grad is kept and kept.tolist() == [0.0, 0.0]
    optimizer.zero_grad()
    assert p.grad is None
    (p * p * p).sum().backward(create_graph=True)
    optimizer.zero_grad(set_to_none=False)
    assert p.grad.tolist() == [0.0, 0.0] and not p.grad.requires_grad


def test_a_gradient_that_does_not_fit_changes_nothing():
    a, b = with_grad(leaf([1.0]), [1.0]), with_grad(leaf([1.0, 2.0]), [1.0, 1.0])
    optimizer = SGD([("a", a), ("b", b)], lr=0.5)
    b.data = fw.ones(3)
    with pytest.raises(ShapeError, match=r"gradient of parameter 'b' is .*float32\[2\].*float32\[3\]"):
        optimizer.step()
    b.data = fw.ones(2, dtype=fw.float64)
    with pytest.raises(DTypeError, match="SGD.step: the gradient of parameter 'b'"):
        optimizer.step()
    assert a.item() == 1.0 and not optimizer.state


def test_read_only_memory_is_refused():
    values = np.ones(2, np.float32)
    values.flags.writeable = False
    p = with_grad(fw.from_numpy(values).requires_grad_(), [1.0, 1.0])
    with pytest.raises(ValueError, match=r"params\[0\] of group 0 is read-only"):
        SGD([p]).step()


def test_hooks():
    p = with_grad(leaf([1.0]), [1.0])
    optimizer, seen = SGD([p], lr=0.5), []
    pre = optimizer.register_step_pre_hook(lambda o, args, kwargs: seen.append(("pre", p.item())))
    post = optimizer.register_step_post_hook(lambda o, args, kwargs: seen.append(("post", p.item())))
    optimizer.step()
    pre.remove()
    post.remove()
    optimizer.step()
    assert seen == [("pre", 1.0), ("post", 0.5)]
    optimizer.register_step_pre_hook(lambda o, args, kwargs: ((lambda: 7,), {}))
    assert optimizer.step() == 7
    optimizer.register_step_pre_hook(lambda o, args, kwargs: 3)
    with pytest.raises(TypeError, match="pre-hook must return None or"):
        optimizer.step()


def test_state_dict_has_numbers_and_names():
    a, b = with_grad(leaf([1.0]), [1.0]), with_grad(leaf([[2.0]]), [[1.0]])
    named = SGD([("net.w", a), ("net.b", b)], lr=0.1, momentum=0.9)
    named.step()
    saved = named.state_dict()
    assert list(saved) == ["state", "param_groups"] and list(saved["state"]) == [0, 1]
    assert saved["param_groups"][0]["params"] == [0, 1]
    assert saved["param_groups"][0]["param_names"] == ["net.w", "net.b"]
    assert list(saved["state"][0]) == ["momentum_buffer"]  # the step says nothing that this does not
    plain = SGD([a, b], lr=0.1, momentum=0.9)
    assert plain.state_dict()["param_groups"][0]["params"] == [0, 1]
    plain.load_state_dict(saved)  # no names on this side: by position
    assert plain.state_dict()["state"][1]["momentum_buffer"].tolist() == [[1.0]]
    assert "param_names" not in plain.param_groups[0]
    numbered = {"state": {0: {"momentum_buffer": fw.ones(1)}, 1: {"momentum_buffer": None}},
                "param_groups": [{**{k: v for k, v in saved["param_groups"][0].items() if k != "param_names"},
                                  "params": [0, 1]}]}
    named.load_state_dict(numbered)  # the form PyTorch writes
    assert named.state[a]["step"] == 1 and b not in named.state


def test_loading_takes_options_and_casts_floats_only():
    p = with_grad(leaf([1.0, 2.0]), [1.0, 1.0])
    first = Adam([p], lr=0.125, betas=(0.5, 0.75))
    first.step()
    q = leaf([1.0, 2.0], dtype=fw.float64)
    second = Adam([q])
    saved = first.state_dict()
    second.load_state_dict(saved)
    assert second.param_groups[0]["lr"] == 0.125 and second.param_groups[0]["betas"] == (0.5, 0.75)
    assert second.state[q]["exp_avg"].dtype is fw.float64 and second.state[q]["step"] == 1
    assert first.state[p]["exp_avg"].dtype is fw.float32
    third = Adam([p])
    third.load_state_dict(saved)
    assert third.state[p]["exp_avg"] is not first.state[p]["exp_avg"]


def _stepped(names, make=Adam, shape=(2,), **options):
    params = [with_grad(fw.ones(*shape, requires_grad=True), np.ones(shape)) for _ in names]
    optimizer = make(list(zip(names, params)), **options)
    optimizer.step()
    return optimizer


@pytest.mark.parametrize("make, texts", [
    (lambda: _stepped(["a", "c", "d"]), ["'b' is missing", "'c' is in the checkpoint but not",
                                         "'d' is in the checkpoint"]),
    (lambda: _stepped(["a", "b"], shape=(3,)),
     ["a: exp_avg has shape [3] in the checkpoint, the optimizer needs [2]", "b: exp_avg_sq has shape [3]"]),
    (lambda: _stepped(["a", "b"], RMSprop), ["a: the checkpoint keeps ['square_avg'], Adam with its options",
                                             "b: the checkpoint keeps"]),
])
def test_loading_lists_every_mismatch_and_changes_nothing(make, texts):
    optimizer = _stepped(["a", "b"])
    before = copy.deepcopy(optimizer.state_dict())
    with pytest.raises(CheckpointError) as caught:
        optimizer.load_state_dict(make().state_dict())
    for text in [*texts, "nothing was changed"]:
        assert text in str(caught.value)
    after = optimizer.state_dict()
    assert after["param_groups"] == before["param_groups"]
    for name, state in before["state"].items():
        assert {k: v.tolist() if k != "step" else v for k, v in state.items()} == {
            k: v.tolist() if k != "step" else v for k, v in after["state"][name].items()}


def test_loading_foreign_things():
    optimizer = _stepped(["a", "b"])
    saved = optimizer.state_dict()
    for foreign, text in [
            ({"weight": fw.ones(1)}, "wanted a dict with the keys 'state' and 'param_groups'"),
            ([1], "got list"),
            ({**saved, "param_groups": saved["param_groups"] * 2}, "has 2 parameter groups, the optimizer 1"),
            ({**saved, "state": {**saved["state"], "z": {}}}, "state for 'z', which no group names")]:
        with pytest.raises(CheckpointError, match=text):
            optimizer.load_state_dict(foreign)
    other = Adam([fw.ones(2, requires_grad=True)])
    with pytest.raises(CheckpointError, match="group 0 has 2 parameters in the checkpoint, 1 in"):
        other.load_state_dict(saved)


def test_a_method_of_ones_own_is_two_functions():
    class Sign(Optimizer):
        def __init__(self, params, lr=0.5):
            super().__init__(params, {"lr": lr})

        def init_state(self, p, group):
            return {"last": np.zeros_like(p)}

        def update(self, p, g, state, group):
            p -= group["lr"] * np.sign(g)
            state["last"] = g.copy()  # assignment works too

    p = with_grad(leaf([1.0, 1.0]), [3.0, -2.0])
    optimizer = Sign([p])
    optimizer.step()
    assert p.tolist() == [0.5, 1.5] and optimizer.state[p]["last"].tolist() == [3.0, -2.0]
    with pytest.raises(NotImplementedError, match="must define update"):
        Optimizer([p], {}).step()


def test_momentum_can_be_switched_on_later():
    for make in (SGD, RMSprop):
        p = with_grad(leaf([1.0]), [1.0])
        optimizer = make([p], lr=0.1)
        optimizer.step()
        optimizer.param_groups[0]["momentum"] = 0.9
        optimizer.step()
        assert "momentum_buffer" in optimizer.state[p] and p.item() < 1.0


def test_centered_rmsprop_survives_rounding():
    p = leaf(np.full(1000, 1.0, np.float32))
    optimizer = RMSprop([p], centered=True, alpha=0.5)
    for g in np.full(60, 0.1, np.float32):
        p.grad = fw.full((1000,), float(g))
        optimizer.step()
    assert np.isfinite(p.detach().numpy()).all()


def test_steps_do_not_warn():
    """With eps=0 as well, where 0 is divided by 0: a warning would be raised here."""
    p = with_grad(leaf([1.0]), [0.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in EXPORTED:
            options = {"eps": 0} if "eps" in ROWS[name].takes - {"limits"} and name not in (
                "Adafactor", "SparseAdam") else {}
            q = with_grad(p.detach().reshape(1, 1).requires_grad_(), [[0.0]])
            getattr(optim, name)([q], **options).step(lambda: fw.tensor(1.0))
        optim.Adagrad([p], eps=0).step()  # 0 / 0


def _devices():
    return ["cuda:0", "cuda:1"] if backend.device_count() > 1 else ["cuda:0"]


@pytest.mark.parametrize("row, options", CASES)
def test_gpus_give_the_same(row, options, cupy):  # noqa: F811
    def run(device):
        p = fw.tensor([[1.0, 2.0], [3.0, -1.0]], device=device, requires_grad=True)
        optimizer = getattr(optim, row.name)([("p", p)], **options)

        def closure():
            optimizer.zero_grad(set_to_none=False)
            loss = ((p - 0.5) * (p - 0.5)).sum()
            loss.backward()
            return loss

        for _ in range(4):
            optimizer.step(closure)
        return p, optimizer

    expected, on_cpu = run("cpu")
    for device in _devices():
        p, optimizer = run(device)
        assert str(p.device) == device
        np.testing.assert_allclose(p.detach().cpu().numpy(), expected.detach().numpy(), rtol=1e-5)
        for source in (optimizer, on_cpu):
            other = getattr(optim, row.name)([("p", p)])
            other.load_state_dict(source.state_dict())
            for value in other.state[p].values():
                assert not isinstance(value, fw.Tensor) or value.device == p.device


def test_lbfgs_over_several_devices(cupy):  # noqa: F811
    a = fw.tensor([-1.2], dtype=fw.float64, requires_grad=True)
    b = fw.tensor([1.0], device=_devices()[-1], dtype=fw.float64, requires_grad=True)
    for params in ([a, b], [b, a]):
        optimizer = optim.LBFGS(params)
        with fw.no_grad():
            a.fill_(-1.2)
            b.fill_(1.0)

        def closure():
            optimizer.zero_grad()
            x, y = a, b.cpu()
            loss = ((1 - x) ** 2 + 100 * (y - x * x) ** 2).sum()
            loss.backward()
            return loss

        for _ in range(5):
            optimizer.step(closure)
        assert a.item() == pytest.approx(1.0, abs=1e-5) and b.item() == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("saved, pattern", [
    ({"state": {}, "param_groups": 3}, "a list, got dict and int"),
    ({"state": [], "param_groups": []}, "a dict"),
    ({"state": {}, "param_groups": [{"lr": 0.1}]}, "group 0 has no list 'params'"),
    ({"state": {}, "param_groups": [{"params": [], "param_names": ["a"]}]}, "0 parameters and 1 names"),
])
def test_what_is_no_state_of_an_optimizer_is_refused(saved, pattern):
    optimizer = fw.optim.SGD([("a", fw.nn.Parameter(fw.ones(1)))], lr=0.5)
    with pytest.raises(fw.errors.CheckpointError, match=pattern):
        optimizer.load_state_dict(saved)
    assert optimizer.param_groups[0]["lr"] == 0.5
