"""Objects that stand for public functions: they look like them, and do what they do, by a shorter way."""

import copy
import gc
import inspect
import itertools
import pickle
import types
import weakref

import numpy as np
import pytest

import framework as fw
from framework.ops.record.entries import Entry, behind
from framework.ops.record.public import PUBLIC, bare

pytestmark = pytest.mark.skipif(Entry is None, reason="without the native kernels functions are Python's own")
METHODS = {name: value for name, value in vars(fw.Tensor).items() if type(value) is Entry}


def test_most_functions_have_one():
    assert sum(type(p.function) is Entry for p in PUBLIC) > 300 and len(METHODS) > 200


@pytest.mark.parametrize("name", ["sum", "take", "mul", "add", "exp", "zeros", "randn", "cat"])
def test_it_looks_like_its_function(name):
    entry = getattr(fw, name)
    function = behind(entry)
    assert type(entry) is Entry and type(function) is types.FunctionType
    assert inspect.isfunction(entry) and callable(entry) and repr(entry) == repr(function)
    assert entry.__name__ == name and entry.__doc__ == function.__doc__
    assert entry.__module__ == function.__module__
    assert inspect.signature(entry) == inspect.signature(function) and dir(entry) == dir(function)
    assert pickle.loads(pickle.dumps(entry)) is entry and copy.deepcopy(entry) is copy.copy(entry) is entry
    assert weakref.ref(entry)() is entry and {entry: 1}[entry] == 1 and entry != function
    entry.mark = 3
    assert function.mark == 3 and vars(entry) is vars(function)
    del entry.mark
    assert not hasattr(function, "mark")
    with pytest.raises(AttributeError, match="nothing_such"):
        entry.nothing_such  # noqa: B018


def test_it_is_bound_as_a_method():
    x = fw.tensor([1.0, 2.0])
    bound = x.sum
    assert bound() == 3.0 and bound.__self__ is x and fw.Tensor.sum(x) == 3.0
    assert fw.Tensor.add.__get__(x)(1).tolist() == [2.0, 3.0]

    class Of:
        total = fw.sum
    with pytest.raises(TypeError, match="sum"):
        Of().total()


def test_garbage_is_found():
    def function(x):
        return x
    entry = fw._native.module.entry(function, function, {})
    function.itself = entry
    gone = weakref.ref(entry)
    del function, entry
    gc.collect()
    assert gone() is None


def test_what_is_no_function_is_refused():
    make = fw._native.module.entry
    with pytest.raises(TypeError, match="function"):
        make(len, len, {})
    for wrong in ({"place": (1, 2)}, {"form": (1,)}, {"element": ()}):
        with pytest.raises(TypeError, match="entry"):
            make(lambda: None, None, {}, **wrong)


def test_another_code_is_seen():
    def function(x):
        return 1

    def other(x):
        return 2
    entry = fw._native.module.entry(function, lambda x: 0, {})
    assert entry(5) == 0
    function.__code__ = other.__code__
    assert entry(5) == 2


def test_a_type_error_inside_does_not_run_it_twice():
    calls = []

    def wrong(x, y):
        calls.append(x)
        raise TypeError("mine")
    with pytest.raises(TypeError, match="mine"):
        fw.ones(1).map_(fw.ones(1), wrong)
    assert len(calls) == 1


@pytest.mark.parametrize("call", [
    lambda: fw.sum(), lambda: fw.sum(fw.ones(2), foo=1), lambda: fw.sum("a"), lambda: fw.add(fw.ones(2)),
    lambda: fw.add(fw.ones(2), [1]), lambda: fw.add(fw.ones(2), fw.ones(3)), lambda: fw.relu(),
    lambda: fw.relu(3),
    lambda: fw.relu(fw.ones(1), 2), lambda: fw.ones(2).add_(fw.ones(3)), lambda: fw.ones(2).relu_(1),
    lambda: fw.ones(2).add_("a"), lambda: fw.ones(2, dtype=fw.int64).add_(0.5), lambda: fw.Tensor.add_(3, 4),
    lambda: fw.Tensor.abs_(), lambda: fw.ones(2).t_(3), lambda: fw.ones(2, 2, 2).t_(),
    lambda: fw.take(fw.ones(2)),
    lambda: fw.sum(fw.ones(2), 0, out=3), lambda: fw.sum(fw.ones(2), 0, out=fw.empty(3)),
    lambda: fw.sum(fw.ones(2), axis=0, dim=0), lambda: fw.tensor([True]) - fw.tensor([True]),
    lambda: [1] - fw.ones(1), lambda: fw.ones(1) @ 3, lambda: fw.tensor([1]) // 0,
    lambda: 1 % fw.tensor([0])])
