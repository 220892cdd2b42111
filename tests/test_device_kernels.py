"""Kernels of GPUs run on the CPU: their own source, compiled by a C++ compiler (standin/cupy/device)."""

import gc
import tomllib
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from test_cuda import cupy  # noqa: F401 - the fixture: CuPy, or its stand-in

import framework as fw
import framework.amp
import framework.distributions
import framework.nn.utils
import framework.optim
from framework.backends import device_code
from framework.ops.language.cuda import DeviceKernel, NoKernel, elementwise_source, write
from framework.ops.language.cuda_fold import DeviceFold, fold_source
from framework.ops.language.elementwise import Elementwise
from framework.ops.language.expression import array_function

FLOATS = {"d": 1e-12, "f": 3e-5, "e": 2e-3, "E": 2e-2}


@pytest.fixture
def raw(cupy, monkeypatch):  # noqa: F811
    """How the stand-in runs kernels; skipped on a real device and without a compiler.

    A source is used with the dtypes that it names: those are the ones that NVRTC compiles it for.
    """
    if "standin" not in cupy.__version__:
        pytest.skip("a device runs the kernels here")
    from cupy import raw

    if raw.COMPILER is None:
        pytest.skip("there is no C++ compiler to compile kernels with")
    fw.empty(1, device="cuda")
    before, device_code.enabled = device_code.enabled, True
    kernel = device_code.Source.kernel

    def declared(source, name, char):
        assert char in source.dtypes, f"{source.path}: {name} is used with '{char}'; name it in dtypes="
        return kernel(source, name, char)

    monkeypatch.setattr(device_code.Source, "kernel", declared)
    yield raw
    raw.settings.update(backward=False, guarded=False)
    device_code.enabled = before


def dtype_of(char):
    return fw.bfloat16.numpy if char == "E" else np.dtype(char)


# what is a number in the expressions of rooms; other names are arrays
NUMBERS = {"eps", "p", "factor", "keep", "share", "beta", "delta", "tiny", "least", "chance", "span", "lower",
           "limit", "low", "below"}
# (text, names) of kernels that rooms have besides those of records
STANDING = {kind: sorted({(o.text, o.names) for o in gc.get_objects() if type(o) is kind})
            for kind in (DeviceKernel, DeviceFold)}


def expressions():
    """(name, text, names, settings) of all elementwise records and their rules, and of rooms."""
    for op in fw.ops.OPS:
        if isinstance(op, Elementwise):
            yield op.name, op.expr, (*op.inputs, *op.settings), op.settings
            for name, rule in zip(op.inputs, op.rules or ()):
                if rule is not None and rule.text != "g":
                    yield f"{op.name}, rule of {name}", rule.text, ("g", *rule.names), op.settings
    for text, names in STANDING[DeviceKernel]:
        yield f"a room's {text}", text, names, NUMBERS


def chars_of(text, names, settings, char):
    """The dtypes of the operands: those that are asked for truth only are bools."""
    return tuple(
        ("integer" if n == "n" else "number") if n in settings
        else "?" if f"where({n}," in text.replace(" ", "") else char for n in names
    )


def operand(rng, n, char, name):
    if char == "?":
        return rng.random(n) < 0.5
    x = rng.uniform(0.1, 0.9, n)
    return x.astype(dtype_of(char))


def written(char, mend=False):
    """The expressions that have a kernel for a dtype: (name, text, names, dtypes, source); mend: the rules,
    giving 0 where a gradient of 0 makes inf or nan."""
    for name, text, names, settings in expressions():
        chars = chars_of(text, names, settings, char)
        with suppress(NoKernel):
            if not mend or ", rule of " in name:
                source = elementwise_source("elementwise", write(text, names, chars, mend))
                yield name, text, names, settings, chars, source


def rules_of_several(char):
    """(expression, names, dtypes) of rules whose operands may be broadcast, so that they are summed up."""
    for op in fw.ops.OPS:
        if isinstance(op, Elementwise) and len(op.inputs) > 1:
            for rule in op.rules or ():
                if rule is not None and rule.text != "g":
                    names = ("g", *rule.names)
                    yield rule.text, names, chars_of(rule.text, names, op.settings, char)


def summed(char, mend=False):
    """The folds of expressions, each once: (text, names, dtypes, source); mend: of rules, as above."""
    rooms = [] if mend else [(*o, chars_of(*o, NUMBERS, char)) for o in STANDING[DeviceFold]]
    for text, names, chars in dict.fromkeys([*rules_of_several(char), *rooms]):
        with suppress(NoKernel):
            yield text, names, chars, fold_source("Sum", write(text, names, chars, mend))


