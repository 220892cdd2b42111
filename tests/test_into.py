"""In-place forms and ``out=`` of elementwise functions: the functional form's numbers, in their place."""

import numpy as np
import pytest

import framework as fw
from framework import _native
from framework.errors import AnomalyError
from framework.ops.language.program import native_kernel
from framework.ops.pointwise import activations
from framework.ops.write import inplace as inplace_room
from framework.seam import intercept

F = fw.nn.functional

LARGE = 1 << 17  # numbers that several threads and whole blocks take part in

# name: (arguments after the first, keywords); "t" is a tensor of the first one's shape, "m" a mask
CALLS = {
    "add": (("t",), {}), "add alpha": (("t",), {"alpha": 0.5}), "sub": ((2.0,), {}),
    "sub alpha": (("t",), {"alpha": 3}), "mul": (("t",), {}), "div": (("t",), {}), "pow": ((2,), {}),
    "pow half": ((0.5,), {}), "pow tensor": (("t",), {}), "addcmul": (("t", "t"), {"value": 0.25}),
    "addcdiv": (("t", "t"), {"value": -2}), "lerp": (("t", 0.3), {}), "lerp weights": (("t", "t"), {}),
    "clamp": ((0.3, 0.8), {}), "clamp low": ((), {"min": 0.4}), "clamp high": ((), {"max": 0.4}),
    "clamp tensor": (("t",), {}), "clamp both": (("t", 0.9), {}), "clamp_min": ((0.5,), {}),
    "clamp_max": (("t",), {}), "masked_fill": (("m", 7.0), {}), "nan_to_num": ((), {}), "exp": ((), {}),
    "neg": ((), {}), "abs": ((), {}), "sqrt": ((), {}), "floor_divide": (("t",), {}),
}
NO_OUT = {"masked_fill"}


def tensor(shape, dtype, seed):
    x = np.random.default_rng(seed).uniform(0.25, 1.0, shape)
    x.flat[::17] *= -1 if seed == 0 else 1
    return fw.tensor(x).to(dtype)


def arguments(name, shape, dtype, broadcast=False):
    """The call's arguments; broadcast: tensors that lack the first dimension."""
    given, keywords = CALLS[name]
    own = shape[1:] if broadcast else shape
    stands_for = {"t": lambda i: tensor(own, dtype, i + 1), "m": lambda i: tensor(shape, dtype, 9) > 0.5}
    return [stands_for[a](i) if a in stands_for else a for i, a in enumerate(given)], keywords


def same(a, b):
    np.testing.assert_array_equal(a.float().numpy(), b.float().numpy())
    assert a.dtype == b.dtype and a.shape == b.shape