def test_errors_are_those_of_the_function(call, monkeypatch):
    with pytest.raises(Exception) as quick:
        call()
    names = {id(v): behind(v) for v in METHODS.values()}
    for name, value in METHODS.items():
        monkeypatch.setattr(fw.Tensor, name, names[id(value)])
    for name in ("sum", "add", "relu", "take"):
        monkeypatch.setattr(fw, name, behind(getattr(fw, name)))
    with pytest.raises(Exception) as plain:
        call()
    assert type(quick.value) is type(plain.value) and str(quick.value) == str(plain.value)
    assert getattr(quick.value, "__notes__", []) == getattr(plain.value, "__notes__", [])


def operands():
    draw = np.random.default_rng(0)
    yield from (2, -3, 0.5, True, 2**40, float("nan"), np.float32(1.5), np.int64(3))
    for dtype in ("float32", "float64", "int64", "int32", "uint8", "bool", "float16", "complex64"):
        for shape in ((2, 3), (3,), ()):
            yield fw.from_numpy(np.asarray(draw.standard_normal(shape) * 3).astype(dtype))
    yield fw.ones(2, 3).t().contiguous().t()
    yield fw.nn.Parameter(fw.tensor([[1.0, -2.0, 3.0], [0.5, 0.0, 2.0]]))
    yield fw.tensor([[1.0, -2.0, 3.0], [0.5, 0.0, 2.0]], requires_grad=True) * 1


def outcome(function, *args):
    """What a call gives, and the gradients of those that have some; or its error."""
    leaves = [a for a in args if isinstance(a, fw.Tensor) and a.requires_grad]
    try:
        with np.errstate(all="ignore"):
            y = function(*args)
    except Exception as error:
        return type(error), str(error)
    if not isinstance(y, fw.Tensor):
        return y
    grads = fw.autograd.grad(y, leaves, fw.ones_like(y), allow_unused=True) if y.requires_grad else ()
    return (type(y), y.dtype, y.shape, y.requires_grad, y.detach().numpy().tobytes(),
            [None if g is None else g.numpy().tobytes() for g in grads])


@pytest.mark.parametrize("name", [
    "__add__", "__rsub__", "__sub__", "__mul__", "__truediv__", "__rtruediv__", "__lt__", "__eq__", "__and__",
    "__mod__", "__rmod__", "__floordiv__", "__rshift__", "add", "maximum", "atan2", "gcd", "logical_or",
    "copysign"])
@pytest.mark.filterwarnings("ignore")
def test_two_operands_as_python_has_them(name):
    entry = METHODS[name]
    for x, y in itertools.product([x for x in operands() if isinstance(x, fw.Tensor)], operands()):
        assert outcome(entry, x, y) == outcome(behind(entry), x, y), (x, y)
        with fw.no_grad():
            assert outcome(entry, x, y) == outcome(behind(entry), x, y), (x, y)


@pytest.mark.parametrize("name", [
    "relu", "exp", "neg", "logical_not", "sgn", "sqrt", "floor", "bitwise_not", "sinc"])
@pytest.mark.filterwarnings("ignore")
def test_one_operand_as_python_has_it(name):
    entry = getattr(fw, name)
    assert type(entry) is Entry
    for x in operands():
        assert outcome(entry, x) == outcome(behind(entry), x), x


def written(form, x, *args):
    """What a form in place makes of a copy of ``x``: its values, dtype, strides and change, or its error."""
    x = x.detach().clone()
    array, before = x._array, x._version
    try:
        with np.errstate(all="ignore"):
            result = form(x, *args)
    except Exception as error:
        return type(error), str(error), x.numpy().tobytes()
    return (result is x, x._array is array, x._version - before, x.dtype, x.shape, x.stride(),
            x.numpy().tobytes())


FORMS = sorted(n for n in METHODS if n.endswith("_") and not n.endswith("__"))
RANDOM = {"bernoulli_", "cauchy_", "exponential_", "geometric_", "log_normal_", "normal_", "random_",
          "uniform_"}
NEED_MORE = {  # whose arguments are none of these; test_inplace_matrix.py has those of all
    "addbmm_", "addcdiv_", "addcmul_", "addmm_", "addmv_", "addr_", "baddbmm_", "index_add_", "index_copy_",
    "index_fill_", "index_reduce_", "masked_scatter_", "renorm_", "scatter_", "scatter_add_",
    "scatter_reduce_"}


@pytest.mark.parametrize("name", [n for n in FORMS if n not in RANDOM])
@pytest.mark.filterwarnings("ignore")
def test_forms_in_place_as_python_has_them(name):
    form, done = METHODS[name], 0
    for x in (x for x in operands() if isinstance(x, fw.Tensor)):
        for args in ((), (0,), (2,), (0.5,), (0, 1), (fw.full_like(x.detach(), 2),), (fw.tensor(3),),
                     (fw.ones(4),)):
            found, want = written(form, x, *args), written(behind(form), x, *args)
            assert found == want, (x, args)
            done += found[0] is True
    assert done or name in NEED_MORE


