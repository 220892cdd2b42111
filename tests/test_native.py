"""The native engine: elementwise programs against NumPy, layouts, threads, memory, choice of module."""

import ast
import itertools
import math
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import framework as fw
from framework import _native
from framework.ops.language.elementwise import Elementwise
from framework.ops.language.expression import ExpressionRule, array_function
from framework.ops.language.program import _WHOLE, NoProgram, compile_program, native_kernel
from framework.ops.language.words import OPERATORS, WORDS
from framework.ops.record.op import OPS

module = _native.module
native = pytest.mark.skipif(module is None, reason=f"no native extension: {_native.isa}")
pytestmark = native
FLOATS = [np.float32, np.float64]


def refuse(*args, **kwargs):
    raise AssertionError("the fallback was called")


def kernel(text, names, fallback=refuse, settings=()):
    made = native_kernel(text, tuple(names.split()), fallback, settings)
    assert made is not fallback, f"no program for {text}"
    return made


@pytest.fixture
def threads():
    """Sets the number of threads; the old one comes back."""
    before = fw.get_num_threads()
    yield fw.set_num_threads
    fw.set_num_threads(before)


# -- programs --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "names", "shown"), [
    ("g * (1 - out * out)", "g out", "g, out -> sub_mul r0 = out, out, 1; mul result = g, r0"),
    ("x + 2 * y", "x y", "x, y -> mul_add result = y, 2, x"),
    ("x * y * z", "x y z", "x, y, z -> mul_mul result = x, y, z"),
    ("minimum(maximum(x, y), 2)", "x y", "x, y -> limit result = x, y, 2"),
    ("x * y - z", "x y z", "x, y, z -> mul r0 = x, y; sub result = r0, z"),
    ("sigmoid(x) * sigmoid(x)", "x", "x -> sigmoid r0 = x; mul result = r0, r0"),
    ("where(x > 0, x, -0.0)", "x", "x -> where_positive result = x, x, -0"),
    ("where(x >= 0, x, -0.0)", "x", "x -> ge r0 = x, 0; where result = r0, x, -0"),
    ("where(x > 0, x, y * x)", "x y", "x, y -> leaky result = x, y"),
    ("where(x > 0, y, y * x)", "x y", "x, y -> mul r0 = y, x; where_positive result = x, y, r0"),
    ("x * (minimum(maximum(x + 3, 0), 6) / 6)", "x", "x -> hardswish result = x"),
    ("y * (minimum(maximum(x + 3, 0), 6) / 6)", "x y", "x, y -> hard_gate r0 = x; mul result = y, r0"),
    ("x", "x", "x -> copy result = x"),
    ("(x > 0) * x", "x", "x -> gt r0 = x, 0; where r0 = r0, 1, 0; mul result = r0, x"),
    ("square(x + 1)", "x", "x -> add r0 = x, 1; mul result = r0, r0"),
])
def test_program_prints_as_instructions(text, names, shown):
    assert str(compile_program(text, tuple(names.split()))) == shown


@pytest.mark.parametrize("text", ["lgamma(x)", "y + 1", "where(x + 1, x, 0)", "x ** 2", "f(x, n=1)"])
def test_what_has_no_program_keeps_its_formula(text):
    with pytest.raises(NoProgram):
        compile_program(text, ("x",))


def expressions():
    for op in OPS:
        if not isinstance(op, Elementwise):
            continue
        if op.result == "integer":
            continue  # see test_whole_numbers
        yield op.name, op.expr, (*op.inputs, *op.settings)
        for rule in [*(op.rules or []), op.joint]:
            if isinstance(rule, ExpressionRule):
                yield f"{op.name} backward", rule.text, ("g", *rule.names)


SETTINGS = {"low": -0.5, "high": 0.75, "slope": 0.25, "alpha": 0.5, "scale": 1.25, "rate": 1.5,
            "beta": 1.5,
            "threshold": 2.0, "lower": 0.125, "upper": 0.5, "lambd": 0.5, "value": 0.25, "weight": 0.5,
            "n": 1,
            "delta": 1.0, "eps": 1e-6, "p": 2.0, "negative": 0.1}
SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 1e30, -1e30, 0.5, -2.0, 3.0]


def programs():
    for name, text, names in expressions():
        try:
            compile_program(text, names)
        except (NoProgram, AttributeError):
            continue
        yield pytest.param(text, names, id=f"{name}: {text}"[:90])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("text", "names"), list(programs()) if module else [])
