"""The array API standard 2025.12: every name and signature, values, dtypes, special cases, operators."""

import inspect
import math
import re

import numpy as np
import pytest

import framework as fw

xp = fw.array_api
INF, NAN = math.inf, math.nan

SIGNATURES = """
abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1 floor imag isfinite
isinf isnan log log10 log1p log2 logical_not negative positive real reciprocal round sign signbit sin
sinh sqrt square tan tanh trunc matrix_transpose nonzero unique_all unique_counts unique_inverse
unique_values linalg.det linalg.eig linalg.eigh linalg.eigvals linalg.eigvalsh linalg.inv linalg.slogdet
linalg.svdvals linalg.matrix_transpose: x, /
add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign divide equal
floor_divide greater greater_equal hypot less less_equal logaddexp logical_and logical_or logical_xor
matmul maximum minimum multiply nextafter not_equal pow remainder subtract linalg.matmul linalg.outer
linalg.solve: x1, x2, /
clip: x, /, min=None, max=None
sum prod: x, /, *, axis=None, dtype=None, keepdims=False
max min mean all any count_nonzero argmax argmin: x, /, *, axis=None, keepdims=False
var std: x, /, *, axis=None, correction=0.0, keepdims=False
cumulative_sum cumulative_prod: x, /, *, axis=None, dtype=None, include_initial=False
diff: x, /, *, axis=-1, n=1, prepend=None, append=None
sort argsort: x, /, *, axis=-1, descending=False, stable=True
searchsorted: x1, x2, /, *, side="left", sorter=None
where: condition, x1, x2, /
isin: x1, x2, /, *, invert=False
take: x, indices, /, *, axis=None
take_along_axis: x, indices, /, *, axis=-1
concat stack: arrays, /, *, axis=0
unstack: x, /, *, axis=0
broadcast_arrays: *arrays
broadcast_shapes: *shapes
broadcast_to: x, /, shape
expand_dims squeeze: x, /, axis
flip: x, /, *, axis=None
moveaxis: x, source, destination, /
permute_dims: x, /, axes
repeat: x, repeats, /, *, axis=None
reshape: x, /, shape, *, copy=None
roll: x, /, shift, *, axis=None
tile: x, repetitions, /
tril triu: x, /, *, k=0
meshgrid: *arrays, indexing="xy"
tensordot linalg.tensordot: x1, x2, /, *, axes=2
vecdot linalg.vecdot linalg.cross: x1, x2, /, *, axis=-1
arange: start, /, stop=None, step=1, *, dtype=None, device=None
asarray: obj, /, *, dtype=None, device=None, copy=None
from_dlpack: x, /, *, device=None, copy=None
empty ones zeros: shape, *, dtype=None, device=None
empty_like ones_like zeros_like: x, /, *, dtype=None, device=None
full: shape, fill_value, *, dtype=None, device=None
full_like: x, /, fill_value, *, dtype=None, device=None
eye: n_rows, n_cols=None, /, *, k=0, dtype=None, device=None
linspace: start, stop, /, num, *, dtype=None, device=None, endpoint=True
astype: x, dtype, /, *, copy=True, device=None
can_cast: from_, to, /
finfo iinfo: type, /
isdtype: dtype, kind
result_type: *arrays_and_dtypes
linalg.cholesky: x, /, *, upper=False
linalg.diagonal: x, /, *, offset=0
linalg.matrix_norm: x, /, *, keepdims=False, ord="fro"
linalg.matrix_power: x, n, /
linalg.matrix_rank linalg.pinv: x, /, *, rtol=None
linalg.qr: x, /, *, mode="reduced"
linalg.svd: x, /, *, full_matrices=True
linalg.trace: x, /, *, offset=0, dtype=None
linalg.vector_norm: x, /, *, axis=None, keepdims=False, ord=2
fft.fft fft.ifft fft.rfft fft.irfft fft.hfft fft.ihfft: x, /, *, n=None, axis=-1, norm="backward"
fft.fftn fft.ifftn fft.rfftn fft.irfftn: x, /, *, s=None, axes=None, norm="backward"
fft.fftshift fft.ifftshift: x, /, *, axes=None
fft.fftfreq fft.rfftfreq: n, /, *, d=1.0, dtype=None, device=None
__array_namespace_info__:
"""
FUNCTIONS = {
    name: parameters.strip()
    for names, parameters in re.findall(r"([\w.\s]+):(.*)", SIGNATURES)
    for name in names.split()
}