# words that kernels alone have
ONLY_KERNELS = {"rsqrt": lambda x: 1 / np.sqrt(x), "ndtri": lambda x: fw.special.ndtri(fw.tensor(x)).numpy()}


def reference(text, names, values, char, mend=False):
    with np.errstate(all="ignore"):
        wide = [np.asarray(v).astype("d") if hasattr(v, "dtype") and v.dtype != bool else v for v in values]
        found = array_function(text, ", ".join((*names, *ONLY_KERNELS)), np)(*wide, *ONLY_KERNELS.values())
        return np.where((wide[0] == 0) & ~np.isfinite(found), 0.0, found) if mend else found


SPECIAL = np.array([-np.inf, -80.0, -3.5, -1.0, -0.25, -0.0, 0.0, 0.5, 1.0, 2.5, 80.0, np.inf, np.nan])
# NumPy's sigmoid is exactly 0 or 1 far out, where the kernel's is not: inf times it differs
SATURATED = {"silu_slope, rule of x", "mish, rule of x", "logsigmoid, rule of x"}
SATURATED |= {"glu", "glu, rule of x", "glu, rule of y"}
# of numbers that do not come there
SATURATED |= {"a room's pow(x, p)", "a room's middle + spread * tan(3.141592653589793 * (u - 0.5))"}
SATURATED |= {"zeta", "zeta, rule of y"}  # of an infinite exponent NumPy's formula makes nan


def mismatch(name, text, names, settings, chars, cupy, samples, mend=False):  # noqa: F811
    """What differs between the kernel and NumPy's formula, in words."""
    rng = np.random.default_rng(0)
    char = next(c for c in chars if c in FLOATS)
    for special in samples:
        if special and name in SATURATED:
            continue
        values = [1 if c == "integer" else 0.5 if c == "number" else operand(rng, 169, c, n)
                  for n, c in zip(names, chars)]
        if special:
            grid = np.meshgrid(SPECIAL, SPECIAL)
            values = [
                v if np.ndim(v) == 0 or v.dtype == bool else grid[i % 2].reshape(-1).astype(v.dtype)
                for i, v in enumerate(values)
            ]
        kernel = DeviceKernel(text, names, None, mend)
        got = kernel.launch(tuple([cupy.asarray(v) if np.ndim(v) else v for v in values]))
        if got is NotImplemented:
            return "no kernel"
        got, want = got.get(), np.broadcast_to(reference(text, names, values, char, mend), (169,))
        if got.dtype != bool:
            got = got.astype("d")
        with np.errstate(all="ignore"):
            if want.dtype != bool:
                want = want.astype(dtype_of(char)).astype("d")
            close = np.isclose(got, want, rtol=FLOATS[char], atol=FLOATS[char], equal_nan=True)
        if not close.all():
            at = np.flatnonzero(~close)[0]
            given = {n: v if np.ndim(v) == 0 else v[at] for n, v in zip(names, values)}
            return f"{given}: {got[at]}, wanted {want[at]}"
    return ""


@pytest.mark.parametrize("part", range(4))
def test_every_expression_as_a_kernel(part, raw, cupy):  # noqa: F811
    """Each expression of a record, a rule or a room beside NumPy's formula: float32 all, rules that mend
    among them; other dtypes a third each."""
    if part:
        pytest.importorskip("ml_dtypes")
    char = "fEde"[part]
    rows = list(written(char))
    assert len(rows) > 250
    rows = rows[part % 3 :: 3] if part else rows
    mending = [] if part else list(written(char, True))
    raw.prepare(device_code.prelude(), [row[5] for row in rows + mending])
    for backward in (False, True):
        raw.settings.update(guarded=True, backward=backward)
        found = [f"{row[0]}: {text}" for some, mend in ((rows, False), (mending, True)) for row in some
                 if (text := mismatch(*row[:5], cupy, (False, True), mend))]
        assert not found, "\n".join(found)


def values_to_fold(names, chars, char, mend):
    """Operands of a fold; where rules mend, gradients of 0 meet what makes inf or nan."""
    rng = np.random.default_rng(0)
    values = [0.5 if c == "number" else 1 if c == "integer" else operand(rng, (13, 14), c, n)
              for n, c in zip(names, chars)]
    if mend:
        values[0][::3] = 0
        for v in values[1:]:
            if np.ndim(v) and v.dtype != bool:
                v[::3] = np.resize(SPECIAL, v[::3].shape).astype(v.dtype)
    return values