def test_program_is_the_formula(text, names, dtype):
    """Within a few units of rounding of NumPy's result, special values included."""
    rng = np.random.default_rng(0)
    settings = tuple(n for n in names if n in SETTINGS and n not in ("x", "y", "weight"))
    run = kernel(text, " ".join(names), settings=settings)
    truth = dict(zip(names, compile_program(text, names).truth))
    arrays = []
    for i, name in enumerate(names):
        if name in settings:
            arrays.append(SETTINGS[name])
        elif truth[name]:
            arrays.append(rng.random(300) < 0.5)
        else:
            arrays.append(np.concatenate([rng.normal(size=286), np.roll(SPECIAL, i)]).astype(dtype))
    plain = array_function(text, ", ".join(names), np)
    with np.errstate(all="ignore"):
        want = plain(*arrays)
    got = run(*arrays)
    assert got.dtype == np.asarray(want).dtype
    if got.dtype == bool:
        np.testing.assert_array_equal(got, want)
        return
    tol = np.finfo(dtype).eps * 64
    np.testing.assert_allclose(got, want, rtol=tol, atol=tol, equal_nan=True)


@pytest.mark.parametrize("dtype", [*FLOATS, np.int64])
@pytest.mark.parametrize(("text", "names"), [
    ("maximum(x, y)", "x y"), ("minimum(x, y)", "x y"), ("minimum(maximum(x, y), z)", "x y z"),
    ("x - minimum(maximum(x, y), z)", "x y z"), ("where(x > 0, x, y * x)", "x y"), ("x * y", "x y"),
    ("where(abs(x) <= y, 0.0, x)", "x y"), ("where(abs(x) <= y, 0.0, z)", "x y z"), ("x + y", "x y")])
def test_numbers_give_the_bits_of_arrays_of_them(text, names, dtype):
    """Numbers in place of arrays take loops of their own: also nan and the sign of 0."""
    floating = dtype is not np.int64
    special = [0.0, -0.0, 0.5, -0.5, np.inf, -np.inf, np.nan] if floating else [0, 3, -3]
    x = np.concatenate([special, np.arange(-9, 10) / (4 if floating else 1)]).astype(dtype)
    run = kernel(text, names)
    for numbers in itertools.product(special, repeat=len(names.split()) - 1):
        for n in (1, 7, len(x)):
            got = run(x[:n], *numbers)
            want = run(x[:n], *[np.full(n, v, dtype) for v in numbers])
            np.testing.assert_array_equal(got.view(f"i{got.itemsize}"), want.view(f"i{want.itemsize}"))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize(("text", "names"), [
    ("x + y", "x y"), ("x - y", "x y"), ("x * y", "x y"), ("-x", "x"), ("abs(x)", "x"),
    ("maximum(x, y)", "x y"), ("minimum(x, 3)", "x"), ("x < y", "x y"), ("x == 2", "x"), ("x & y", "x y"),
    ("x | y", "x y"), ("~x", "x"), ("where(x > y, x, y)", "x y"), ("x ^ y", "x y"),
    ("x + 3 * y", "x y"), ("x - x * y", "x y"), ("x * y * x", "x y")])
def test_whole_numbers(text, names, dtype):
    rng = np.random.default_rng(1)
    info = np.iinfo(dtype)
    arrays = [np.append(rng.integers(-9, 9, 100), [info.max, info.min]).astype(dtype) for _ in names.split()]
    want = array_function(text, ", ".join(names.split()), np)(*arrays)
    got = kernel(text, names)(*arrays)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("arrays", [
    (np.ones(3, np.float32), np.ones(3)), (np.ones(3, np.float16), 1.0), (np.ones(3, np.int64), 0.5),
    (np.ones(3, np.int32), 1 << 40), (np.ones(3, np.complex64), 1.0), (np.ones(3, np.float32), 1j),
    (np.ones(3, ">f4"), 1.0), (np.float32(1), np.float32(2)), (1.0, 2.0), (np.ones(3), [1, 2, 3]),
], ids=str)
def test_what_the_engine_does_not_take_goes_to_numpy(arrays):
    run = kernel("x + y", "x y", np.add)
    if isinstance(arrays[1], int) and arrays[1] > 1 << 32:
        with pytest.raises(OverflowError):
            run(*arrays)
        return
    want = np.add(*arrays)
    got = run(*arrays)
    assert type(got) is type(want) and np.asarray(got).dtype == np.asarray(want).dtype
    np.testing.assert_array_equal(got, want)