@pytest.mark.parametrize("name", ["add_", "relu_", "lt_", "neg_", "t_", "clamp_", "floor_"])
def test_forms_in_place_where_something_is_unusual(name):
    """Views, memory that is shared or read-only, tensors of a graph, and leaves."""
    form, args = METHODS[name], {"add_": (1.0,), "lt_": (1.0,), "clamp_": (0.5, 1.0)}.get(name, ())

    def outcomes(form):
        base = fw.arange(12.0).reshape(3, 4)
        view = base[:, 1:3]
        found = []
        for x in (view, fw.from_numpy(np.arange(6.0).reshape(2, 3)[:, ::2]), fw.ones(3, 1).expand(3, 4),
                  fw.ones(3, 3, requires_grad=True), fw.ones(3, 3, requires_grad=True) * 2, base):
            try:
                y = form(x, *args)
                found.append((y is x, y.tolist(), y.requires_grad, y._version))
                if y.requires_grad:
                    found.append(fw.autograd.grad((y * y).sum(), y)[0].tolist())
            except Exception as error:
                found.append((type(error), str(error)))
        fixed = np.ones((2, 2))
        fixed.flags.writeable = False
        try:
            found.append(form(fw.from_numpy(fixed), *args).tolist())
        except Exception as error:
            found.append((type(error), str(error)))
        return found + [base.tolist(), fixed.tolist()]
    assert outcomes(form) == outcomes(behind(form))


def test_a_view_taken_in_place_leaves_others_alone():
    x = fw.arange(6.0).reshape(2, 3).clone()
    y = x.view(6)
    x.t_()
    assert x.shape == (3, 2) and y.tolist() == [0, 1, 2, 3, 4, 5]
    x[0, 1] = 9
    assert y[3] == 9 and x._version == y._version
    z = fw.ones(1, 2)
    array = z._array
    assert z.squeeze_() is z and z.shape == (2,) and np.shares_memory(z._array, array) and z._version == 1


def test_results_in_out_as_python_has_them():
    x, index = fw.arange(6.0).reshape(2, 3), fw.tensor([1, 4])
    for entry, args, out in ((fw.take, (x, index), fw.empty(2)), (fw.sum, (x, 1), fw.empty(2)),
                             (fw.sum, (x,), fw.empty(())), (fw.cumsum, (x, 0), fw.empty(2, 3)),
                             (fw.max, (x, 1), (fw.empty(2), fw.empty(2, dtype=fw.int64))),
                             (fw.aminmax, (x,), (fw.empty(()), fw.empty(()))),
                             (fw.lerp, (x, x + 1, 0.5), fw.empty(2, 3)),
                             (fw.clamp, (x, 1, 3), fw.empty(2, 3))):
        found = entry(*args, out=out)
        first = [o.tolist() for o in (out if isinstance(out, tuple) else (out,))]
        for o in out if isinstance(out, tuple) else (out,):
            o.zero_()
        want = behind(entry)(*args, out=out)
        assert first == [o.tolist() for o in (out if isinstance(out, tuple) else (out,))]
        assert type(found) is type(want) and (found is out) == (want is out)
        assert entry(*args, out=None) is not out and type(entry(*args, out=None)) is type(entry(*args))
    out = fw.empty(2)
    assert fw.sum(x, axis=1, out=out) is out and out.tolist() == [3.0, 12.0]


def test_methods_do_not_take_out():
    with pytest.raises(TypeError, match="out"):
        fw.ones(2).sum(0, out=fw.empty(()))
    assert bare(fw.sum) is fw.Tensor.sum


def test_what_a_review_found():
    """Memory that is shared between dtypes, numbers beyond float16 and floats, names in errors."""
    for raw in (np.zeros(32, np.uint8), np.zeros(64, np.uint8)):
        x = fw.from_numpy(raw.view(f"f{len(raw) // 8}"))
        part = fw.from_numpy(raw[:8].view(bool))
        part.copy_(fw.tensor([1, 0, 1, 1, 0, 1, 1, 1]))
        assert x.copy_(part).tolist() == [1, 0, 1, 1, 0, 1, 1, 1]
    assert fw.zeros(1, dtype=fw.float16).copy_(fw.tensor([100000])).item() == float("inf")
    assert fw.zeros(1).copy_(fw.tensor([2**40])).item() == 2**40
    for call in (lambda x: x.exponential_(10**400), lambda x: x.cauchy_(10**400, 1),
                 lambda x: x.log_normal_(0, 10**400), lambda x: x.bernoulli_(10**400)):
        with pytest.raises(OverflowError, match="too large to convert to float"):
            call(fw.zeros(3))
    with pytest.raises(TypeError, match="random_: unexpected argument 'reduction'"):
        fw.Tensor.random_(0, reduction=1)
    with pytest.raises(fw.errors.AutogradError, match=r"^atanh: .* overlapping"):
        fw.atanh(fw.zeros(3, 2), out=fw.zeros(1, 2).expand(3, 2))
    for call, name in ((lambda x: x.clamp_max_(x=0), r"clamp_max_\(\)"),
                       (lambda x: x.unsqueeze_(0, input=x), r"unsqueeze_\(\)")):
        with pytest.raises(TypeError, match=name):
            call(fw.ones(2))