def home(name, module=xp):
    for part in name.split("."):
        module = getattr(module, part)
    return module


@pytest.mark.parametrize("name", FUNCTIONS)
def test_signature(name):
    scope = {}
    exec(f"def wanted({FUNCTIONS[name]}): ...", scope)
    ours = inspect.signature(home(name)).parameters
    for place, (key, want) in enumerate(inspect.signature(scope["wanted"]).parameters.items()):
        if want.kind is want.KEYWORD_ONLY:  # may be positional too, as it is in NumPy
            assert (
                ours[key].kind in (want.kind, want.POSITIONAL_OR_KEYWORD)
                and ours[key].default == want.default
            )
        else:
            got = list(ours.values())[place]
            assert (got.name, got.kind, got.default) == (key, want.kind, want.default)
    assert home(name).__doc__


def test_nothing_is_missing_or_too_much():
    assert len(FUNCTIONS) == 175
    public = {n for n, f in vars(xp).items() if inspect.isfunction(f) and not n.startswith("_")}
    assert public == {n for n in FUNCTIONS if "." not in n and not n.startswith("_")}


# -- values and dtypes: NumPy's main namespace follows the standard too ----------------------------

rng = np.random.default_rng(3)
DATA = {
    "x": rng.normal(size=(3, 4)),
    "y": rng.normal(size=(3, 4)),
    "p": rng.uniform(0.1, 0.9, (3, 4)),
    "i": rng.integers(-5, 9, (3, 4)),
    "j": rng.integers(1, 5, (3, 4)),
    "u": rng.integers(0, 9, 5).astype("uint16"),
    "b": rng.random((3, 4)) < 0.5,
    "c": rng.normal(size=(3, 4)) + 1j * rng.normal(size=(3, 4)),
    "s": rng.normal(size=(2, 3, 3)) + 3 * np.eye(3),
    "v": rng.normal(size=3),
    "k": rng.integers(0, 3, 4),
    "f": rng.normal(size=4).astype("float32"),
    "n": np.array([NAN, 1.0, NAN, 2.0, 1.0]),
    "t": rng.normal(size=(2, 3, 4)),
}
VALUES = """
abs(c); acos(p); acosh(p + 1); asin(p); asinh(x); atan(x); atanh(p); bitwise_invert(i); bitwise_invert(b);
ceil(x); ceil(i); conj(c); cos(c); cosh(x); exp(c); expm1(x); floor(x); imag(c); isfinite(n); isinf(x);
isnan(n); log(p); log10(c); log1p(p); log2(p); logical_not(b); negative(i); positive(u); real(c);
reciprocal(x); round(x); sign(i); signbit(x); sin(x); sinh(x); sqrt(c); square(i); tan(x); tanh(c);
trunc(x); add(i, j); add(x, f); atan2(x, y); bitwise_and(i, j); bitwise_left_shift(j, j);
bitwise_or(i, 3); bitwise_right_shift(i, j); bitwise_xor(i, j); copysign(x, y); divide(x, y); equal(i, j);
floor_divide(i, j); floor_divide(x, p); greater(x, y); hypot(x, y); greater_equal(i, j); less(x, 0.0);
less_equal(x, y); logaddexp(x, y); logical_and(b, b); logical_or(b, i > 0); logical_xor(b, i > 0);
matmul(x, f); matmul(s, v); maximum(x, y); minimum(i, j); multiply(c, x); nextafter(x, y);
not_equal(i, j); pow(p, y); pow(i, 2); remainder(i, j); remainder(x, p); subtract(x, y); clip(i, 0, 3);
clip(x, xp.asarray(-0.5), None); sum(u); sum(i, axis=0); sum(x, axis=(0, 1), keepdims=True);
sum(b, dtype=xp.int64); sum(x, axis=()); prod(i, axis=-1); prod(u); max(x, axis=0); min(i);
mean(x, axis=1); mean(c); var(x, correction=1.0); std(x, axis=0, keepdims=True); all(b, axis=1); any(i);
count_nonzero(i, axis=0); argmax(x); argmin(x, axis=1, keepdims=True);
cumulative_sum(i, axis=1, include_initial=True); cumulative_prod(u); cumulative_sum(f); diff(x, n=2);
diff(i, axis=0); diff(x, prepend=y, append=y); sort(x); sort(i, axis=0); argsort(x, axis=0);
searchsorted(xp.sort(v), x); searchsorted(xp.sort(v), 0.5, side="right"); where(b, x, 0.0);
where(b, x, f); isin(i, j); isin(i, 3, invert=True); take(x, k, axis=0);
take(v, xp.asarray([2, 0], dtype=xp.uint8)); take_along_axis(x, xp.argsort(x)); concat([x, f[None, :]]);
concat((i, j), axis=None); stack([i, j], axis=1); unstack(t, axis=1); broadcast_arrays(x, f);
broadcast_shapes((2, 1), (3,)); broadcast_to(f, (2, 4)); expand_dims(x, (0, -1)); expand_dims(x, 1);
squeeze(x[:, None], 1); flip(x); flip(x, axis=0); moveaxis(t, 0, -1); moveaxis(t, (0, 1), (1, 2));
permute_dims(t, (2, 0, 1)); repeat(i, 2); repeat(x, k[:3], axis=0); reshape(x, (2, -1)); roll(x, 2);
roll(x, (1, -1), axis=(0, 1)); tile(x, (2, 1, 1)); tril(x, k=-1); triu(s); meshgrid(v, v[:2]);
meshgrid(v, v[:2], indexing="ij"); matrix_transpose(s); nonzero(i > 0);
tensordot(t, x, axes=((1, 2), (0, 1))); tensordot(x, x, axes=((0,), (0,))); vecdot(c, c); vecdot(x, f);
vecdot(t, t, axis=-2); unique_all(i)[0]; unique_all(i)[2]; unique_all(i)[3]; unique_counts(u);
unique_inverse(i); unique_values(n); arange(5); arange(5, 0, -2, dtype=xp.int8); arange(0, 5, -1);
arange(0.0, 1.0, 0.25, dtype=xp.float64); asarray([[1, 2], [3, 4]]); asarray(2.5, dtype=xp.float32);
asarray(x, copy=True); ones((2, 3), dtype=xp.uint32); zeros(3, dtype=xp.complex64);
empty((0, 2), dtype=xp.int16); ones_like(u); zeros_like(c); full((2,), 3, dtype=xp.uint64); full(2, True);
full_like(x, 2); empty_like(x[:0]); eye(3, 4, k=1, dtype=xp.float64); eye(2, dtype=xp.bool);
linspace(0.0, 1.0, 5, dtype=xp.float64); linspace(0, 1, 4, dtype=xp.float32, endpoint=False);
astype(x, xp.int32); astype(i, xp.complex64); from_dlpack(np.arange(3.0)); linalg.det(s); linalg.inv(s);
linalg.slogdet(s); linalg.svdvals(x); linalg.matrix_transpose(s);
linalg.eigvalsh(s + xp.matrix_transpose(s)); linalg.eigh(s + xp.matrix_transpose(s))[0];
linalg.matmul(s, s); linalg.outer(v, f); linalg.solve(s, s); linalg.tensordot(x, y); linalg.vecdot(x, y);
linalg.cross(v, s); linalg.cholesky(s @ xp.matrix_transpose(s));
linalg.cholesky(s @ xp.matrix_transpose(s), upper=True); linalg.diagonal(s, offset=1);
linalg.matrix_norm(s); linalg.matrix_norm(s, ord=1, keepdims=True); linalg.matrix_power(s, 3);
linalg.matrix_rank(x); linalg.matrix_rank(t, rtol=xp.asarray([0.1, 0.6]));
linalg.pinv(t, rtol=xp.asarray([0.1, 0.6])); linalg.pinv(x); linalg.trace(s); linalg.trace(s, offset=-1);
linalg.vector_norm(t, axis=(0, 2)); linalg.vector_norm(x, ord=xp.inf);
linalg.vector_norm(x, axis=1, ord=3); fft.fft(x); fft.ifft(c, axis=0); fft.rfft(x, n=6);
fft.irfft(c, norm="ortho"); fft.hfft(c, norm="forward"); fft.ihfft(x); fft.fftn(t);
fft.ifftn(c, axes=(0,), s=(5,)); fft.rfftn(x, axes=(0, 1)); fft.irfftn(c, norm="ortho", axes=(0, 1));
fft.fftshift(x, axes=0); fft.ifftshift(x); fft.fft(f); fft.fftfreq(5, d=0.5);
"""
PROPERTY = """
max(xp.abs((lambda w, v: v * w[:, None, :] - xp.astype(s, xp.complex128) @ v)(*xp.linalg.eig(s)))) < 1e-9;
all(xp.linalg.eigvals(s) == xp.linalg.eig(s).eigenvalues);
max(xp.abs(xp.linalg.qr(s).Q @ xp.linalg.qr(s, mode="complete").R - s)) < 1e-12;
max(xp.abs((lambda u, s, v: u * s @ v - x)(*xp.linalg.svd(x, full_matrices=False)))) < 1e-12;
all(xp.reshape(i, (-1,))[xp.unique_all(i).indices] == xp.unique_all(i).values);
all(xp.fft.rfftfreq(4) == xp.asarray([0.0, 0.25, 0.5])); can_cast(xp.int8, xp.int16);
not xp.can_cast(xp.uint8, xp.int8); not xp.can_cast(xp.int8, xp.float64); can_cast(x, xp.complex128);
finfo(f).bits == 32; finfo(xp.complex128).dtype == xp.float64; finfo(x).eps == 2.0**-52;
iinfo(u).max == 65535; iinfo(xp.uint64).max == 2**64 - 1; isdtype(u.dtype, "unsigned integer");
isdtype(xp.bool, ("numeric", "bool")); isdtype(f.dtype, xp.float32); not xp.isdtype(xp.bool, "integral");
result_type(xp.int8, xp.uint8) == xp.int16; result_type(f, 1j) == xp.complex64;
result_type(i, xp.uint8, 3) == xp.int64;
"""