def test_arguments_by_keyword_and_wrong_calls():
    run = kernel("where(x > 0, x, slope * x)", "x slope", array_function("where(x > 0, x, slope * x)",
                                                                         "x, slope", np))
    x = np.array([-2.0, 4.0], np.float32)
    np.testing.assert_array_equal(run(x, slope=0.5), [-1, 4])
    np.testing.assert_array_equal(run(slope=0.5, x=x), [-1, 4])
    for wrong in (lambda: run(x), lambda: run(x, 1.0, 2.0), lambda: run(x, tilt=1.0), lambda: run(x, x=x)):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(ValueError):
        kernel("x + y", "x y", np.add)(np.ones(3), np.ones(4))


# -- layouts ---------------------------------------------------------------------------------------------


@st.composite
def operands(draw):
    """Two arrays that broadcast, sliced, flipped and transposed at will."""
    shape = draw(st.lists(st.sampled_from([0, 1, 2, 3, 5, 17, 130]), min_size=0, max_size=4))
    while np.prod([max(s, 1) for s in shape]) > 20000:
        shape.pop()
    result = []
    for _ in range(2):
        own = [1 if draw(st.integers(0, 4)) == 0 else s for s in shape]
        own = own[draw(st.integers(0, len(own))):] if draw(st.booleans()) else own
        steps = [draw(st.sampled_from([1, 1, 2, -1])) for _ in own]
        order = draw(st.permutations(range(len(own))))
        base = np.empty([abs(steps[d]) * own[d] for d in order], np.float32)
        base[...] = np.arange(base.size, dtype=np.float32).reshape(base.shape) % 97
        array = base.transpose(np.argsort(order)) if own else base
        result.append(array[tuple(slice(None, None, s) for s in steps)] if own else array)
    return result


@settings(max_examples=300, deadline=None)
@given(operands())
def test_any_layout(pair):
    x, y = pair
    want = x * 2 - y
    got = kernel("x * 2 - y", "x y")(x, y)
    assert got.shape == want.shape and got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(kernel("x < y", "x y")(x, y), x < y)
    small = np.asarray(x < 50)
    np.testing.assert_array_equal(kernel("where(c, x, y)", "c x y")(small, x, y), np.where(small, x, y))
    alone = kernel("-x", "x")(x)
    np.testing.assert_array_equal(alone, -x)
    if x.size and 0 not in x.strides:  # the result lies as the input does
        assert [s for s, n in zip(alone.strides, x.shape) if n > 1] == [
            s for s, n in zip((-x).strides, x.shape) if n > 1]


@settings(max_examples=200, deadline=None)
@given(operands())
def test_into_any_memory(pair):
    x, y = pair
    if x.shape != np.broadcast_shapes(x.shape, y.shape) or 0 in x.strides:
        return
    want, before = x * 2 - y, x.copy()
    target = np.zeros_like(x)
    run = kernel("x * 2 - y", "x y")
    assert run(x, y, out=target) is target
    np.testing.assert_array_equal(target, want)
    np.testing.assert_array_equal(x, before)
    assert run(x, y, out=x) is x
    np.testing.assert_array_equal(x, want)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_short_lines(dtype):
    """Lines of 1 to 17 elements, which are copied some together: of views, backwards, in pieces."""
    rng, run = np.random.default_rng(7), kernel("x + y", "x y")
    for line in (1, 2, 3, 4, 5, 16, 17):
        for outer in ((1300,), (3, 211), (5, 7, 19), (601, 2)):
            x = rng.integers(-9, 9, (*outer, line + 2)).astype(dtype)
            part, back, apart = x[..., 1:-1], x[..., -2:0:-1], np.repeat(x, 2, -1)[..., 2:-2:2]
            turned = part.swapaxes(0, -1).copy().swapaxes(0, -1)
            for y in (part, back, apart, turned, part[::2].repeat(2, 0)[:len(x)]):
                np.testing.assert_array_equal(run(part, y), part + y)
                np.testing.assert_array_equal(module.clone(y), y)
                np.testing.assert_array_equal(module.flip(y, (0, -1 + y.ndim)), y[::-1][..., ::-1])
            pads = tuple([(1, 2)] + [(0, 0)] * (x.ndim - 2) + [(2, 1)])
            np.testing.assert_array_equal(module.pad(part, pads, 0), np.pad(part, pads))


def test_overlapping_memory_goes_to_numpy():
    run = kernel("x + y", "x y", np.add)
    x = np.arange(100, dtype=np.float32)
    want = x[:-1] + x[1:]
    np.testing.assert_array_equal(run(x[:-1], x[1:], out=x[1:]), want)
    with pytest.raises(ValueError):
        run(x, x, out=np.broadcast_to(np.float32(0), 100))
    with pytest.raises(TypeError):
        kernel("x + y", "x y", lambda x, y: x + y)(x, x, out=np.zeros(100))


