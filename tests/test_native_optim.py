"""Optimizer steps by the native kernels: the same bits as the plain updates, whatever the parameters are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import framework as fw
from framework import _native
from framework.optim import fused
from framework.optim.optimizer import Optimizer

needs_native = pytest.mark.skipif(not hasattr(_native.module, "adam_step"),
                                  reason=f"no extension: {_native.isa}")

number = st.floats(0, 2, allow_subnormal=False)
# options too small for the normal format are 0 within a step, as all numbers are
fraction = st.floats(0, 0.999, allow_subnormal=False)
flag = st.booleans()
decay = st.sampled_from([0, 0.0, 0.1, 1])
eps = st.sampled_from([0.0, 1e-8, 0.1])
COMMON = {"lr": number, "weight_decay": decay, "maximize": flag}
INSIDE = {**COMMON, "eps": eps, "eps_inside": flag}
ADAM = {"betas": st.tuples(fraction, fraction), "amsgrad": flag}
OPTIONS = {
    "SGD": {**COMMON, "momentum": st.sampled_from([0, 0.9, 1]), "dampening": st.sampled_from([0, 0.3]),
            "nesterov": flag},
    "Adagrad": {**INSIDE, "lr_decay": number, "initial_accumulator_value": number},
    "RMSprop": {**INSIDE, "alpha": number, "momentum": fraction, "centered": flag},
    "Adam": {**INSIDE, **ADAM, "decoupled_weight_decay": flag},
    "AdamW": {**INSIDE, **ADAM},
    "Adadelta": {**COMMON, "eps": eps, "rho": st.floats(0, 1, allow_subnormal=False)},
    "Adamax": {**COMMON, "eps": eps, "betas": st.tuples(fraction, fraction)},
}
SHAPES = [(), (1,), (7,), (3, 5), (0, 2), (16,), (33, 31), (200, 130), (4, 1, 3, 2), (6, 5, 3, 3)]


def plain_form(kind):
    """The optimizer without its native form."""
    return type(kind.__name__, (kind,), {"fused": Optimizer.fused})


def values(rng, shape, dtype):
    """Numbers of all sizes, some of them special."""
    x = rng.standard_normal(shape) * 10.0 ** rng.integers(-6, 4, shape)
    x = np.where(rng.random(shape) < 0.02, rng.choice([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-42], shape), x)
    return np.asarray(x, dtype)


def parameter(array, layout):
    if layout == "strided":
        array = np.repeat(array[..., None], 2, -1)[..., 0]
    if layout == "channels last" and array.ndim > 2:
        return fw.from_numpy(np.moveaxis(np.moveaxis(array, 1, -1).copy(), -1, 1)).requires_grad_()
    return fw.from_numpy(np.asarray(array, order="F" if layout == "columns" else "C") if layout != "strided"
                         else array).requires_grad_()


def run(kind, options, shapes, dtypes, layouts, steps, seed, missing=()):
    rng = np.random.default_rng(seed)
    params = [parameter(values(rng, s, d), layout) for s, d, layout in zip(shapes, dtypes, layouts)]
    optimizer = kind(params, **options)
    for step in range(steps):
        for i, p in enumerate(params):
            grad = values(rng, p.shape, p._array.dtype)
            if layouts[i] != "strided" and seed % 2:  # as backward lays it
                grad = parameter(grad, layouts[i])._array
            p.grad = None if (step, i) in missing else fw.from_numpy(np.asarray(grad))
        optimizer.step()
    state = optimizer.state_dict()["state"]
    kept = {(name, key): getattr(value, "_array", value)
            for name, entry in state.items() for key, value in entry.items()}
    return [p._array for p in params], kept, [p._version for p in params]


def assert_same(one, other):
    for a, b in zip(one[0], other[0], strict=True):
        np.testing.assert_array_equal(a, b)
        assert (np.signbit(a) == np.signbit(b))[~np.isnan(a)].all()
    assert list(one[1]) == list(other[1])
    for key, value in one[1].items():
        np.testing.assert_array_equal(value, other[1][key], err_msg=str(key))
    assert one[2] == other[2]


@needs_native
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", sorted(OPTIONS))
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_same_bits(name, threads, data):
    options = data.draw(st.fixed_dictionaries(OPTIONS[name]))
    if name == "SGD" and options["nesterov"]:
        options.update(momentum=0.9, dampening=0)
    count = data.draw(st.integers(1, 5))
    shapes = data.draw(st.lists(st.sampled_from(SHAPES), min_size=count, max_size=count))
    dtypes = data.draw(st.lists(st.sampled_from(["f4", "f8", "f4", "f2"]), min_size=count, max_size=count))
    layouts = data.draw(st.lists(st.sampled_from(["rows", "rows", "columns", "channels last", "strided"]),
                                 min_size=count, max_size=count))
    missing = data.draw(st.sets(st.tuples(st.integers(0, 2), st.integers(0, 4)), max_size=3))
    case = options, shapes, dtypes, layouts, 4, data.draw(st.integers(0, 99)), missing
    before = _native.module.threads()
    _native.module.set_threads(threads)
    try:
        kind = getattr(fw.optim, name)
        assert_same(run(kind, *case), run(plain_form(kind), *case))
    finally:
        _native.module.set_threads(before)


def hard_roots(by):
    """Numbers whose quotients by this one are as near as can be to the middle between two float32."""
    mantissa = int(np.ldexp(np.frexp(by)[0], 24))
    mantissa >>= (mantissa & -mantissa).bit_length() - 1
    found = []
    for bits in 24, 25:
        for rest in range(-25, 26, 2):
            middle = rest * pow(mantissa, -1, 1 << bits) % (1 << bits)
            number = mantissa * middle - rest >> bits
            if number.bit_length() <= 24 and middle.bit_length() == 25:
                found.append(number)
    return np.array(found, "f4")


@needs_native
@pytest.mark.parametrize("beta, step", [
    (0.999, 0), (0.999, 700), (0.9, 0), (0.9, 30), (0.3, 4), (1 - 1e-12, 0), (0.99, 90)])
def test_roots_of_all_sizes_are_divided_as_plainly(beta, step):
    """Roots over the correction are found by its reciprocal, in the bits of the division."""
    rng = np.random.default_rng(step)
    squares = rng.integers(0, 0x7f800001, 1 << 18, np.uint32)  # up to inf; some are nan
    squares[::256] |= 0x7fff0000
    hard = hard_roots(np.float32((1 - beta ** (step + 1)) ** 0.5))
    near = (hard * hard / np.float32(beta)).view(np.uint32) + np.arange(-4, 5).astype(np.uint32)[:, None]
    hit = np.sqrt(near.view("f4") * np.float32(beta)) == hard  # what the step makes of them
    assert hit.any(0).sum() > 5
    squares[1:2 * hit.sum():2] = near[hit]
    gradient = rng.standard_normal(squares.size).astype("f4") * np.float32(1e-22)  # squares of nearly 0
    steps = []
    for kind in fw.optim.Adam, plain_form(fw.optim.Adam):
        p = fw.zeros(squares.size, requires_grad=True)
        p.grad = fw.from_numpy(gradient.copy())
        optimizer = kind([p], lr=1e20, betas=(0.0, beta), eps=0.0)
        optimizer.state[p] = {"exp_avg": fw.zeros(p.shape), "step": step,
                              "exp_avg_sq": fw.from_numpy(squares.view("f4").copy())}
        optimizer.step()
        steps.append(p.detach().numpy().view(np.uint32))
    np.testing.assert_array_equal(*steps)


def many(kind, **options):
    return kind([fw.ones(5, requires_grad=True) for _ in range(3)], **options)


@needs_native
@pytest.mark.parametrize("name", sorted(OPTIONS))
def test_the_native_form_is_taken(name, monkeypatch):
    def fail(*_):
        raise AssertionError("the plain update ran")
    optimizer = many(getattr(fw.optim, name), lr=0.1)
    monkeypatch.setattr(type(optimizer), "_update_one", fail)
    for p in optimizer.param_groups[0]["params"]:
        p.grad = fw.ones(5)
    optimizer.step()
    assert all((p.detach() != 1).all() for p in optimizer.param_groups[0]["params"])


@needs_native
@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_kernels_of_channels_last_are_stepped_by_the_native_form(name, monkeypatch):
    """Their gradients lie as they do, so that one walk over memory does the step; after loading, too."""
    fw.manual_seed(0)
    w = fw.nn.Parameter(fw.randn(8, 4, 3, 3).contiguous(memory_format=fw.channels_last))
    x = fw.randn(2, 4, 6, 6)

    def step(optimizer):
        optimizer.zero_grad()
        fw.nn.functional.conv2d(x, w).square().sum().backward()
        assert w.grad.stride() == w.stride() and not w.is_contiguous()
        optimizer.step()
    options = {"lr": 0.1, **({"momentum": 0.9} if name == "SGD" else {})}
    make = getattr(fw.optim, name)
    monkeypatch.setattr(make, "_update_one", lambda *_: pytest.fail("the plain update ran"))
    first = make([w], **options)
    step(first)
    saved = first.state_dict()
    saved["state"] = {i: {k: v.contiguous() if isinstance(v, fw.Tensor) else v for k, v in kept.items()}
                      for i, kept in saved["state"].items()}  # as a file keeps it
    second = make([w], **options)
    second.load_state_dict(saved)
    step(second)


@pytest.mark.parametrize("grads", ["own", "the parameter", "shifted"])
def test_shared_memory_is_updated_in_order(grads):
    """Parameters and gradients that overlap: as if one parameter came after the other."""
    def both(kind):
        memory = np.linspace(-1, 1, 50, dtype=np.float32)
        params = [fw.from_numpy(memory[a:b]).requires_grad_() for a, b in ((0, 30), (20, 50))]
        optimizer = kind(params, lr=0.1, momentum=0.5)
        for _ in range(3):
            for p, start in zip(params, (10, 19)):
                p.grad = fw.from_numpy({"own": np.ones(30, np.float32), "the parameter": p._array,
                                        "shifted": memory[start:start + 30]}[grads])
            optimizer.step()
        return memory.tolist()
    assert both(fw.optim.SGD) == both(plain_form(fw.optim.SGD))


def test_replaced_memory_is_noticed():
    p = fw.ones(4, requires_grad=True)
    optimizer = fw.optim.Adam([p], lr=0.5)
    for _ in range(3):
        p.grad = fw.ones(4)
        optimizer.step()
        old = p._array.copy()
        p.data = p.detach().clone()
        assert (p._array == old).all()
    p.data = fw.zeros(4)
    p.grad = fw.ones(4)
    optimizer.step()
    assert p.tolist() == pytest.approx([-0.5] * 4)


def test_options_switched_on_after_the_first_step():
    """State that is missing then is made, or missed, as by the plain form."""
    for kind, option in ((fw.optim.SGD, {"momentum": 0.5}), (fw.optim.RMSprop, {"momentum": 0.5})):
        ends = []
        for form in (kind, plain_form(kind)):
            optimizer = many(form, lr=0.1)
            for _ in range(3):
                for p in optimizer.param_groups[0]["params"]:
                    p.grad = fw.full((5,), 0.3)
                optimizer.step()
                optimizer.param_groups[0].update(option)
            ends.append([p.tolist() for p in optimizer.param_groups[0]["params"]])
        assert ends[0] == ends[1]


@pytest.mark.parametrize("lr", [np.float64(0.1), np.float32(0.1), 1, True])
def test_numbers_of_numpy(lr):
    """NumPy's scalars widen float32 on the way; Python's do not."""
    ends = []
    for form in (fw.optim.SGD, plain_form(fw.optim.SGD)):
        p = fw.from_numpy(np.linspace(0, 1, 9, dtype=np.float32)).requires_grad_()
        p.grad = p.detach() / 3
        form([p], lr=lr).step()
        ends.append(p.tolist())
    assert ends[0] == ends[1]


def gradients(shapes, dtypes, layouts, seed=0):
    rng = np.random.default_rng(seed)
    params = []
    for shape, dtype, layout in zip(shapes, dtypes, layouts):
        p = parameter(np.zeros(shape, dtype), "rows")
        p.grad = parameter(np.asarray(rng.standard_normal(shape), dtype), layout).detach()
        params.append(p)
    return params


CLIPPED = [([(3, 5)], ["f4"], ["rows"]), ([(300, 100), (), (0, 4), (17,)], ["f4"] * 4, ["rows"] * 4),
           ([(40, 50), (7,)], ["f4", "f8"], ["columns", "rows"]),
           ([(40, 50), (7,)], ["f4", "f2"], ["rows", "rows"]),
           ([(5, 6), (7,)], ["f4", "f4"], ["strided", "rows"])]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shapes, dtypes, layouts", CLIPPED)
def test_clipping_by_either_form(shapes, dtypes, layouts, threads, monkeypatch):
    utils, found = fw.nn.utils, []
    if _native.module is not None:
        before = _native.module.threads()
        _native.module.set_threads(threads)
    for form in ("native", "plain"):
        if form == "plain":
            monkeypatch.setattr(fw.nn.utils.gradients, "_native_call", lambda *_: NotImplemented)
        ends = []
        for clip, bound in ((utils.clip_grad_norm_, 0.5), (utils.clip_grad_norm_, 1e6),
                            (utils.clip_grad_value_, 0.3), (utils.clip_grad_value_, 0)):
            params = gradients(shapes, dtypes, layouts)
            ends.append([np.asarray(clip(params, bound) or 0.0)] + [p.grad.numpy() for p in params])
            assert all(p.grad._version == 1 for p in params)
        found.append(ends)
    if _native.module is not None:
        _native.module.set_threads(before)
    for one, other in zip(*found):
        for a, b in zip(one, other):
            np.testing.assert_allclose(a, b, rtol=2e-6 if "f2" not in dtypes else 2e-3)
            assert a.dtype == b.dtype


def test_clipping_special_gradients():
    utils = fw.nn.utils
    (p,) = gradients([(40,)], ["f4"], ["rows"])
    p.grad[3] = float("nan")
    assert np.isnan(utils.clip_grad_norm_(p, 1.0).item())
    (q,) = gradients([(40,)], ["f4"], ["rows"])
    q.grad[:3] = fw.tensor([float("nan"), float("inf"), -float("inf")])
    utils.clip_grad_value_(q, 2.0)
    assert np.isnan(q.grad[0].item()) and q.grad[1:3].tolist() == [2.0, -2.0]
    a, b = gradients([(4,), (4,)], ["f4", "f4"], ["rows", "rows"])
    b.grad = a.grad  # one gradient of two parameters is scaled twice, as in PyTorch
    a.grad.fill_(1.0)
    assert utils.clip_grad_norm_([a, b], 2 ** 0.5).item() == pytest.approx(8 ** 0.5)
    assert a.grad.tolist() == pytest.approx([0.25] * 4, rel=1e-5)


def test_a_subclass_with_its_own_update_runs_it():
    class Backwards(fw.optim.SGD):
        def update(self, p, g, state, group):
            p += g
    p = fw.zeros(3, requires_grad=True)
    p.grad = fw.ones(3)
    Backwards([p], lr=0.1).step()
    assert p.tolist() == [1.0] * 3


def test_a_step_that_fails_changes_nothing(monkeypatch):
    """Not enough memory for the state of the last parameter."""
    optimizer = many(fw.optim.Adam, lr=0.1)
    params = optimizer.param_groups[0]["params"]
    for p in params:
        p.grad = fw.ones(5)
    make, calls = Optimizer.first_state, []

    def first_state(self, p, group):
        calls.append(p)
        if len(calls) == 3:
            raise MemoryError
        return make(self, p, group)
    if not hasattr(_native.module, "adam_step"):
        pytest.skip("the plain form updates one after the other")
    monkeypatch.setattr(Optimizer, "first_state", first_state)
    with pytest.raises(MemoryError):
        optimizer.step()
    assert not any(optimizer.state.values()) and all(p.tolist() == [1.0] * 5 for p in params)
    assert fused.gradients_fit(params, [p.grad for p in params])


@pytest.mark.skipif(_native.module is None, reason="no native kernels here")
@pytest.mark.parametrize("params", [[np.ones(3)], [5], [fw.Tensor.numpy], [fw.ones(2), fw.ones(2)], []])
def test_what_is_no_parameter_is_an_error_of_its_step(params):
    w = fw.ones(3, requires_grad=True)
    optimizer = fw.optim.SGD([w], lr=0.1, momentum=0.5)
    for _ in range(2):
        w.grad = fw.ones(3)
        optimizer.step()
    for states in ([{"step": 1}], [5], [None, None, None]):
        if len(params) == len(states) == 0:
            continue
        with pytest.raises(TypeError, match="stepped"):
            _native.module.stepped(params, states, 2, "SGD.step")
    assert optimizer.state[w]["step"] == 2 and w._version == 2


def test_steps_outside_and_inside_compiled_functions_are_the_same():
    """A step that is made at once, and the ones that are not: at first, of a subclass, of odd options."""
    class Own(fw.optim.Adam):
        pass
    found = []
    for kind in (fw.optim.Adam, Own):
        optimizer = many(kind, lr=0.1, weight_decay=0.1)
        params = optimizer.param_groups[0]["params"]
        for i in range(4):
            for k, p in enumerate(params):
                p.grad = None if k == i else fw.full((5,), float(k + i))
            optimizer.step()
        found.append([p.tolist() for p in params] + [optimizer.state[p]["step"] for p in params])
    assert found[0] == found[1]


@needs_native
@pytest.mark.parametrize("kind", [fw.optim.Adam, plain_form(fw.optim.Adam), fw.optim.SparseAdam])
def test_means_of_gradients_that_are_0_vanish(kind):
    """Not below the normal format, where a processor takes twenty times as long for each."""
    if not fw.set_flush_denormal(True):
        pytest.skip("denormal numbers are no slower here")
    fw.set_flush_denormal(False)
    p = fw.ones(40, 3, requires_grad=True)
    optimizer = kind([p])
    p.grad = fw.full((40, 3), 1e-36)
    for _ in range(2):
        optimizer.step()
    mean, squares = optimizer.state[p]["exp_avg"], optimizer.state[p]["exp_avg_sq"]
    assert (mean.abs() >= np.finfo("f4").tiny).all() and (squares == 0).all()
    if kind is not fw.optim.SparseAdam:
        p.grad = fw.zeros(40, 3)
        for _ in range(60):
            optimizer.step()
        assert (optimizer.state[p]["exp_avg"] == 0).all()
    assert np.float32(1e-40) * np.ones(9, "f4")[0] != 0  # as before, outside of the step
    assert (fw.full((9,), 1e-40) * 0.5 != 0).all()


@needs_native
@pytest.mark.parametrize("eps", [0.0, 1e-12])
def test_means_that_count_beside_eps_are_kept(eps):
    steps = []
    for kind in fw.optim.Adam, plain_form(fw.optim.Adam):
        p = fw.zeros(40, requires_grad=True)
        p.grad = fw.full((40,), 1e-20)
        kind([p], lr=1.0, eps=eps).step()
        steps.append(p.detach())
    assert (steps[0] == steps[1]).all() and (steps[0] != 0).all()
    assert eps or (steps[0] + 1).abs().max() < 1e-2


@needs_native
def test_a_formula_of_ones_own_sees_all_numbers():
    class Mine(fw.optim.Adam):
        def update(self, p, g, state, group):
            p -= g * np.float32(0.5)
    p = fw.zeros(9, requires_grad=True)
    p.grad = fw.full((9,), 1e-40)
    Mine([p]).step()
    assert (p != 0).all()

    class Failing(plain_form(fw.optim.Adam)):
        _flushes = True

        def update(self, p, g, state, group):
            raise OverflowError
    with pytest.raises(OverflowError):
        Failing([p]).step()
    assert (fw.full((9,), 1e-40).numpy() * np.float32(0.5) != 0).all()


@needs_native
def test_formulas_put_in_the_place_of_others_see_all_numbers(monkeypatch):
    seen = []

    def own(*_):
        seen.append(float(np.float32(1e-30) * np.float32(1e-10)) != 0)

    class Mixed:
        update = own

    class Mine(Mixed, fw.optim.Adam):
        pass

    class Rows(fw.optim.SparseAdam):
        update_where = own
    for kind in Mine, Rows, fw.optim.Adam, fw.optim.Adam:
        p = fw.ones(3, requires_grad=True)
        p.grad = fw.ones(3)
        optimizer = kind([p])
        if len(seen) == 2:
            optimizer.update = own
        elif len(seen) == 3:
            monkeypatch.setattr(fw.optim.Adam, "update", own)
        if kind is Rows:
            index = fw.tensor([[0, 2]])
            p.grad = fw.sparse_coo_tensor(index, fw.ones(2), (3,)).coalesce()
        optimizer.step()
    assert seen == [True] * 4


@needs_native
@pytest.mark.parametrize("bits", [0, 0x8000, 0x40, 0x8040])
def test_the_mode_of_the_thread_is_as_before(bits):
    here = _native.module.flush_denormals_here
    before = here(bits)
    try:
        if not bits or here(bits) == bits:  # possible on this processor
            p = fw.ones(3, requires_grad=True)
            p.grad = fw.ones(3)
            fw.optim.SparseAdam([p]).step()
            assert here(bits) == bits
            plain_form(fw.optim.Adam)([p]).step()
            assert here(bits) == bits
    finally:
        here(before)


@needs_native
def test_a_mean_that_is_divided_by_little_counts():
    steps = []
    for kind in fw.optim.Adam, plain_form(fw.optim.Adam):
        p = fw.zeros(40, requires_grad=True)
        optimizer = kind([p], lr=1.0, eps=1e-11, betas=(0.9, 0.9999999))
        p.grad = fw.full((40,), 1e-16)
        for _ in range(3):
            optimizer.step()
        steps.append(p.detach())
    assert (steps[0] == steps[1]).all() and abs(steps[0][0].item() + 2.9999705e-05) < 1e-11