def rows(text):
    return [r.strip() for r in text.split(";") if r.strip()]


def run(row, module, data):
    return eval(row if row.startswith("not ") else f"xp.{row}", {"xp": module, "np": np, **data})


def arrays():
    return {k: xp.asarray(v.copy()) for k, v in DATA.items()}


@pytest.mark.parametrize("row", rows(VALUES))
def test_value(row):
    if not hasattr(np, re.match(r"\w+", row)[0]):
        pytest.skip("this NumPy has not yet that name of the standard")
    got, want = run(row, xp, arrays()), run(row, np, DATA)
    if isinstance(got, xp.Array) or row.startswith("broadcast_shapes"):
        got, want = [got], [want]
    for g, w in zip(got, want, strict=True):
        if isinstance(g, tuple):
            assert g == w
            continue
        w = np.asarray(w)
        assert type(g) is xp.Array and g.shape == w.shape
        if not row.startswith("fft.fftfreq"):  # ours has the default dtype
            assert g.dtype.name == w.dtype.name
        close = 1e-5 if g.dtype.name in ("float32", "complex64") else 1e-9
        np.testing.assert_allclose(g.numpy(), w, close, 1e-9)


@pytest.mark.parametrize("row", rows(PROPERTY))
def test_property(row):
    assert run(row, xp, arrays())