@pytest.mark.parametrize("part", range(4))
def test_every_expression_summed_up(part, raw, cupy):  # noqa: F811
    """The sums of expressions beside NumPy's, over rows, columns and all: dtypes as above."""
    if part:
        pytest.importorskip("ml_dtypes")
    char = "fEde"[part]
    rows = [(*row, False) for row in summed(char)]
    assert len(rows) > 100
    rows = rows[part % 3 :: 3] if part else rows + [(*row, True) for row in summed(char, True)]
    raw.prepare(device_code.prelude(), [row[3] for row in rows])
    raw.settings.update(guarded=True)
    for text, names, chars, _, mend in rows:
        values = values_to_fold(names, chars, char, mend)
        terms = np.broadcast_to(reference(text, names, values, char, mend), (13, 14)).astype("d")
        arrays = [cupy.asarray(v) if np.ndim(v) else v for v in values]
        for dims in ((0,), (1,), (0, 1)):
            want, found = terms.sum(dims), []
            for backward in (False, True):
                raw.settings.update(backward=backward)
                found.append(DeviceFold(text, names, mend)("sum", dims, want.shape, *arrays).get())
            close = FLOATS[char] * max(1.0, np.abs(terms).sum(dims).max())
            np.testing.assert_allclose(found[0].astype("d"), want, FLOATS[char], close, err_msg=text)
            assert found[0].tobytes() == found[1].tobytes(), text


def laid_out(xp, a):
    """Operands that lie in many ways: rows, columns, steps, turned around, broadcast, one number, none."""
    b, one = a * 2, a[0, 0, 0].reshape(())
    return [
        (a, b),
        (a, b[0]),
        (a[:, :, :1], b[:1]),
        (a, one),
        (one, one),
        (a[:0], b[:0]),
        (a.transpose(2, 0, 1), b.transpose(2, 0, 1)),
        (a.transpose(1, 0, 2), b.swapaxes(0, 1).copy()),
        (a[::2, ::-1, 1:], b[1::2, :, :-1]),
        (xp.broadcast_to(a[0], a.shape), b),
        (a.reshape(-1)[1:], b.reshape(-1)[:-1]),
    ]


@pytest.mark.parametrize("backward", [False, True])
def test_layouts_of_operands(backward, raw, cupy):  # noqa: F811
    raw.settings.update(backward=backward, guarded=True)
    kernel = DeviceKernel("x * 3 - y", ("x", "y"), None)
    a = np.random.default_rng(0).standard_normal((4, 6, 5)).astype("f")
    for (x, y), theirs in zip(laid_out(np, a), laid_out(cupy, cupy.asarray(a))):
        got = kernel.launch(theirs)
        np.testing.assert_allclose(got.get(), x * 3 - y, rtol=1e-6, atol=1e-6)
        if x.shape == y.shape and x.strides == y.strides:
            assert got.strides == (x * 3 - y).strides
    a, b = cupy.asarray(np.arange(6, dtype="f")), cupy.asarray(np.ones(6, "f"))
    assert kernel.launch((a, b), a) is a and a.tolist() == [-1, 2, 5, 8, 11, 14]
    assert kernel.launch((a[1:], b[1:]), a[:-1]) is NotImplemented  # it would read what it has written
    assert kernel.launch((a, b.astype("d"))) is NotImplemented


DIVIDES = """
extern "C" __global__ void divide(i64* out, const i64* x, Divisor by, i64 n) {
  EACH_ELEMENT(i, n) out[i] = divided(x[i], by);
}
"""