def test_an_expanded_operand_says_nothing_about_the_order():
    row = np.broadcast_to(np.arange(4, dtype=np.float32), (3, 4))
    x = np.ones((3, 4), np.float32)
    run = kernel("x + y", "x y")
    for a, b in [(row, x), (x, row), (row, row)]:
        assert run(a, b).flags.c_contiguous
    assert run(row, x.T.copy().T).flags.f_contiguous


def test_a_read_only_and_an_unaligned_input():
    x = np.arange(6, dtype=np.float32)
    x.flags.writeable = False
    np.testing.assert_array_equal(kernel("x + 1", "x")(x), x + 1)
    odd = np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(np.float32)
    np.testing.assert_array_equal(kernel("x + 1", "x", lambda x: x + 1)(odd), x + 1)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("n", [1, 63, 4096, 100_003, 5_000_000])
def test_threads_do_not_change_a_bit(threads, n, dtype):
    x = np.random.default_rng(2).normal(size=n).astype(dtype)
    run = kernel("tanh(x) * x + exp(-x)", "x")
    results = []
    for count in (1, 2, 3):
        threads(count)
        results.append(run(x))
    assert all(np.array_equal(results[0], r) for r in results)
    np.testing.assert_allclose(results[0], np.tanh(x) * x + np.exp(-x), rtol=np.finfo(dtype).eps * 16)


def test_python_threads_share_the_pool(threads):
    threads(2)
    run = kernel("x * 2", "x")
    arrays = [np.full(300_000, i, np.float32) for i in range(4)]
    wrong = []

    def work(a):
        for _ in range(50):
            if not (run(a) == 2 * a[0]).all():
                wrong.append(a[0])

    workers = [threading.Thread(target=work, args=(a,)) for a in arrays]
    [w.start() for w in workers]
    [w.join() for w in workers]
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_computes(threads):
    threads(2)
    x = np.ones(1_000_000, np.float32)
    run = kernel("x + 1", "x")
    run(x)
    script = ("import os, numpy as np; import framework as fw; fw.set_num_threads(2); x = fw.ones(1000000);"
              "y = x + 1; pid = os.fork();\n"
              "if pid == 0: os._exit(0 if float((x + 1).sum()) == 2e6 else 1)\n"
              "raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))")
    assert subprocess.run([sys.executable, "-c", script], timeout=60).returncode == 0


def test_denormals_are_kept_unless_asked_to_flush(threads):
    tiny = np.full(200_000, 1e-40, np.float32)
    run = kernel("x * 0.5", "x")
    assert (run(tiny) > 0).all()
    if not fw.set_flush_denormal(True):
        pytest.skip("this processor cannot")
    try:
        for count in (1, 2):
            threads(count)
            assert (run(tiny) == 0).all()
    finally:
        fw.set_flush_denormal(False)
    assert (run(tiny) > 0).all()


def total(run, *arrays):
    return run.fold("sum", tuple(range(max(getattr(a, "ndim", 0) for a in arrays))), False, 0, *arrays)


@pytest.mark.parametrize("dtype", FLOATS)
def test_sums_of_programs(dtype, threads):
    rng = np.random.default_rng(3)
    run, tol = kernel("square(x - y)", "x y"), float(np.finfo(dtype).eps * 8)
    for shape, turn in [((), False), ((7,), False), ((3, 1000), True), ((0, 4), False), ((517, 1031), True)]:
        x, y = (np.asarray(a) for a in rng.normal(size=(2, *shape)).astype(dtype))
        want = ((x.astype(float) - y) ** 2).sum()
        for a, b in [(x, y), (x.T, y.T), (x.T, np.ascontiguousarray(y.T))] if turn else [(x, y)]:
            sums = []
            for count in (1, 2):
                threads(count)
                sums.append(float(total(run, a, b)))
            assert sums[0] == sums[1] == pytest.approx(want, rel=tol)
    row = rng.normal(size=1031).astype(dtype)
    assert total(run, x, row) == pytest.approx(((x.astype(float) - row) ** 2).sum(), rel=tol)
    part = x[::2, ::-3]
    assert total(run, part, 1.5) == pytest.approx(((part.astype(float) - 1.5) ** 2).sum(), rel=tol)
    assert total(run, np.arange(3), np.arange(3)) is NotImplemented
    assert total(kernel("x < y", "x y"), x, x) is NotImplemented