def test_every_function_has_a_row():
    used = set(re.findall(r"[\w.]+(?=\()", VALUES + PROPERTY)) | {"fft.ifft", "__array_namespace_info__"}
    used = {u.removeprefix("xp.") for u in used}
    assert not set(FUNCTIONS) - used


# -- special cases ---------------------------------------------------------------------------------

SPECIAL = [  # function, arguments, result
    ("floor_divide", (INF, 2.0), INF),
    ("floor_divide", (INF, -2.0), -INF),
    ("floor_divide", (-INF, 2.0), -INF),
    ("floor_divide", (1.0, -INF), -0.0),
    ("floor_divide", (-1.0, INF), -0.0),
    ("floor_divide", (1.0, INF), 0.0),
    ("floor_divide", (INF, INF), NAN),
    ("floor_divide", (-7.0, 2.0), -4.0),
    ("remainder", (-7.0, 2.0), 1.0),
    ("remainder", (1.0, -INF), -INF),
    ("remainder", (-1.0, INF), INF),
    ("pow", (NAN, 0.0), 1.0),
    ("pow", (-1.0, INF), 1.0),
    ("pow", (0.0, -1.0), INF),
    ("pow", (-8.0, 1 / 3), NAN),
    ("atan2", (-0.0, -1.0), -math.pi),
    ("atan2", (0.0, -0.0), math.pi),
    ("round", (2.5,), 2.0),
    ("round", (-0.5,), -0.0),
    ("trunc", (-0.5,), -0.0),
    ("ceil", (-0.5,), -0.0),
    ("sqrt", (-0.0,), -0.0),
    ("sign", (-0.0,), 0.0),
    ("signbit", (-0.0,), True),
    ("copysign", (1.0, -0.0), -1.0),
    ("hypot", (INF, NAN), INF),
    ("logaddexp", (-INF, -INF), -INF),
    ("maximum", (NAN, 1.0), NAN),
    ("minimum", (1.0, NAN), NAN),
    ("log", (0.0,), -INF),
    ("log1p", (-1.0,), -INF),
    ("expm1", (-INF,), -1.0),
    ("acosh", (0.5,), NAN),
    ("atanh", (1.0,), INF),
    ("nextafter", (1.0, 2.0), 1 + 2.0**-52),
    ("sign", (complex(NAN, INF),), complex(NAN, NAN)),
    ("sign", (3 + 4j,), 0.6 + 0.8j),
    ("expm1", (complex(-INF, INF),), -1 + 0j),
    ("expm1", (complex(INF, 0.0),), complex(INF, 0.0)),
    ("tanh", (complex(INF, 2.0),), 1 + 0j),
    ("tanh", (complex(-INF, 1.0),), -1 + 0j),
    ("round", (2.5 - 0.5j,), complex(2, -0.0)),
]