def test_blocks_of_autocast_are_seen_and_left():
    x, w = fw.ones(2, 3), fw.ones(3, 3)
    with fw.autocast("cpu", dtype=fw.bfloat16):
        assert fw.mm(x, w).dtype is fw.bfloat16 and (x @ w).dtype is fw.bfloat16
        assert (x + x).dtype is fw.float32 and x.clone().relu_().dtype is fw.float32
        assert fw.nn.functional.linear(x, w).dtype is fw.bfloat16
    assert fw.mm(x, w).dtype is fw.float32 and fw.nn.functional.linear(x, w).dtype is fw.float32
    assert fw.cat([x, x]).dtype is fw.float32 and x.sum(axis=0).tolist() == [2.0, 2.0, 2.0]


@pytest.mark.parametrize("name", ["logical_and", "logical_or", "logical_xor", "logical_not"])
def test_logic_of_bytes(name):
    """Any byte but 0 is true; results in memory that is there, where an operand lies or half lies, too."""
    source = np.random.default_rng(3)
    f, plain = getattr(fw, name), getattr(np, name)
    operands = 1 if name == "logical_not" else 2
    for n in (0, 1, 7, 64, 65, 200, 5000):
        memory = source.integers(0, 3, (3, n + 5), "uint8").view(bool)
        for at, step in ((0, 1), (3, 1), (0, 2)):
            a, b, into = [row[at:at + n:step] for row in memory.copy()]
            given = [fw.from_numpy(x) for x in (a, b)][:operands]
            right = plain(*[x.view("uint8") != 0 for x in (a, b)][:operands])
            np.testing.assert_array_equal(f(*given).numpy(), right)
            out = fw.from_numpy(into)
            assert f(*given, out=out) is out and set(into.view("uint8")) <= {0, 1}
            np.testing.assert_array_equal(into, right)
            assert f(*given, out=given[-1]) is given[-1]
            np.testing.assert_array_equal(given[-1].numpy(), right)
        shared = memory[0].copy()
        x, y = fw.from_numpy(shared[:n]), fw.from_numpy(shared[5:])
        right = plain(*[z.numpy().copy() for z in (x, x)][:operands])
        f(*[x, x][:operands], out=y)
        np.testing.assert_array_equal(y.numpy(), right)
    wide, rows = fw.tensor([[True], [False]]), fw.tensor([True, False, True])
    if operands == 2:
        assert f(wide, rows).tolist() == plain(wide.numpy(), rows.numpy()).tolist()
        assert f(wide, rows, out=fw.zeros(2, 3, dtype=fw.bool)).tolist() == f(wide, rows).tolist()
    assert f(*[fw.tensor([0.0, 2.0, float("nan")])] * operands, out=fw.zeros(3, dtype=fw.bool)).tolist() \
        == plain(*[np.array([0, 2, 1.0])] * operands).tolist()


def test_settings_beside_out():
    x = fw.arange(6.0).reshape(2, 3)
    out = fw.zeros(2)
    assert fw.sum(x, dim=1, out=out) is out and out.tolist() == [3.0, 12.0]
    assert fw.sum(x, out=out, dim=-1).tolist() == [3.0, 12.0] and fw.sum(out=out, input=x, dim=1) is out
    assert fw.sum(x, axis=1, out=out) is out
    assert fw.cumsum(input=x, dim=0, out=fw.zeros(2, 3))[1].tolist() == [3, 5, 7]
    values, places = fw.zeros(2), fw.zeros(2, dtype=fw.int64)
    found = fw.max(x, dim=1, keepdim=False, out=(values, places))
    assert found.values is values and found.indices is places and values.tolist() == [2.0, 5.0]
    many = [fw.full((2,), float(i)) for i in range(40)]
    assert fw.cat(many, dim=0, out=fw.zeros(80))[-2:].tolist() == [39.0, 39.0]
    with pytest.raises(ValueError, match="shares memory"):
        fw.cat(many, out=many[7])
    with pytest.raises(TypeError, match="nothing"):
        fw.sum(x, nothing=1, out=out)
    assert out.tolist() == [3.0, 12.0]