FOLDS = {"sum": np.sum, "mean": np.mean, "amax": np.max, "amin": np.min,
         "var": lambda v, axis, keepdims: v.var(axis=axis, ddof=1, keepdims=keepdims)}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(7,), (1, 9), (40, 9), (33, 1000), (3000, 70), (9, 5000), (17, 4, 130),
                                   (2, 3, 4, 5), (5, 1, 6)])
def test_folds_of_programs(shape, dtype, threads):
    rng = np.random.default_rng(4)
    run = kernel("x * y + 0.5", "x y")
    x, y = rng.normal(size=(2, *shape)).astype(dtype)
    for a, b in [(x, y), (x, 1.5), (x.T, y.T), (x, y[:1]), (x, y[..., :1]), (x.T, np.ascontiguousarray(y.T))]:
        v = np.asarray(a, np.longdouble) * b + 0.5
        for count in range(v.ndim + 1):
            for dims in itertools.combinations(range(v.ndim), count):
                for name, plain in FOLDS.items():
                    if name == "var" and math.prod(v.shape[d] for d in dims) < 2:
                        continue
                    found = [threads(n) or run.fold(name, dims, count % 2 == 0, 1.0, a, b) for n in (1, 2)]
                    want = plain(v, axis=dims, keepdims=count % 2 == 0)
                    size = np.abs(v).sum(dims).max() if name == "sum" else np.abs(v).max() ** 2
                    assert found[0].dtype == dtype and found[0].shape == want.shape
                    np.testing.assert_array_equal(*found)
                    assert np.abs(found[0] - want).max() <= 8 * np.finfo(dtype).eps * size, (name, dims)


def test_folds_of_programs_that_are_refused():
    run, x = kernel("x + y", "x y"), np.ones((2, 3), np.float32)
    assert run.fold("median", (0,), False, 0, x, x) is NotImplemented
    assert run.fold("amax", (0,), False, 0, x[:0], x[:0]) is NotImplemented
    assert run.fold("sum", (0,), False, 0, x, x.astype(float)) is NotImplemented
    assert run.fold("sum", (0,), False, 0, x) is NotImplemented
    many = np.ones((3000, 7), np.float32)  # whose rows have so few numbers that the elements come first
    assert run.fold("sum", (1,), False, 0, many, many) is NotImplemented
    np.testing.assert_array_equal(run.fold("sum", (0,), False, 0, many, many), np.full(7, 6000, np.float32))
    np.testing.assert_array_equal(run.fold("sum", (0,), True, 0, x[:0], x[:0]), np.zeros((1, 3), np.float32))
    assert np.isnan(run.fold("amax", (1,), False, 0, np.array([[1, np.nan]]), 0.0))
    for wrong in [(), ("sum",), ("sum", [0], False, 0, x, x), (1, (0,), False, 0, x, x)]:
        with pytest.raises(TypeError):
            run.fold(*wrong)
    with pytest.raises((TypeError, OverflowError)):
        run.fold("sum", ("a",), False, 0, x, x)


@pytest.mark.parametrize("shapes", [((5, 1), (4,)), ((3, 1, 4), (2, 1)), ((6, 7), ()), ((1, 1), (3, 4)),
                                    ((2, 3), (1, 3)), ((4,), (2, 3, 4)), ((0, 3), (3,)), ((700, 1), (1, 90))])
def test_gradients_of_broadcast_operands(shapes):
    rng = np.random.default_rng(5)
    arrays = [np.asarray(rng.normal(size=s)) for s in shapes]
    slopes = {"mul": lambda g, a, b: (g * b, g * a), "sub": lambda g, a, b: (g, -g),
              "div": lambda g, a, b: (g / b, -g * a / b / b), "add": lambda g, a, b: (g, g)}
    for name, slope in slopes.items():
        leaves = [fw.tensor(a, requires_grad=True) for a in arrays]
        out = getattr(fw, name)(*leaves)
        g = rng.normal(size=out.shape)
        out.backward(fw.tensor(g))
        for leaf, each in zip(leaves, slope(g, *arrays)):
            wide = np.broadcast_to(each, out.shape)
            extra = wide.ndim - leaf.ndim
            dims = (*range(extra), *[i + extra for i, s in enumerate(leaf.shape) if s == 1])
            np.testing.assert_allclose(leaf.grad.numpy(), wide.sum(dims).reshape(leaf.shape), rtol=1e-12,
                                       atol=1e-12)


def test_broadcast_operands_of_an_op_without_derivative():
    x = fw.ones(3, 1, requires_grad=True)
    with pytest.raises(fw.errors.AutogradError, match="heaviside"):
        fw.heaviside(x, fw.ones(4)).sum().backward()