@pytest.mark.parametrize("name, given, want", SPECIAL)
def test_special_case(name, given, want):
    kind = xp.complex128 if isinstance(given[0], complex) else xp.float64
    got = home(name)(*[xp.asarray(v, dtype=kind) for v in given]).item()
    for part in ("real", "imag"):
        g, w = getattr(got, part), getattr(want, part)
        assert (g == pytest.approx(w, rel=1e-15, nan_ok=True)) and (
            w != w or math.copysign(1, g) == math.copysign(1, w)
        )


def test_nothing_reduced():
    empty = xp.zeros((0, 3))
    assert xp.sum(empty).item() == 0 and xp.prod(empty, axis=0).tolist() == [1, 1, 1]
    assert xp.all(empty).item() and not xp.any(empty).item()
    assert xp.linalg.vector_norm(empty, ord=INF).item() == 0
    with pytest.raises(ValueError, match="empty"):
        xp.max(empty, axis=0)


def test_every_nan_is_unique():
    found = xp.unique_counts(xp.asarray(DATA["n"]))
    assert found.values.shape == (4,) and found.counts.tolist() == [2, 1, 1, 1]


# -- the array object ------------------------------------------------------------------------------


def test_namespace_of_a_tensor():
    x = fw.tensor([1.0])
    assert x.__array_namespace__() is x.__array_namespace__(api_version="2022.12") is xp
    assert xp.__array_api_version__ == "2025.12" and xp.newaxis is None and xp.pi == math.pi
    with pytest.raises(ValueError, match="api_version '1999' is not known"):
        x.__array_namespace__(api_version="1999")
    info = xp.__array_namespace_info__()
    assert info.default_device() == x.device and x.device in info.devices()
    assert info.default_dtypes(device=x.device)["real floating"] is fw.get_default_dtype()
    assert list(info.dtypes(kind="unsigned integer")) == ["uint8", "uint16", "uint32", "uint64"]
    assert len(info.dtypes()) == 13 and info.dtypes()["bool"] is xp.bool
    assert info.capabilities()["data-dependent shapes"] is True
    with pytest.raises(ValueError, match="kind 'real' is not known"):
        info.dtypes(kind="real")


def test_attributes():
    x = xp.reshape(xp.arange(6), (2, 3))
    assert (x.size, x.size(0), x.size(), x.ndim, x.shape) == (6, 2, (2, 3), 2, (2, 3)) and isinstance(
        x.size, int
    )
    assert x.T.tolist() == x.mT.tolist() == [[0, 3], [1, 4], [2, 5]]
    assert x.to_device(x.device, stream=None) is x and x.__dlpack_device__() == (1, 0)
    assert complex(xp.asarray(2.0)) == 2 and float(xp.asarray(3)) == 3.0 and int(xp.asarray(True)) == 1
    assert bool(xp.asarray(0.5)) and [7, 8][xp.asarray(1, dtype=xp.uint8)] == 8
    with pytest.raises(ValueError, match="stream must be None"):
        x.to_device("cpu", stream=1)