@pytest.mark.parametrize("broadcast", [False, True])
@pytest.mark.parametrize("shape", [(3, 5), (0, 5), (256, 1 + LARGE // 256)], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("name", CALLS)
def test_in_place_is_the_functional_form(name, dtype, shape, broadcast):
    dtype = getattr(fw, dtype)
    given, keywords = arguments(name, shape, dtype, broadcast)
    x = tensor(shape, dtype, 0)
    want = getattr(fw, name.split()[0])(x, *given, **keywords)
    place, version = x._array.ctypes.data, x._version
    assert getattr(x, name.split()[0] + "_")(*given, **keywords) is x
    assert x._array.ctypes.data == place and x._version == version + 1
    if dtype is fw.bfloat16:  # several roundings in the functional form may be one
        np.testing.assert_allclose(x.float().numpy(), want.float().numpy(), rtol=2 ** -7)
    else:
        same(x, want)


@pytest.mark.parametrize("shape", [(3, 5), (256, 1 + LARGE // 256)], ids=str)
@pytest.mark.parametrize("name", [n for n in CALLS if n not in NO_OUT])
def test_out_is_the_functional_form(name, shape):
    given, keywords = arguments(name, shape, fw.float32)
    x, function = tensor(shape, fw.float32, 0), getattr(fw, name.split()[0])
    want = function(x, *given, **keywords)
    for out in (fw.empty(shape), fw.empty(shape[::-1]).t(), fw.zeros(shape[0], 2 * shape[1])[:, ::2],
                fw.empty(shape, dtype=fw.float64), x.clone()):
        assert function(x, *given, **keywords, out=out) is out
        same(out, want.to(out.dtype))
    x_too = x.clone()
    function(x_too, *given, **keywords, out=x_too)
    same(x_too, want)


@pytest.mark.parametrize("name", ["add", "add alpha", "lerp", "addcmul", "clamp tensor"])
def test_operands_that_overlap_the_result(name):
    """Memory that is read at one place and written at another: as if the result were computed first."""
    n = LARGE
    memory = tensor((n + 1,), fw.float32, 0)
    given, keywords = CALLS[name]
    given = [memory[1:] if a == "t" else a for a in given]
    want = getattr(fw, name.split()[0])(memory[:-1].clone(), *[
        a.clone() if isinstance(a, fw.Tensor) else a for a in given], **keywords)
    getattr(memory[:-1], name.split()[0] + "_")(*given, **keywords)
    same(memory[:-1], want)


@pytest.mark.parametrize("name", CALLS)
def test_recorded_in_place_forms_have_the_functional_gradient(name):
    base, verb = tensor((4, 3), fw.float64, 3), name.split()[0]
    grads = []
    for form in (verb, verb + "_"):
        leaves = [base.clone().requires_grad_()]
        given, keywords = arguments(name, (4, 3), fw.float64)
        for a in given:
            if isinstance(a, fw.Tensor) and a.is_floating_point():
                leaves.append(a.requires_grad_())
        y = getattr(leaves[0] * 1, form)(*given, **keywords)
        (y * base).sum().backward()
        grads.append([x.grad for x in leaves])
    for a, b in zip(*grads):
        assert (a is None) == (b is None)
        if a is not None:
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12)


def in_place_programs() -> dict:
    def of_itself(x, y):
        return x.clone().mul_(2.0).exp_().mul_(y).add_(1)

    def twice(x, y):
        z = x * 1
        return z.mul_(z).sub_(z, alpha=0.5).addcmul_(y, z, value=2.0)

    def results_kept(x, y):
        z = (x * y).sigmoid_()
        w = z * z
        return w.sqrt_().tanh_() + F.celu_(y * 1, 2.0) + F.leaky_relu_(x * 1, 0.1) + F.hardtanh_(x * 2)

    def with_views(x, y):
        z = x * 1
        alive, gone = z[0], z.t()
        del gone
        z.mul_(y)
        alive.exp_()
        w = y * 1
        w[1:].sum()  # a view that is gone
        return z.relu_() + w.mul_(2).cumsum_(0)

    def hooked(x, y):
        z = x * 1
        z.register_hook(lambda g: g * 3)
        z.retain_grad()
        z.mul_(y)
        with fw.no_grad():
            z.mul_(2)
        return z.add_(x)

    def constants(x, y):
        dtype = x.dtype
        z = fw.ones(2, 3, dtype=dtype)
        z.mul_(x)
        w = fw.zeros(2, 3, dtype=dtype).copy_(y)
        v = (x * y).masked_fill_(x > 0.5, 2.0).cumprod_(1) + (x * 1).addmm_(x, fw.ones(3, 3, dtype=dtype))
        return z.floor_() * w.round_() + v

    return {f.__name__: f for f in (of_itself, twice, results_kept, with_views, hooked, constants)}


@pytest.mark.parametrize("name", in_place_programs())
@pytest.mark.parametrize("dtype", [fw.float32, fw.float64, fw.bfloat16])
def test_recorded_in_place_forms_by_python_and_by_cpp(name, dtype, monkeypatch):
    def run() -> list:
        x, y = [tensor((2, 3), dtype, seed).requires_grad_() for seed in (0, 1)]
        out = in_place_programs()[name](x, y)
        nodes, seen = [], [out.grad_fn]
        while seen:
            node = seen.pop()
            nodes.append(node.name())
            seen += [n for n, _ in node.next_functions if n is not None]
        out.sum().backward()
        grads = [x.grad, y.grad]
        return [nodes, out._version, *[None if g is None else g.tolist() for g in grads], out.tolist()]
    native = run()
    for part in ("form_into", "_put_into"):
        monkeypatch.setattr(inplace_room, part, lambda *args: NotImplemented)
    plain = getattr(activations._apply, "__self__", None)  # the function of Python behind that of C++
    monkeypatch.setattr(activations, "_apply", plain or activations._apply)
    assert run() == native


def test_a_recorded_leaf_and_kept_results_are_guarded():
    x = fw.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        x.mul_(x)
    z = (x * 1).exp_()
    z.mul_(2)  # the result that exp's derivative wants is beside it
    z.sum().backward()
    assert x.grad.tolist() == pytest.approx([2 * np.e] * 2)
    w = (x * 1)
    kept = w * w
    w.exp_()
    with pytest.raises(RuntimeError, match="changed in place by exp_"):
        kept.sum().backward()


def test_whole_numbers():
    x, y = fw.arange(6), fw.arange(6) * 2
    assert fw.add(x, y, alpha=3).tolist() == [0, 7, 14, 21, 28, 35]
    assert x.clone().sub_(y, alpha=2).tolist() == [0, -3, -6, -9, -12, -15]
    assert x.clone().addcmul_(y, y, value=2).tolist() == [0, 9, 34, 75, 132, 205]
    assert x.clone().clamp_(1, 4).tolist() == [1, 1, 2, 3, 4, 4]
    assert fw.add(x, y, out=fw.empty(6, dtype=fw.int64)).tolist() == [0, 3, 6, 9, 12, 15]
    with pytest.raises(TypeError, match="float32"):
        x.add_(y, alpha=0.5)


def test_wrong_calls_change_nothing():
    x, y = fw.ones(3, 4), fw.ones(2, 4)
    version = x._version
    wrong = [
        (lambda: x.add_(y), ValueError, "broadcast"),
        (lambda: x.add_(x, alpha=1, beta=2), TypeError, "add.*beta"),
        (lambda: x.clamp_(), ValueError, "at least one"), (lambda: x.lerp_(x), TypeError, "lerp.*weight"),
        (lambda: fw.add(x, x, out=fw.empty(4, 3)), ValueError, "shape"),
        (lambda: fw.add(fw.ones(4), fw.ones(4), out=x), ValueError, "shape"),
        (lambda: fw.add(x, x, out=fw.empty(3, 4, dtype=fw.int64)), TypeError, "does not fit"),
        (lambda: fw.add(x, x, out=[1]), TypeError, "out must be a Tensor"),
        (lambda: fw.ones(1, 4).expand(3, 4).add_(x), RuntimeError, "share one place"),
        (lambda: fw.add(x, x, out=fw.ones(1, 4).expand(3, 4)), RuntimeError, "share one place"),
        (lambda: fw.ones(3, 4, requires_grad=True).add_(x, alpha=2), RuntimeError, "leaf"),
        (lambda: fw.add(fw.ones(3, 4, requires_grad=True), x, out=x), RuntimeError, "cannot be recorded"),
    ]
    for call, error, text in wrong:
        with pytest.raises(error, match=text):
            call()
    assert x.tolist() == [[1.0] * 4] * 3 and x._version == version


def test_a_parameter_under_no_grad():
    p = fw.nn.Parameter(fw.ones(3))
    p.grad = fw.ones(3)
    with fw.no_grad():
        p.add_(p.grad, alpha=-0.5).addcmul_(p.grad, p.grad, value=2).lerp_(fw.zeros(3), 0.5)
    assert p.tolist() == [1.25] * 3 and p.requires_grad and p.is_leaf


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int64", "int32", "uint8",
                                   "bool", "complex64"])
def test_large_copies_and_fills(dtype):
    dtype = getattr(fw, dtype)
    x = fw.zeros(LARGE // 4, 5, dtype=dtype)
    assert bool((x.fill_(1) == fw.ones((), dtype=dtype)).all())
    assert bool((x[:, 1::2].fill_(0) == 0).all()) and bool((x[:, ::2] == 1).all())
    assert bool((x.zero_() == 0).all())
    source = (fw.arange(x.numel()) % 2).reshape(x.shape)
    for given in (source, source.to(dtype), source.to(dtype).t().contiguous().t()):
        same(x.zero_().copy_(given).real, source.to(dtype).real)


# views of a matrix: with gaps in lines or between them, at even and odd places, backwards, short lines
VIEWS = {
    "odd": np.s_[:, 1::2], "even": np.s_[:, ::2], "rows": np.s_[:, 3:-2], "third": np.s_[1:, 2::3],
    "three": np.s_[:, 4:7], "far": np.s_[:, 5::40], "column": np.s_[:, 7], "lines": np.s_[::2],
    "backwards": np.s_[:, ::-1], "both": np.s_[::-3, ::-2],
}
BACKWARDS = {"backwards", "both"}  # views that only NumPy makes


@pytest.mark.parametrize("shape", [(5, 41), (64, 99), (999, 131), (1, LARGE + 3)], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int64", "int32", "bool"])
@pytest.mark.parametrize("name", VIEWS)
def test_writes_into_views_leave_the_rest(name, dtype, shape):
    """Writes into a view, turned as well, give the functional form's numbers there and touch no others."""
    key = VIEWS[name]
    for turned in (False, True):
        start = (fw.arange(shape[0] * shape[1]) % 13 - 5).reshape(shape).to(getattr(fw, dtype))
        rest = np.ones(shape, bool)
        rest[key] = False
        x = start.clone()
        if name in BACKWARDS:
            if dtype == "bfloat16":
                pytest.skip("NumPy has no such numbers")
            view, part = (fw.from_numpy(t.numpy()[key]) for t in (x, start.clone()))
        else:
            view, part = x[key], start[key].clone()
        view, part = (view.t(), part.t()) if turned and view.ndim == 2 else (view, part)
        other = (part > 1).to(part.dtype).contiguous()
        calls = {"copy_": lambda t: other, "fill_": lambda t: fw.ones_like(t)}
        if dtype != "bool":
            calls |= {"add_": lambda t: t + other, "mul_": lambda t: t * 3, "neg_": lambda t: -t,
                      "clamp_": lambda t: t.clamp(-2, 4)}
        if part.is_floating_point():
            calls |= {"tanh_": lambda t: t.tanh(),
                      "addcmul_": lambda t: t.addcmul(other, other, value=0.5)}
        for method, expected in calls.items():
            wanted = expected(part)
            given = {"copy_": (other,), "fill_": (1,), "add_": (other,), "mul_": (3,),
                     "clamp_": (-2, 4), "addcmul_": (other, other)}.get(method, ())
            getattr(view, method)(*given, **({"value": 0.5} if method == "addcmul_" else {}))
            same(view, wanted)
            np.testing.assert_array_equal(x.float().numpy()[rest], start.float().numpy()[rest])
            part = wanted.clone()


def test_what_is_assigned_to_many_places():
    """Numbers, arrays that broadcast, arrays of another dtype; onto itself nothing happens."""
    array = np.arange(LARGE * 8.0, dtype="f4").reshape(-1, 64)
    x = fw.from_numpy(array.copy())
    row, column = np.arange(32, dtype="f4"), np.arange(len(array), dtype="f4")[:, None]
    for key in (np.s_[:, 1::2], np.s_[:, :32], np.s_[..., 32:], np.s_[:, ::2]):
        for value in (3, 2.5, row, column, row[None] + column, row.astype("f8"), row[::-1]):
            x[key] = fw.from_numpy(value.copy()) if isinstance(value, np.ndarray) else value
            array[key] = value
            np.testing.assert_array_equal(x.numpy(), array)
        x[key] += 1
        array[key] += 1
        np.testing.assert_array_equal(x.numpy(), array)
    x[1:, :5] = x[:-1, :5]
    array[1:, :5] = array[:-1, :5].copy()
    np.testing.assert_array_equal(x.numpy(), array)


def test_whole_numbers_and_numbers_in_place():
    x = fw.arange(10)
    memory = x.data_ptr()
    assert x.add_(2).mul_(3).sub_(1).clamp_(6, 20).tolist() == [6, 8, 11, 14, 17, 20, 20, 20, 20, 20]
    assert x[1::3].mul_(-1).tolist() == [-8, -17, -20] and x.data_ptr() == memory and x._version == 5
    with pytest.raises(OverflowError):
        x.add_(1 << 63)
    with pytest.raises(ZeroDivisionError):
        x.floor_divide_(0)


def test_an_overlapping_copy():
    x = fw.arange(float(LARGE))
    x[1:].copy_(x[:-1])
    same(x, fw.cat([fw.zeros(1), fw.arange(float(LARGE - 1))]))


@pytest.mark.skipif(_native.module is None, reason=f"no native extension: {_native.isa}")
@pytest.mark.parametrize("out", [False, True])
@pytest.mark.parametrize("given", [np.float32, np.float64])
def test_numpys_scalars_are_numbers_of_the_engine(given, out):
    """Arrays without dimensions become such scalars in arithmetic; of another dtype they are NumPy's."""
    def formula(g, x, out=None):
        return np.multiply(g, x, out=out) if given is np.float64 else pytest.fail("left to NumPy")
    x = np.ones(5, np.float32)
    result = native_kernel("g * x", ("g", "x"), formula)(given(3), x, **{"out": x} if out else {})
    assert result.tolist() == [3.0] * 5 and result.dtype == (np.float32 if out else given)


def test_a_power_that_fails_in_the_middle():
    x = fw.tensor([[2, 3], [4, 5]])
    version = x._version
    for call in (lambda: x.pow_(fw.tensor([2, -1])), lambda: fw.pow(x, fw.tensor([2, -1]), out=x)):
        with pytest.raises(ValueError, match="the exponents hold a negative integer"):
            call()
    with pytest.raises(TypeError, match="float32"):
        x.pow_(2.0)
    assert x.tolist() == [[2, 3], [4, 5]] and x._version == version


def test_what_anomaly_mode_refuses_is_not_written():
    x = fw.ones(3)
    with fw.autograd.set_detect_anomaly(True):
        for call in (lambda: x.addcdiv_(fw.ones(3), fw.zeros(3)), lambda: x.div_(fw.zeros(3)),
                     lambda: fw.log(fw.zeros(3), out=x), lambda: x.add_(fw.full((3,), 3e38), alpha=2)):
            with pytest.raises(AnomalyError):
                call()
    assert x.tolist() == [1.0] * 3


def test_numbers_for_nan_and_inf():
    x = fw.tensor([1.0, float("nan"), float("inf"), -float("inf")])
    for two in (2, 2.0, np.float64(2), np.int64(2), fw.tensor(2.0)):
        given = fw.nan_to_num(x, nan=two, posinf=two, neginf=two)
        assert given.tolist() == [1, 2, 2, 2] and given.dtype is fw.float32
        assert fw.clamp(fw.ones(2, dtype=fw.float16), two).dtype is fw.float16 or isinstance(two, fw.Tensor)
    assert fw.nan_to_num(x[:2], nan=None).tolist() == [1, 0]
    for wrong in ("a", [1.0], fw.ones(2)):
        with pytest.raises(TypeError, match="nan_to_num: nan must be a number"):
            fw.nan_to_num(x, nan=wrong)


@pytest.mark.parametrize("name", ["lgamma", "digamma", "sinc", "i0", "erfinv", "special.i1e",
                                  "special.erfcx"])
def test_special_functions_of_many_numbers(name):
    """Large arrays go piece by piece, and so do the derivatives."""
    *home, verb = name.split(".")
    function = getattr(fw.special if home else fw, verb)
    few = fw.linspace(0.1, 0.9, 50, dtype=fw.float64)
    results = []
    for x in (few, few.repeat(400)):
        x.requires_grad_()
        y = function(x)
        g, = fw.autograd.grad(y.sum(), x, create_graph=True)
        h, = fw.autograd.grad(g.sum(), x)
        results.append([t.detach()[:50] for t in (y, g, h)])
    for a, b in zip(*results):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


@pytest.mark.parametrize("name", ["floor_", "ceil_", "trunc_", "fix_", "round_"])
@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8"])
def test_whole_numbers_are_rounded_already(name, dtype):
    x = fw.arange(6).to(getattr(fw, dtype)).reshape(2, 3)
    y = x[:, 1:]
    assert getattr(y, name)() is y and x.flatten().tolist() == [0, 1, 2, 3, 4, 5] and x._version == 1
    frozen = np.arange(3)
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        getattr(fw.from_numpy(frozen), name)()
    seen = []
    with intercept(lambda event, proceed: seen.append(event) or proceed(*event.inputs, **event.settings)):
        getattr(x, name)()
    assert seen and x.flatten().tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("limit", [-1.5, 0.0, 2.0, 2.5, float("inf"), float("-inf"), float("nan"), 1e30])
def test_a_threshold_between_whole_numbers(limit):
    x = fw.arange(-3, 5)
    wanted = [n if not n <= limit else 7 for n in x.tolist()]
    assert fw.nn.functional.threshold(x, limit, 7).tolist() == wanted
    assert fw.nn.functional.threshold_(x.clone(), limit, 7).tolist() == wanted


def test_limits_of_whole_numbers():
    x = fw.arange(-4, 6)
    for low, high in ((-2, 3), (None, 2), (1, None), (3, -3), (-1 << 70, 2), (-1.5, 2), (True, 4), (0, 2.5)):
        wanted = np.clip(x.numpy(), low, high)
        got = fw.clamp(x, low, high)
        np.testing.assert_array_equal(got.numpy(), wanted)
        if got.dtype is x.dtype:
            assert x.clone().clamp_(low, high).tolist() == got.tolist()
    with pytest.raises(ValueError, match="does not fit"):
        fw.clamp(x, 1 << 70, None)


WIDE = [((7, 33), (1, 33)), ((7, 33), (7, 1)), ((7, 33), ()), ((300, 300), (300, 1)), ((3, 5, 16), (3, 5, 1)),
        ((3, 5, 17), (3, 1, 17)), ((4, 6, 8), (1, 6, 1)), ((0, 5), (1, 5)), ((64, 3), (64, 1)),
        ((40, 2000), (40, 1))]
NUMPYS = {"div": "divide", "sub": "subtract", "mul": "multiply"}


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "maximum"])
@pytest.mark.parametrize("shapes", WIDE, ids=str)
def test_operands_that_broadcast(shapes, name, dtype):
    """Both ways round, into new memory, ``out=`` and the tensor itself, with gaps and without."""
    if (name, dtype) == ("div", "int64"):
        return
    rng, ufunc = np.random.default_rng(0), getattr(np, NUMPYS.get(name, name))
    a, b = ((rng.standard_normal(shape) * 4).astype(dtype) for shape in shapes)
    if dtype != "int64" and b.size:
        b.flat[::3], b.flat[1::5] = np.nan, -0.0
    x, y = fw.tensor(a), fw.tensor(b)
    gaps = (*shapes[0][:-1], 2 * shapes[0][-1])
    with np.errstate(all="ignore"):
        for left, right in ((x, y), (y, x)):
            wanted = ufunc(left.numpy(), right.numpy())
            for out in (None, fw.empty(shapes[0], dtype=x.dtype), fw.empty(gaps, dtype=x.dtype)[..., ::2]):
                found = getattr(fw, name)(left, right, **({} if out is None else {"out": out}))
                np.testing.assert_array_equal(found.numpy(), wanted)
        wanted = ufunc(a, b)
    for z in (x.clone(), fw.zeros(gaps, dtype=x.dtype)[..., 1::2].copy_(x)):
        version = z._version
        if hasattr(z, f"{name}_"):
            np.testing.assert_array_equal(getattr(z, f"{name}_")(y).numpy(), wanted)
            assert z._version == version + 1


@pytest.mark.parametrize("part", [np.s_[0], np.s_[:, :1], np.s_[1:2], np.s_[3:4, 3:4]], ids=str)
def test_operands_that_broadcast_from_the_memory_that_is_written(part):
    a = np.random.default_rng(0).standard_normal((6, 6)).astype("f4")
    for write, wanted in ((lambda z: z.add_(z[part]), a + a[part]),
                          (lambda z: fw.mul(z, z[part], out=z), a * a[part]),
                          (lambda z: fw.sub(z[part], z, out=z), a[part] - a)):
        z = fw.tensor(a)
        write(z)
        np.testing.assert_array_equal(z.numpy(), wanted)


def test_results_that_are_smaller_than_out_are_refused():
    x = fw.ones(1, 6)
    for call in (lambda: fw.add(x, x, out=fw.empty(6, 6)), lambda: x.add_(fw.ones(6, 6))):
        with pytest.raises(fw.errors.ShapeError, match="has shape"):
            call()
    assert x.tolist() == [[1.0] * 6] and x._version == 0


def test_what_differs_in_dtype_is_converted_in_place():
    x = fw.tensor([1.5, -2.0, 3.0])
    mask, whole = fw.tensor([True, False, True]), fw.tensor([2, 3, 4])
    assert x.clone().mul_(mask).tolist() == (x * mask).tolist() == [1.5, 0.0, 3.0]
    assert x.clone().add_(whole).tolist() == (x + whole).tolist() == [3.5, 1.0, 7.0]
    assert x.clone().add_(whole.double()).dtype is fw.float32
    with pytest.raises(fw.errors.DTypeError, match="add_: the result is"):
        whole.add_(x)
    assert whole.tolist() == [2, 3, 4] and whole._version == 0


def test_joined_into_memory():
    rows, columns = [fw.tensor([1.0, 2.0]), fw.tensor([3.0, 4.0])], [fw.ones(2, 1), fw.zeros(2, 2)]
    for join, parts in ((fw.cat, columns), (fw.stack, rows), (fw.hstack, columns), (fw.vstack, rows),
                        (fw.dstack, rows), (fw.column_stack, rows), (fw.cat, rows),
                        (fw.column_stack, columns)):
        dim = {"dim": 1} if join is fw.cat and parts is columns else {}
        want = join(parts, **dim)
        out = fw.full_like(want, -1.0)
        seen, version = out.view(-1), out._version
        assert join(parts, **dim, out=out) is out and out._version > version
        assert fw.equal(out, want) and fw.equal(seen, want.view(-1))
        with pytest.raises(fw.errors.ShapeError):
            join(parts, **dim, out=fw.empty(7))
    part = fw.ones(4)
    with pytest.raises(ValueError, match="shares memory"):
        fw.cat([part[:2], fw.ones(2)], out=part)
    with pytest.raises(ValueError, match="shares memory"):
        fw.hstack([part], out=part)


def test_out_of_several_results_is_what_the_function_gives():
    x = fw.tensor([[3.0, 1.0, 2.0]])
    out = fw.empty(1, 2), fw.empty(1, 2, dtype=fw.int64)
    found = fw.topk(x, 2, axis=1, out=out)
    assert found.values is out[0] and found.indices is out[1] and type(found) is type(fw.topk(x, 2))
    assert out[0].tolist() == [[3.0, 2.0]] and out[1].tolist() == [[0, 2]]
    with pytest.raises(TypeError, match="out must be 2 Tensors"):
        fw.topk(x, 2, out=out[0])
    with pytest.raises(RuntimeError, match="out= cannot be recorded"):
        fw.cumsum(x.requires_grad_(), 1, out=fw.empty(1, 3))