# -- memory ----------------------------------------------------------------------------------------------


def test_memory_is_counted_and_used_again():
    x = fw.ones(1 << 20)
    fw.cpu.empty_cache()
    before = fw.cpu.memory_allocated()
    y = x + 1
    assert fw.cpu.memory_allocated() - before == y.nbytes
    at = y.data_ptr()
    del y
    assert fw.cpu.memory_allocated() == before and fw.cpu.memory_stats()["cached"] >= 4 << 20
    assert (x * 2).data_ptr() == at
    fw.cpu.reset_peak_memory_stats()
    z = x + 1
    del z
    stats = fw.cpu.memory_stats()
    assert stats["peak"] - stats["allocated"] == 4 << 20 and stats["system_calls"] == 0
    fw.cpu.empty_cache()
    assert fw.cpu.memory_stats()["cached"] == 0


def test_the_cache_is_bounded():
    limit = fw.cpu.memory_stats()["limit"]
    x = fw.ones(1 << 20)
    try:
        fw.cpu.set_cache_limit(0)
        y = x + 1
        del y
        assert fw.cpu.memory_stats()["cached"] == 0
    finally:
        fw.cpu.set_cache_limit(limit)
    with pytest.raises(ValueError):
        fw.cpu.set_cache_limit(-1)


def test_buffers_of_all_sizes_hold_what_is_theirs():
    """From sizes that NumPy keeps over those kept by size to large ones, freed in any order, by threads."""
    sizes = [1, 255, 256, 257, 287, 288, 289, 511, 512, 513, 4095, 4096, 4097, 16383, 16384, 16385, 30000]

    def work(seed):
        rng, held = np.random.default_rng(seed), []
        for i in range(1500):
            n = int(rng.choice(sizes))
            held.append((fw.full((n,), float(i)) * 2 + 1, 2.0 * i + 1))
            if len(held) > 40 or rng.random() < 0.4:
                x, value = held.pop(int(rng.integers(len(held))))
                assert (x.numpy() == value).all(), (x.shape, value)
            if i % 500 == 499:
                fw.cpu.empty_cache()
        for x, value in held:
            assert (x.numpy() == value).all()
        return True

    before = fw.cpu.memory_allocated()
    with ThreadPoolExecutor(3) as threads:
        assert all(threads.map(work, range(3)))
    assert fw.cpu.memory_allocated() == before


def test_a_small_buffer_is_used_again_and_begins_a_line():
    x = fw.ones(1000)
    y = x + 1
    at = y.data_ptr()
    del y
    z = x * 3
    assert z.data_ptr() == at and at % 64 == 0


@pytest.mark.parametrize(("old", "new"), [(10, 1000), (10, 1 << 20), (1 << 20, 10), (1 << 20, 1 << 21)])
def test_arrays_of_the_cache_can_be_resized(old, new):
    x = fw.arange(old, dtype=fw.float32)
    before = fw.cpu.memory_allocated()
    array = (x + 1).numpy()
    array.resize(new, refcheck=False)
    n = min(old, new)
    np.testing.assert_array_equal(array[:n], np.arange(1, n + 1))
    assert not array[n:].any()
    del array
    assert abs(fw.cpu.memory_allocated() - before) < 4096


def test_a_training_step_settles_without_asking_for_memory():
    model = fw.nn.Sequential(fw.nn.Linear(512, 1024), fw.nn.Tanh(), fw.nn.Linear(1024, 512))
    optimizer = fw.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    x = fw.randn(256, 512)

    def step():
        optimizer.zero_grad()
        (model(x) - x).square().mean().backward()
        optimizer.step()

    for _ in range(3):
        step()
    fw.cpu.reset_peak_memory_stats()
    for _ in range(3):
        step()
    assert fw.cpu.memory_stats()["system_calls"] == 0


# -- choice ----------------------------------------------------------------------------------------------


def told(**variables):
    script = ("import framework as fw; from framework import _native;"
              "print(_native.isa, float(fw.ones(3).exp().sum()))")
    return subprocess.run([sys.executable, "-c", script], env={**os.environ, **variables}, timeout=60,
                          capture_output=True, text=True)


def test_the_module_can_be_chosen():
    assert told(FRAMEWORK_NATIVE="off").stdout.startswith("switched off by FRAMEWORK_NATIVE 8.15")
    assert told(FRAMEWORK_NATIVE=_native.isa).stdout.startswith(f"{_native.isa} 8.15")
    wrong = told(FRAMEWORK_NATIVE="mmx")
    assert wrong.returncode and "FRAMEWORK_NATIVE must be 'off' or one of" in wrong.stderr