def test_zero_dim_arrays_count_in_promotion_and_numbers_do_not():
    small, wide = xp.ones(2, dtype=xp.int8), xp.asarray(1, dtype=xp.int32)
    assert (small + wide).dtype is (wide * small).dtype is xp.int32
    assert (small + 1).dtype is (2 - small).dtype is xp.int8
    assert (xp.ones(2, dtype=xp.float32) * xp.asarray(1.0, dtype=xp.float64)).dtype is xp.float64
    assert (fw.ones(2, dtype=fw.int8) + fw.tensor(1, dtype=fw.int32)).dtype is fw.int8  # PyTorch's rule
    assert (fw.ones(2, dtype=fw.int8) + wide).dtype is xp.int32 and type(fw.ones(2) + xp.ones(2)) is xp.Array
    with pytest.raises(TypeError, match="no common integer dtype"):
        xp.ones(1, dtype=xp.uint64) + xp.ones(1, dtype=xp.int8)


OPERATORS = """
x + y; x - y; x * y; x / y; x // y; x % y; p ** y; i & j; i | j; i ^ j; j << j; i >> j; x == y; x != y;
x < y; x <= y; x > y; x >= y; -x; +x; abs(x); ~i; s @ v; 2 + x; 2 - x; 2 * x; 2 / x; 2 // x; 2 % x;
2 ** p; 3 & i; 3 | i; 3 ^ i; 3 << j; 99 >> j; 1.5 + c; x + 1j * 0 * c;
"""


@pytest.mark.parametrize("row", rows(OPERATORS))
def test_operator(row):
    got, want = eval(row, arrays()), eval(row, dict(DATA))
    assert type(got) is xp.Array and got.dtype.name == want.dtype.name
    np.testing.assert_allclose(got.numpy(), want)