def test_division_by_products(raw, cupy):  # noqa: F811
    """At the ends of what 63 bits hold, and around multiples."""
    rng, most = np.random.default_rng(0), (1 << 63) - 1
    kernel = device_code.module(DIVIDES).get_function("divide")
    sizes = {2, 3, 7, 641, most, *[(1 << k) + d for k in range(2, 63) for d in (-1, 0, 1)]}
    sizes |= {int(rng.integers(2, 1 << k)) for k in range(2, 63) for _ in range(4)}
    for n in sizes:
        times = {0, 1, 2, most // n, *[int(rng.integers(0, most // n + 1)) for _ in range(4)]}
        x = [v for t in times for d in (-1, 0, 1) if 0 <= (v := t * n + d) <= most] + [most, most - 1]
        by = np.array([device_code.divisor(n)], device_code.DIVISOR)
        out = cupy.empty(len(x), np.int64)
        kernel((1,), (64,), (out, cupy.asarray(np.array(x, np.int64)), by, len(x)))
        assert out.tolist() == [v // n for v in x], n


@pytest.mark.parametrize("char", ["f", "d", "E"])
@pytest.mark.parametrize("backward", [False, True])
def test_folds(char, backward, raw, cupy):  # noqa: F811
    """Sums, means and extremes over any dimensions, and the same bits in both orders of threads."""
    pytest.importorskip("ml_dtypes")
    rng = np.random.default_rng(0)
    fold, tolerance = DeviceFold("x * y", ("x", "y")), FLOATS[char]
    cases = [
        ((3, 4), (1,)),
        ((3, 4), (0,)),
        ((5, 700), (1,)),
        ((700, 5), (0,)),
        ((3, 40, 7), (0, 2)),
        ((1, 9), (0, 1)),
        ((9000,), (0,)),
        ((2, 3, 4, 5), (1, 3)),
        ((600, 33), (0,)),
        ((4, 3), (0, 1)),
    ]
    raw.settings.update(guarded=True)
    for shape, dims in cases:
        x, y = (rng.standard_normal(s).astype(dtype_of(char)) for s in (shape, shape[-1:]))
        product = x.astype("d") * y.astype("d")
        for name in ("sum", "mean", "amax", "amin") if char == "f" else ("sum",):
            raw.settings.update(backward=backward)
            want = getattr(np, {"amax": "max", "amin": "min"}.get(name, name))(product, axis=dims)
            got = fold(name, dims, want.shape, cupy.asarray(x), cupy.asarray(y))
            scale = max(1.0, np.abs(product).sum(axis=dims).max() if name == "sum" else 1.0)
            np.testing.assert_allclose(got.get().astype("d"), want, rtol=tolerance, atol=tolerance * scale)
            raw.settings.update(backward=not backward)
            again = fold(name, dims, want.shape, cupy.asarray(x), cupy.asarray(y))
            assert again.get().tobytes() == got.get().tobytes()


FAULTY = """
extern "C" __global__ void faulty(float* x, i64 what) {
  __shared__ float kept[64];
  int t = threadIdx.x;
  kept[t] = x[t];
  if (what != 0) __syncthreads();
  float other = kept[63 - t];
  if (what == 1 && t < 32) __syncthreads();
  if (what == 2 && t < 16) other += __shfl_xor_sync(0xffffffffu, other, 1);
  if (what == 3) other += x[t + 1];
  x[t] = other;
}
"""


def test_faults_of_kernels_are_found(raw, cupy):  # noqa: F811
    kernel = device_code.module(FAULTY).get_function("faulty")
    raw.settings.update(guarded=True)

    def run(what, backward=False):
        raw.settings.update(backward=backward)
        kernel((1,), (64,), (cupy.asarray(np.zeros(64, "f")), 4))  # what shared memory holds before
        x = cupy.asarray(np.arange(64, dtype="f"))
        kernel((1,), (64,), (x, what))
        return x.tolist()

    assert run(4) == run(4, True) == list(range(63, -1, -1))
    assert run(0) != run(0, True)  # without its barrier the result depends on the order of threads
    for what, text in ((1, "not reached by all"), (2, "deadlock|disagree"), (3, "outside of the arrays")):
        with pytest.raises(RuntimeError, match=text):
            run(what)
    with pytest.raises(TypeError, match="argument 1 has 4 bytes"):
        kernel((1,), (64,), (cupy.asarray(np.zeros(64, "f")), np.float32(1)))
    with pytest.raises(RuntimeError, match="does not compile"):
        device_code.module(FAULTY.replace("kept[t]", "missing[t]"))


SPECIAL_CALLS = {
    "lgamma": (-8, 60), "digamma": (-8, 60), "erfinv": (-1, 1), "special.erfcx": (-20, 60),
    "special.ndtri": (0, 1), "special.log_ndtr": (-50, 10), "i0": (-60, 60), "special.i0e": (-90, 90),
    "special.i1": (-60, 60),
    "special.i1e": (-90, 90), "special.bessel_j0": (-90, 90), "special.bessel_j1": (-90, 90),
    "special.bessel_y0": (0, 90), "special.bessel_y1": (0, 90), "special.modified_bessel_k0": (0, 60),
    "special.modified_bessel_k1": (0, 60), "special.scaled_modified_bessel_k0": (0, 90),
    "special.scaled_modified_bessel_k1": (0, 90), "sinc": (-9, 9), "special.spherical_bessel_j0": (-30, 30),
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_special_functions_are_a_launch_each_way(dtype, raw, cupy):  # noqa: F811
    """Far out, near 0 and at the ends; the first two derivatives."""
    from cupy import counts

    near = 10.0 ** -np.arange(2, 9)
    for name, (low, high) in SPECIAL_CALLS.items():
        function, found = fw, []
        for part in name.split("."):
            function = getattr(function, part)
        points = np.concatenate([np.linspace(low, high, 97)[1:-1] + 1e-3 * (high - low), near, low + near])
        for device in ("cpu", "cuda"):
            x = fw.tensor(points, dtype=getattr(fw, dtype), device=device, requires_grad=True)
            counts.clear()
            y = function(x)
            allowed = 1 + ("spherical" in name)  # which is scaled before
            assert device == "cpu" or counts.launches.total() <= allowed, (name, counts.launches)
            slope, = fw.autograd.grad(y, x, fw.ones_like(y), create_graph=True)
            curve, = fw.autograd.grad(slope, x, fw.ones_like(y))
            assert device == "cpu" or counts.launches.total() < 40, (name, counts.launches)
            found.append([a.detach().cpu().double().numpy() for a in (y, slope, curve)])
        for want, got in zip(*found):
            close = 1e-11 if dtype == "float64" else 3e-5
            np.testing.assert_allclose(got, want, close, close, err_msg=name)


def test_polynomials_are_a_launch_each_way(raw, cupy):  # noqa: F811
    """Every family, of several degrees at once, and its derivatives; 0 of a negative degree, nan of nan."""
    from cupy import counts

    rng, names = np.random.default_rng(0), [n for n in dir(fw.special) if "_polynomial_" in n]
    assert len(names) == 12
    degrees = np.array([[0.0], [1.0], [2.7], [5.0], [12.0], [-2.0], [np.nan]])
    raw.settings.update(guarded=True)
    for name in names:
        function, found = getattr(fw.special, name), []
        for device in ("cpu", "cuda"):
            x = fw.tensor(found[0][0] if found else rng.uniform(-1, 1, 9), device=device)
            x.requires_grad_()
            n = fw.tensor(degrees, device=device)
            counts.clear()
            y = function(x, n)
            single = function(x, 3), function(0.3, n)
            assert device == "cpu" or counts.launches["polynomial"] == 3 and not counts.waits
            slope, = fw.autograd.grad(y[:-1].sum(), x, create_graph=True)
            curve, = fw.autograd.grad(slope.sum(), x)
            found.append([a.detach().cpu().numpy() for a in (x, y, *single, slope, curve)])
        for want, got in zip(*found):
            np.testing.assert_allclose(got, want, 1e-11, 1e-11, err_msg=name)


def test_headers_that_gpus_compile_are_in_the_wheel():
    """Headers of the extension are left out of the wheel but for those that are read when a GPU computes."""
    root = Path(fw.__file__).parents[1]
    if not (root / "pyproject.toml").exists():
        pytest.skip("the package is installed")
    kept = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["scikit-build"]["wheel"]["exclude"]
    for name in ("special_tables", "special_numbers"):
        path = f"framework/_native/program/{name}.h"
        assert (root / path).exists() and f"!{path}" in kept


def test_precompiled_kernels_are_there_for_the_first_step(raw, cupy):  # noqa: F811
    """Parameters, averages, gradients and random numbers stay; a step then compiles nothing."""
    net = fw.nn.Sequential(fw.nn.Linear(6, 5), fw.nn.BatchNorm1d(5), fw.nn.Mish(), fw.nn.Dropout(0.5),
                           fw.nn.LayerNorm(5)).cuda()
    x, state = fw.ones(4, 6, device="cuda", requires_grad=True), fw.cuda.get_rng_state()
    before = [t.tolist() for t in (*net.parameters(), *net.buffers())]
    fw.cuda.precompile(net, x)
    assert [t.tolist() for t in (*net.parameters(), *net.buffers())] == before
    assert x.grad is None and all(p.grad is None for p in net.parameters())
    assert (fw.cuda.get_rng_state() == state).all()
    compiled = set(device_code._modules)
    assert any("adam_step" in source for _, source, _ in compiled)
    net(x).backward(fw.ones(4, 5, device="cuda"))
    assert set(device_code._modules) == compiled
    with pytest.raises(TypeError, match="precompile: argument 'module' must be a Module, got function"):
        fw.cuda.precompile(lambda x: x)