def test_the_words_are_those_of_the_engine_and_of_the_records():
    """One table of the language: what it says of the engine is so, and nothing in either is out of use."""
    made_by_the_compiler = {"copy", "mul_add", "sub_mul", "mul_mul", "limit", *_WHOLE,
                            "bit_and", "bit_or", "bit_xor", "bit_not"}
    rows = [w for w in (*WORDS.values(), *OPERATORS.values()) if isinstance(w.program, str)]
    assert {w.program for w in rows} | made_by_the_compiler == set(_native.module.instructions())
    spellings = {}  # a function of the engine is one function of CUDA, too
    for w in rows:
        assert spellings.setdefault(w.program, w[3:]) == w[3:]
    not_on_gpus = {w.program for w in rows if w.cuda is None and w.cuda_whole is None}
    assert not_on_gpus == {"softplus_rest", "nextafter"}


def test_every_word_of_the_records_is_in_the_table():
    used = set()
    for op in OPS:
        if isinstance(op, Elementwise):
            texts = [op.expr, *[rule.text for rule in op.rules or [] if rule is not None]]
            used |= {node.func.id for text in texts for node in ast.walk(ast.parse(text.strip(), mode="eval"))
                     if isinstance(node, ast.Call)}
    for_engines = {name for name, w in WORDS.items() if w.array is None}
    assert used == set(WORDS) - for_engines


@pytest.mark.parametrize("text, names", [
    ("tanh(x)", "x"), ("x * ndtr(x)", "x"), ("g * gelu_slope(x)", "g x"), ("exp(x) * tanh(g)", "x g"),
    ("x + alpha * y", "x y alpha"), ("x + weight * (y - x)", "x y weight")])
def test_numbers_from_memory_are_those_from_the_caches(text, names, threads):
    n = 3 * 2**19 + 77  # 6 MB of each, so that steps that compute for long ask for the next block
    given_ = [np.random.default_rng(i).standard_normal(n, np.float32) if len(name) == 1 else np.float32(0.3)
              for i, name in enumerate(names.split())]
    f = kernel(text, names, settings=tuple(set(names.split()) & {"alpha", "weight"}))
    for count in (1, 3):
        threads(count)
        out = f(*given_)
        for at in (0, 100_003, n - 1000):
            part = f(*[a[at:at + 1000] if a.ndim else a for a in given_])
            np.testing.assert_array_equal(out[at:at + 1000], part)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("text", ["x + y * z", "y * z + x", "x + y * (z - x)"])
@pytest.mark.parametrize("y", [3, np.inf, np.nan, "column", "x"])
def test_a_number_among_three_operands(dtype, text, y):
    if dtype is np.int64 and type(y) is not str:
        pytest.skip("numbers of one element are left to NumPy where all are whole")
    x, z = (np.random.default_rng(i).integers(-9, 9, (40, 300)).astype(dtype) for i in (0, 1))
    y = x if y == "x" else x[:, :1] if y == "column" else dtype(y)
    for u, v in ((x, z), (x, x), (x[:, ::2], z[:, ::2]), (x.T, z.T), (x[::2], z[::2])):
        w = y if y.ndim == 0 else u if y is x else u[:, :1]
        with np.errstate(invalid="ignore"):
            wanted = u + w * v if "-" not in text else u + w * (v - u)
        np.testing.assert_array_equal(kernel(text, "x y z")(u, w, v), wanted)


@pytest.mark.parametrize("dtype", FLOATS)
def test_quotients_by_small_numbers_are_those_of_division(dtype: type) -> None:
    """hardsigmoid divides by 6, the slope of hardswish by 3, without a division: to the last bit."""
    rng = np.random.default_rng(0)
    info = np.finfo(dtype)
    least, below = info.smallest_subnormal, np.nextafter(dtype(3), dtype(0))
    odd = [0.0, -0.0, 3, -3, 6, -6, info.tiny, -info.tiny, least, 7 * least, np.inf, -np.inf, np.nan,
           info.max, below, -below]
    scales = 10.0 ** rng.integers(-300 if dtype is np.float64 else -44, 1, 20000)
    x = np.concatenate([odd, rng.uniform(-4, 4, 200000), rng.standard_normal(20000) * scales]).astype(dtype)
    with np.errstate(all="ignore"):
        gate = np.minimum(np.maximum(x + dtype(3), 0), 6) / dtype(6)
        slope = np.where(x <= -3, 0, np.where(x < 3, x / dtype(3) + dtype(0.5), 1)).astype(dtype)
        wanted = {"minimum(maximum(x + 3, 0), 6) / 6": gate,
                  "x * (minimum(maximum(x + 3, 0), 6) / 6)": x * gate,
                  "where(x <= -3, 0.0, where(x < 3, x / 3 + 0.5, 1.0))": slope}
        for text, want in wanted.items():
            kernel = native_kernel(text, ("x",), array_function(text, "x", np))
            np.testing.assert_array_equal(kernel(x), want, text)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("n", [1, 16, 63, 64, 65, 200, 3000])