@pytest.mark.parametrize("operator", ["+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "<<", ">>", "@"])
def test_operator_in_place(operator):
    pair = {"&": "ij", "|": "ij", "^": "ij", "<<": "jj", ">>": "ij", "@": "ss", "**": "py"}.get(
        operator, "xy"
    )
    ours, theirs = arrays(), {k: v.copy() for k, v in DATA.items()}
    first = ours[pair[0]]
    for values in (ours, theirs):
        exec(f"{pair[0]} {operator}= {pair[1]}", {}, values)
    assert ours[pair[0]] is first and first.dtype.name == theirs[pair[0]].dtype.name
    np.testing.assert_allclose(first.numpy(), theirs[pair[0]])


def test_operators_leave_strangers_to_themselves():
    class Stranger:
        def __radd__(self, other):
            return "mine"

    assert xp.ones(1) + Stranger() == "mine"
    with pytest.raises(TypeError):
        xp.ones(1) + "text"


S = np.s_
KEYS = [
    S[::-1],
    S[3:0:-1],
    S[:, ::-2],
    S[::-1, None, ::-1],
    S[..., ::-1],
    S[0, ::-1],
    S[2:2:-1],
    S[-1:0:-3, 1],
    S[None, ..., -1],
    S[...],
    S[1, 2],
    S[1:, ::2],
    S[9:0:-2, 1:3],
    S[..., None, ::-1, 0],
]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_slices(key):
    want, ours = DATA["x"].copy(), xp.asarray(DATA["x"].copy())
    np.testing.assert_array_equal(ours[key].numpy(), want[key])
    part = np.arange(want[key].size, dtype=float).reshape(want[key].shape)
    want[key] = part
    ours[key] = xp.asarray(part)
    np.testing.assert_array_equal(ours.numpy(), want)


def test_index_arrays_of_any_integer_dtype():
    x, at = xp.asarray(DATA["x"]), xp.asarray([2, 0], dtype=xp.uint8)
    assert x[at, at].tolist() == DATA["x"][[2, 0], [2, 0]].tolist()
    assert x[x > 0].tolist() == DATA["x"][DATA["x"] > 0].tolist()
    with pytest.raises(IndexError, match="cannot be mixed with index arrays"):
        x[at, ::-1]
    with pytest.raises(TypeError, match="must be integer or bool, got framework.float64"):
        x[x]


def test_results_stay_in_the_graph():
    x = fw.tensor([3.0, 1.0, 2.0], requires_grad=True)
    y = xp.sum(xp.sort(xp.asarray(x), descending=True)[::-1] * xp.asarray([1.0, 2.0, 3.0]))
    y.backward()
    assert x.grad.tolist() == [3.0, 1.0, 2.0] and type(x) is fw.Tensor
    a = xp.asarray(x)
    assert type(a) is xp.Array and a.requires_grad and a.data_ptr() == x.data_ptr()


def test_copy_is_kept():
    x = xp.asarray([1.0, 2.0])
    assert xp.asarray(x) is x and xp.asarray(x, copy=True).data_ptr() != x.data_ptr()
    assert xp.astype(x, xp.float32, copy=False) is x and xp.astype(x, xp.float32).data_ptr() != x.data_ptr()
    assert xp.reshape(x, (2, 1), copy=True).data_ptr() != x.data_ptr()
    assert xp.reshape(x, (2, 1), copy=False).data_ptr() == x.data_ptr()


WRONG = [
    (lambda: xp.add(1, 2), TypeError, "add: one operand at least must be an array, got int, int"),
    (lambda: xp.sin([1.0]), TypeError, "sin: argument 'x' must be an array, got list"),
    (lambda: xp.add(xp.ones(1), "a"), TypeError, "add: argument 2 must be an array or a number, got str"),
    (lambda: xp.astype(xp.asarray(1j), xp.float32), TypeError, "would drop the imaginary part"),
    (lambda: xp.asarray(xp.ones(1), dtype=xp.int8, copy=False), ValueError, "copy=False"),
    (lambda: xp.asarray(300, dtype=xp.uint8), OverflowError, "out of bounds"),
    (lambda: xp.reshape(xp.ones((2, 3)).T, (6,), copy=False), ValueError, "reshape: copy=False"),
    (
        lambda: xp.squeeze(xp.ones((2, 1)), 0),
        ValueError,
        "squeeze: axis=0 of shape \\[2, 1\\] is not of length 1",
    ),
    (lambda: xp.expand_dims(xp.ones(2), 3), IndexError, "axis=3 is out of range"),
    (lambda: xp.expand_dims(xp.ones(2), (0, 0)), ValueError, "names a place twice"),
    (lambda: xp.take(xp.ones((2, 2)), xp.asarray([0])), ValueError, "take: axis must be given"),
    (
        lambda: xp.take_along_axis(xp.ones((2, 2)), xp.asarray([0])),
        ValueError,
        "indices has 1 dimensions, x has 2",
    ),
    (lambda: xp.cumulative_sum(xp.ones((2, 2))), ValueError, "cumulative_sum: axis must be given"),
    (lambda: xp.nonzero(xp.asarray(1)), ValueError, "a 0-dim array has no axis"),
    (lambda: xp.isdtype(xp.int8, "int"), ValueError, "kind 'int' is not known"),
    (lambda: xp.result_type(1, 2), ValueError, "wanted one array or dtype at least"),
    (
        lambda: xp.searchsorted(xp.ones(2), xp.ones(2), side="up"),
        ValueError,
        "side must be 'left' or 'right'",
    ),
    (lambda: xp.clip(xp.ones(2, dtype=xp.int8), 0.5), TypeError, "do not fit an array of framework.int8"),
    (lambda: xp.vecdot(xp.ones(2), xp.ones(3)), ValueError, "axis=-1 has 2 elements in x1 and 3 in x2"),
    (lambda: xp.vecdot(xp.asarray(1.0), xp.ones(3)), ValueError, "one dimension at least"),
    (lambda: xp.finfo(xp.int8), TypeError, "wanted a floating dtype"),
    (lambda: xp.arange(0, 1, 0), ValueError, "step must not be 0"),
    (lambda: xp.linspace(0, 1, -1), ValueError, "num must not be negative"),
    (lambda: xp.concat([]), ValueError, "concat: wanted one array at least"),
]


@pytest.mark.parametrize("call, error, message", WRONG, ids=[m for _, _, m in WRONG])
def test_wrong_call(call, error, message):
    with pytest.raises(error, match=message):
        call()