def test_numbers_in_place_of_what_is_not_finite(dtype: type, n: int) -> None:
    """What is rare is looked for in several vectors at once: one such number at each place."""
    x = np.random.default_rng(n).standard_normal(n).astype(dtype)
    for at in {0, n // 2, n - 1, min(17, n - 1)}:
        for odd, want in ((np.nan, 7), (np.inf, 8), (-np.inf, 9)):
            y = x.copy()
            y[at] = odd
            found = fw.nan_to_num(fw.from_numpy(y), 7, 8, 9).numpy()
            y[at] = want
            np.testing.assert_array_equal(found, y)


@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.float32, np.float64, np.complex64, np.complex128])
def test_memory_is_filled_from_any_address_on(dtype: type) -> None:
    """Stores begin where a line of the cache does; what lies across lines is filled, nothing beside it."""
    room = np.zeros(3000, np.uint8)
    for offset, n in itertools.product((0, 1, 4, 8, 24, 63), (0, 1, 5, 31, 100)):
        room[:] = 0
        x = room[offset:offset + n * np.dtype(dtype).itemsize].view(dtype)
        t = fw.from_numpy(x) if x.flags.aligned else None
        if t is None:
            continue
        t.fill_(3)
        assert (x == 3).all() and room[:offset].max(initial=0) == 0 and room[offset + x.nbytes:].max() == 0


PAIRS = {  # expressions of two steps that one loop computes: their arrays, and numbers
    "x + number * (y * z)": ("x y z", {"number": 0.3}),
    "x + number * (y / z)": ("x y z", {"number": -1.7}),
    "where(x != x, other, where(x == 1e999, high, where(x == -1e999, low, x)))":
        ("x", {"other": 0.5, "high": 3.0, "low": -0.0}),
    "where(x != x, other, minimum(maximum(x, low), high))": ("x", {"other": -0.0, "low": -1.5, "high": 1.0}),
}


@pytest.mark.parametrize("text", PAIRS)
@pytest.mark.parametrize("dtype", [*FLOATS, np.int32, np.int64])
@pytest.mark.parametrize("number", [None, 0.0, -0.0, math.nan, 2.0])
def test_two_steps_in_one_loop_give_the_bits_of_two(text: str, dtype: type, number: float | None) -> None:
    """Arrays side by side take the loop; gaps, and numbers that are nan, the two steps."""
    names, numbers = PAIRS[text]
    if np.dtype(dtype).kind == "i" and (number is None or number != 2 or text != next(iter(PAIRS))):
        pytest.skip("whole numbers have one such pair, and no such number")
    numbers = numbers if number is None else dict.fromkeys(numbers, number)
    rng, order = np.random.default_rng(0), (*names.split(), *numbers)
    odd = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.5, 1e-40]
    arrays = [np.resize(odd, 5000) if np.dtype(dtype).kind == "f" else rng.integers(-9, 9, 5000)
              for _ in names.split()]
    mixed = [np.where(rng.random(5000) < 0.8, rng.standard_normal(5000) * 3, a) for a in arrays]
    arrays = [rng.permutation(a).astype(dtype) for a in mixed]
    kernel = native_kernel(text, order, array_function(text, ", ".join(order), np), tuple(numbers))
    for n in (1, 15, 64, 100, 5000):
        whole = [a[:n] for a in arrays]
        with np.errstate(all="ignore"):
            found = kernel(*whole, *numbers.values())
            apart = kernel(*[np.repeat(a, 2)[::2] for a in whole], *numbers.values())
        same = found.view(f"i{found.itemsize}") == apart.view(f"i{found.itemsize}")
        assert (same | (found != found) & (apart != apart)).all()  # nan has no sign that means something
        with np.errstate(all="ignore"):
            plain = array_function(text, ", ".join(order), np)(*whole, *map(dtype, numbers.values()))
        np.testing.assert_array_equal(found, plain)
