"""NumPy's functions on tensors: NumPy's values, gradients against differences, honest refusals."""

import re

import numpy as np
import pytest

import framework as fw

rng = np.random.default_rng(7)
SQUARE = rng.normal(size=(3, 3)) + 3 * np.eye(3)
INPUTS = {  # by the letter they have in the rows
    "x": rng.normal(size=(3, 4)), "y": rng.normal(size=(3, 4)) + 0.3, "p": rng.uniform(0.2, 0.8, (3, 4)),
    "v": rng.normal(size=4), "w": rng.uniform(0.5, 1.5, 4), "u": rng.normal(size=3), "s": SQUARE,
    "h": SQUARE @ SQUARE.T, "t": rng.normal(size=(2, 3, 4)), "q": rng.normal(size=()),
    "g": rng.normal(size=6),
    "n": np.where(rng.random((3, 4)) < 0.3, np.nan, rng.normal(size=(3, 4))),
    "i": rng.integers(1, 9, (3, 4)), "j": rng.integers(1, 4, (3, 4)), "k": rng.integers(0, 4, (3, 4)),
    "b": rng.random((3, 4)) < 0.5, "a": rng.random((3, 4)) < 0.5,
    "c": rng.normal(size=4) + 1j * rng.normal(size=4),
}
FLOATS = "xypvwushtqgn"

DIFFERENTIABLE = """
np.add(x, y); np.subtract(x, v); np.multiply(x, y); np.divide(x, y); np.power(p, y); np.power(x, 2);
np.float_power(p, 2); np.remainder(x, 0.7); np.mod(x, 0.7); np.fmod(x, 0.7); np.divmod(x, 0.7)[1];
np.modf(x)[0]; np.negative(x); np.positive(x); np.absolute(x); np.abs(x); np.fabs(x); np.conjugate(x);
np.exp(x); np.exp2(x); np.expm1(x); np.log(p); np.log2(p); np.log10(p); np.log1p(p); np.sqrt(p);
np.square(x); np.cbrt(x); np.reciprocal(y); np.sin(x); np.cos(x); np.tan(p); np.arcsin(p); np.arccos(p);
np.arctan(x); np.arctan2(x, y); np.hypot(x, y); np.sinh(x); np.cosh(x); np.tanh(x); np.arcsinh(x);
np.arccosh(p + 1); np.arctanh(p); np.degrees(x); np.radians(x); np.rad2deg(x); np.deg2rad(x);
np.maximum(x, y); np.minimum(x, 0.1); np.fmax(x, y); np.fmin(x, y); np.copysign(x, y);
np.logaddexp(x, y); np.logaddexp2(x, y); np.ldexp(x, 2); np.matmul(x, v); np.matmul(t, x.T);
np.true_divide(x, w); np.sign(x) * x; np.floor(x) * x; np.ceil(x) * x; np.trunc(x) * x; np.rint(x) * x;
np.vecdot(x, v); np.sum(x); np.sum(t, axis=(0, -1)); np.sum(x, 0, keepdims=True); np.sum(x, where=b);
np.sum(x, initial=3.0); np.sum(x, axis=()); np.prod(x, axis=1); np.prod(t, axis=(0, 2));
np.prod(x, where=b); np.mean(x); np.mean(t, (0, 1)); np.mean(x, 1, keepdims=True);
np.mean(x, axis=0, where=x > -9); np.var(x); np.var(x, axis=0, ddof=1); np.std(x, axis=1);
np.std(x, correction=1); np.std(x, 0, ddof=1, keepdims=True); np.max(x); np.max(x, axis=0);
np.max(x, initial=0.0); np.amax(x, 1); np.min(x, 1, keepdims=True); np.amin(x);
np.max(x, axis=1, where=b, initial=-9.0); np.ptp(x, axis=1); np.ptp(x); np.average(x);
np.average(x, axis=1, weights=w); np.average(x, 0); np.nansum(n, axis=0); np.nanprod(n);
np.nanmean(n, axis=0); np.nanmax(n); np.nanmin(n, axis=1); np.nanvar(n); np.nanstd(n, ddof=1);
np.nancumsum(n, axis=0); np.nancumprod(n); np.nanmedian(n); np.nanquantile(n, 0.3);
np.nanpercentile(n, 30.0); np.median(x); np.median(x, axis=1); np.median(v); np.quantile(x, 0.3);
np.quantile(x, [0.2, 0.9], axis=1); np.percentile(x, 25); np.quantile(v, 0.4, method="lower");
np.cumsum(x); np.cumsum(x, axis=1); np.cumprod(x, axis=0); np.diff(x); np.diff(x, n=2, axis=0);
np.diff(v, prepend=0.0); np.diff(x, axis=1, append=y); np.ediff1d(v); np.ediff1d(v, to_begin=1.0);
np.gradient(v); np.gradient(x)[0]; np.gradient(x, 0.5, axis=1); np.gradient(x, 2.0, 3.0)[1];
np.trapezoid(x); np.trapezoid(x, dx=0.5, axis=0); np.trapezoid(v, w); np.sort(x); np.sort(x, axis=None);
np.sort(x, axis=0); np.clip(x, -0.5, 0.5); np.clip(x, None, y); np.clip(x, 0.1, None); np.round(x, 1) * x;
np.cov(x); np.cov(x, rowvar=False); np.cov(v, w, bias=True); np.corrcoef(x); np.cov(x, ddof=0);
np.add.reduce(x); np.multiply.reduce(x, axis=1); np.maximum.reduce(x, axis=None); np.minimum.reduce(x);
np.logaddexp.reduce(x); np.add.accumulate(x); np.multiply.accumulate(x, axis=1);
np.maximum.accumulate(v); np.minimum.accumulate(x); np.logaddexp.accumulate(v); np.add.outer(v, u);
np.multiply.outer(u, x); np.subtract.outer(u, v); np.reshape(x, (2, 6)); np.reshape(x, -1); np.ravel(x);
np.transpose(t); np.transpose(t, (1, 0, 2)); np.expand_dims(x, 1); np.expand_dims(x, (0, -1));
np.squeeze(x[:1]); np.squeeze(x[:1], axis=0); np.swapaxes(t, 0, 2); np.moveaxis(t, 0, -1);
np.broadcast_to(v, (3, 4)); np.broadcast_arrays(v, x)[0]; np.atleast_1d(q); np.atleast_2d(v);
np.atleast_3d(x); np.diagonal(x); np.diagonal(t, 1, 1, 2); np.matrix_transpose(t); np.flip(x);
np.flip(x, 1); np.fliplr(x); np.flipud(x); np.rot90(x); np.rot90(x, 3); np.roll(x, 2);
np.roll(x, 1, axis=1); np.roll(x, (1, 2), (0, 1)); np.tile(x, 2); np.tile(v, (2, 1)); np.repeat(x, 2);
np.repeat(x, 2, axis=1); np.repeat(x, [1, 0, 2], axis=0); np.pad(v, 2);
np.pad(x, ((1, 0), (2, 1)), constant_values=3.0); np.pad(x, 1, mode="edge");
np.pad(x, 2, mode="reflect"); np.pad(v, 3, mode="wrap"); np.pad(x, 2, "symmetric");
np.concatenate([x, y]); np.concatenate((x, y), axis=1); np.concatenate((x, v), axis=None);
np.stack([x, y]); np.stack((v, w), axis=1); np.vstack([x, v]); np.hstack([v, u]); np.dstack((x, y));
np.column_stack((u, x)); np.split(x, 2, axis=1)[1]; np.split(v, [1, 3])[1]; np.array_split(v, 3)[0];
np.vsplit(x, 3)[2]; np.hsplit(x, 2)[0]; np.hsplit(v, 2)[1]; np.dsplit(t, 2)[1]; np.append(x, y);
np.append(x, y, axis=0); np.meshgrid(v, u)[0]; np.meshgrid(v, u, indexing="ij")[1]; np.where(b, x, y);
np.where(b, x, 0.0); np.where(x > 0, x, -x); np.select([b, a], [x, y], 1.0); np.take(x, [0, 2], axis=1);
np.take(x, k); np.take(v, [5, -1], mode="wrap"); np.take_along_axis(x, k, 1);
np.compress([True, False, True], x, axis=0); np.extract(b, x); np.diag(v); np.diag(s, 1); np.diagflat(x);
np.tril(s); np.triu(s, -1); np.copy(x); np.nan_to_num(n); np.real(x); np.sinc(x); np.i0(x);
np.polyval(u, x); np.convolve(v, u); np.convolve(u, v, "same"); np.convolve(v, u, mode="valid");
np.dot(v, w); np.dot(x, v); np.dot(t, x.T); np.dot(x, 2.0); np.dot(t, t.swapaxes(1, 2)); np.inner(v, w);
np.inner(x, y); np.vdot(x, y); np.outer(v, u); np.tensordot(t, x); np.tensordot(x, y, axes=([0], [0]));
np.tensordot(t, x, (1, 0)); np.einsum("ij,kj->ik", x, y); np.einsum("ii", s); np.trace(s);
np.trace(t, 0, 1, 2); np.cross(u, s); np.cross(s, u, axis=-1); np.kron(u, v);
np.linalg.multi_dot([s, x, v]); np.linalg.inv(s); np.linalg.det(s); np.linalg.slogdet(s)[1];
np.linalg.cholesky(s @ s.T); np.linalg.eigh(s @ s.T)[0]; np.linalg.eigvalsh(s @ s.T);
np.linalg.matrix_power(s, 3);
np.linalg.norm(x); np.linalg.norm(x, axis=1); np.linalg.norm(x, 1); np.linalg.norm(v, 3);
np.linalg.norm(x, "nuc"); np.linalg.norm(v, np.inf); np.linalg.norm(x, keepdims=True); np.linalg.pinv(x);
np.linalg.solve(s, u); np.linalg.solve(s, s.T); np.linalg.qr(s)[1]; np.linalg.qr(s, mode="r");
np.linalg.svd(x)[1]; np.linalg.svd(x, compute_uv=False); np.linalg.svdvals(x); np.linalg.matrix_norm(x);
np.linalg.vector_norm(x, axis=0); np.linalg.diagonal(x); np.linalg.trace(s); np.linalg.outer(u, v);
np.linalg.cross(u, s); np.linalg.matmul(x, x.T); np.linalg.tensordot(x, y); np.linalg.vecdot(x, y);
np.linalg.matrix_transpose(x); np.linalg.cond(s); np.fft.fftshift(v); np.fft.ifftshift(x, axes=1);
np.mean(np.fft.fftshift(x));
np.abs(np.fft.fft(x)); np.fft.irfft(np.fft.rfft(x) * 2.0); np.real(np.fft.fft2(x)); np.imag(np.fft.ifftn(t));
np.fft.hfft(x); np.abs(np.fft.ihfft(x, n=6, norm="forward"));
np.exp(x) @ np.ones((4, 2)); np.ones((2, 3)) @ x; np.ones((3, 4)) + x;
np.float64(2.0) * x; x * np.arange(4.0); np.arange(1.0, 5.0) / w; np.ones(4) - v; np.float64(2.0) ** p;
"""
PLAIN = """
np.floor_divide(i, j); np.divmod(i, j); np.heaviside(x, 0.5); np.nextafter(x, y); np.isnan(n);
np.isinf(x); np.isfinite(n); np.signbit(x); np.equal(i, j); np.not_equal(i, j); np.less(x, y);
np.less_equal(x, y); np.greater(x, y); np.greater_equal(x, 0.1); np.logical_and(a, b);
np.logical_or(a, b); np.logical_xor(a, b); np.logical_not(b); np.bitwise_and(i, j); np.bitwise_or(i, 2);
np.bitwise_xor(i, j); np.invert(i); np.left_shift(i, 2); np.right_shift(i, j); np.gcd(i, j); np.lcm(i, j);
np.sign(x); np.rint(x); np.all(b); np.all(i, axis=0); np.any(b, axis=1, keepdims=True);
np.any(b, where=a); np.logical_and.reduce(b); np.logical_or.reduce(b, axis=1); np.argmax(x);
np.argmax(x, axis=1); np.argmin(x, 0, keepdims=True); np.count_nonzero(b); np.count_nonzero(i, axis=1);
np.argsort(x); np.argsort(x, axis=None); np.searchsorted([0.0, 1.0], x);
np.searchsorted(np.sort(v), w, side="right"); np.nonzero(b); np.argwhere(b); np.flatnonzero(b);
np.where(b); np.isin(i, [1, 2]); np.isin(i, [1, 2], invert=True); np.isposinf(x); np.isneginf(x);
np.isclose(x, y); np.zeros_like(x); np.ones_like(i); np.full_like(x, 3.0);
np.zeros_like(x, dtype="int32", shape=(2,)); np.linalg.matrix_rank(x); np.imag(x);
np.linalg.slogdet(s); np.sum(i); np.prod(i, axis=0); np.max(i); np.cumsum(i); np.add.outer(i, j);
np.fft.fft(x); np.fft.ifft(x, axis=0); np.fft.rfft(x, n=6); np.fft.irfft(c); np.fft.fft2(x);
np.fft.ifft2(x); np.fft.rfft2(x); np.fft.irfft2(x); np.fft.fftn(t, axes=(0, 2)); np.fft.ifftn(t);
np.fft.rfftn(t, norm="ortho"); np.fft.irfftn(t); np.conjugate(c); np.real(c); np.imag(c); np.angle(c);
np.angle(c, deg=True); np.abs(c); np.linalg.eigvals(s); np.vdot(c, c); np.unique(i);
np.unique(i, return_counts=True); np.histogram(x, bins=3); np.bincount(k.reshape(-1)); np.partition(g, 2);
np.digitize(x, [0.0, 1.0]); np.triu_indices_from(s); np.interp(x, [-2.0, 2.0], [0.0, 1.0]); np.spacing(x);
np.mean(i); np.mean(i, axis=0, where=i > 1); np.nanmean(i); np.var(i); np.std(i, axis=1); np.median(i);
np.average(i, weights=j); np.percentile(i, 30); np.cov(i); np.unstack(x, axis=1); np.astype(x, "float32");
np.sin(i); np.divide(i, j); np.sqrt(i); np.fabs(i); np.trace(i); np.dot(i, i.T); np.nanstd(i);
np.apply_along_axis(np.sum, 0, x); np.add(x, 1, dtype="float32"); np.sum(i, dtype="float64");
np.cumsum(i, dtype="float64");
"""
ASKING = """
np.shape(x); np.ndim(x); np.size(x); np.size(x, 1); np.array_equal(x, x); np.allclose(x, x);
np.iscomplexobj(c); np.result_type(i, x); np.can_cast(i, "float64"); np.array2string(v);
np.may_share_memory(x, x);
"""


def rows(text):
    return [r.strip() for r in text.split(";") if r.strip()]


def run(row, values):
    if "np.unstack" in row or "np.astype" in row:
        pytest.importorskip("numpy", "2.1")
    return eval(row, {"np": np, **values})


def tensors(grad=()):
    return {k: fw.tensor(v).requires_grad_(k in grad) for k, v in INPUTS.items()}


def parts(value):
    return list(value) if isinstance(value, (list, tuple)) else [value]


def compare(got, want):
    for g, w in zip(parts(got), parts(want), strict=True):
        assert isinstance(g, fw.Tensor), type(g)
        w = np.asarray(w)
        assert g.shape == w.shape and g.detach().numpy().dtype.kind == w.dtype.kind
        np.testing.assert_allclose(g.detach().numpy(), w, rtol=1e-5 if g.itemsize == 4 else 1e-7, atol=1e-9)


@pytest.mark.parametrize("row", rows(DIFFERENTIABLE))
def test_value_and_gradient(row):
    used = [k for k in FLOATS if re.search(rf"(?<![\w.\"]){k}(?![\w\"(=])", row)]
    ours = tensors(used)
    got, want = run(row, ours), run(row, INPUTS)
    compare(got, want)
    weights = [rng.normal(size=np.shape(w)) for w in parts(want)]
    sum((g * fw.tensor(w)).sum() for g, w in zip(parts(got), weights)).backward()
    step, toward = 1e-6, {k: rng.normal(size=INPUTS[k].shape) for k in used}

    def total(t):
        moved = run(row, {**INPUTS, **{k: INPUTS[k] + t * d for k, d in toward.items()}})
        return sum(np.sum(p * w) for p, w in zip(parts(moved), weights))
    expected = (total(step) - total(-step)) / (2 * step)
    slope = sum(np.sum(ours[k].grad.numpy() * d) for k, d in toward.items() if ours[k].grad is not None)
    np.testing.assert_allclose(slope, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("row", rows(PLAIN))
def test_value(row):
    compare(run(row, tensors()), run(row, INPUTS))


@pytest.mark.parametrize("row", rows(ASKING))
def test_asking(row):
    got, want = run(row, tensors(FLOATS)), run(row, INPUTS)
    assert got == want and type(got) is type(want)


def test_there_are_many():
    """The rows call as many functions as they say, each name counted once."""
    names = set(re.findall(r"np\.[\w.]+(?=\()", DIFFERENTIABLE + PLAIN))
    assert len(names) > 230


# -- mixed operands, out=, where=, dtype= ----------------------------------------------------------

def test_mixed_operands():
    x, array = fw.tensor([1.0, 2.0], requires_grad=True), np.array([10.0, 20.0])
    for value in (array + x, x + array, np.add(array, x), np.float64(10) + x, np.add([10, 20], x)):
        assert isinstance(value, fw.Tensor) and value.requires_grad
    assert (array + x).dtype is fw.float64 and (np.float64(2) * x).dtype is fw.float32  # scalars are weak
    assert (array > x).tolist() == [True, True] and np.sum(np.stack([x, x * 2])).item() == 9
    (array @ x + x @ array + np.dot(array, x)).backward()
    assert x.grad.tolist() == [30, 60]


def test_out():
    x, into, array = fw.tensor([1.0, 4.0]), fw.zeros(2), np.zeros(2, np.float32)
    assert np.sqrt(x, out=into) is into and into.tolist() == [1, 2]
    assert np.sqrt(x, out=array) is array and array.tolist() == [1, 2]
    array += x
    assert type(array) is np.ndarray and array.tolist() == [2, 6]
    assert np.sum(x, out=(total := fw.zeros(()))) is total and total.item() == 5
    whole, rest = fw.zeros(2), fw.zeros(2)
    assert np.divmod(x, 3, out=(whole, rest))[1] is rest
    assert (whole.tolist(), rest.tolist()) == ([0, 1], [1, 1])
    np.copyto(into, [3.0, 5.0], where=np.array([True, False]))
    np.copyto(array, x)
    assert into.tolist() == [3, 2] and array.tolist() == [1, 4]
    with pytest.raises(ValueError, match="np.sqrt: the result has shape .*, out= has"):
        np.sqrt(x, out=np.zeros(3))
    with pytest.raises(TypeError, match="same_kind"):
        np.sqrt(x, out=np.zeros(2, np.int64))


def test_out_cannot_hold_what_is_recorded():
    x, array = fw.ones(2, requires_grad=True), np.ones(2, np.float32)
    with pytest.raises(TypeError, match="np.add: out= is a NumPy array, which .* write a = a \\+ b"):
        array += x
    with fw.no_grad():
        array += x
    assert array.tolist() == [2, 2]


def test_where_and_dtype_of_a_ufunc():
    x, mask = fw.tensor([1.0, 4.0]), np.array([True, False])
    assert np.sqrt(x, where=mask, out=fw.full((2,), 9.0)).tolist() == [1, 9]
    assert np.add(x, 1, dtype=np.float64).dtype is fw.float64
    with pytest.raises(TypeError, match="np.sqrt: where= leaves elements without a value"):
        np.sqrt(x, where=mask)


def test_at_adds_in_place():
    x = fw.zeros(3)
    np.add.at(x, [0, 2, 0], [1.0, 2.0, 3.0])
    np.subtract.at(x, ([1],), 5.0)
    assert x.tolist() == [4, -5, 2] and x._version == 2
    with pytest.raises(TypeError, match="np.multiply.at is supported for np.add and np.subtract"):
        np.multiply.at(x, [0], 2.0)


# -- functions that are not in the table -----------------------------------------------------------

def test_unknown_functions_compute_but_lose_no_gradient():
    x = fw.tensor([3.0, 1.0, 2.0])
    assert isinstance(np.partition(x, 1), fw.Tensor)
    counts, edges = np.histogram(x, bins=2)
    assert counts.tolist() == [1, 2] and isinstance(edges, fw.Tensor)
    x.requires_grad_()
    for call, name in ((lambda: np.partition(x, 1), "np.partition"),
                       (lambda: np.interp(x, [0, 1], [0, 1]), "np.interp"),
                       (lambda: np.spacing(x), "np.spacing"), (lambda: np.unwrap(x), "np.unwrap"),
                       (lambda: np.linalg.tensorinv(x), "np.linalg.tensorinv"),
                       (lambda: np.add.reduceat(x, [0, 1]), "np.add.reduceat")):
        with pytest.raises(TypeError, match=f"{name} is not known to framework.*x.detach\\(\\).numpy\\(\\)"):
            call()
    with fw.no_grad():
        assert np.partition(x, 1).tolist() == [1, 2, 3]


def test_unknown_functions_change_nothing_and_share_nothing():
    x = fw.tensor([3.0, 1.0, 2.0])
    with pytest.raises(ValueError, match="read-only"):
        np.put(x, [0], [9.0])
    part = np.rollaxis(x, 0)  # NumPy's result is a view
    part[0] = 7
    assert x.tolist() == [3, 1, 2] and part.tolist() == [7, 1, 2]


ODD_SETTINGS = {
    "np.reshape: order='F' is not supported": lambda x: np.reshape(x, 4, order="F"),
    "np.reshape: order='A'": lambda x: np.ravel(x, order="A"),
    "np.var: where= and mean= are not supported": lambda x: np.var(x, where=np.eye(2) > 0),
    "np.quantile: .* method='hazen' are not supported": lambda x: np.quantile(x, 0.5, method="hazen"),
    "np.pad: mode='mean' .* is not supported": lambda x: np.pad(x, 1, mode="mean"),
    "constant_values must be one number": lambda x: np.pad(x, 1, constant_values=(1, 2)),
    "np.einsum: tensors take the form": lambda x: np.einsum(x, [0, 1]),
    "np.meshgrid: sparse=True is not supported": lambda x: np.meshgrid(x[0], x[1], sparse=True)[0],
    "np.linalg.qr: mode='raw' is not supported": lambda x: np.linalg.qr(x, mode="raw")[0],
    "np.hypot.reduce is not supported": lambda x: np.hypot.reduce(x),
    "np.subtract.accumulate is not supported": lambda x: np.subtract.accumulate(x),
    "np.sqrt: casting='safe' is not supported for tensors": lambda x: np.sqrt(x, casting="safe"),
}


@pytest.mark.parametrize("message", ODD_SETTINGS)
def test_settings_that_are_not_there(message):
    """NumPy computes them, unless a gradient would be lost."""
    x = fw.tensor([[1.0, 2.0], [3.0, 5.0]], dtype=fw.float64)
    compare(ODD_SETTINGS[message](x), ODD_SETTINGS[message](x.numpy()))
    with pytest.raises(TypeError, match=message):
        ODD_SETTINGS[message](x.requires_grad_())


def test_wrong_calls_are_explained():
    x = fw.ones(2, 2)
    with pytest.raises(ValueError, match="np.split: 2 elements along axis 0 cannot be divided into 3"):
        np.split(x, 3)
    with pytest.raises(ValueError, match="np.squeeze: axis=0"):
        np.squeeze(x, 0)
    with pytest.raises(ValueError, match="np.convolve: mode must be"):
        np.convolve(fw.ones(2), fw.ones(2), "circular")


def test_strangers_get_their_turn():
    class Stranger:
        def __array_ufunc__(self, ufunc, method, *inputs, **settings):
            return "mine"

        def __array_function__(self, function, types, args, settings):
            return "mine"
    assert np.add(fw.ones(1), Stranger()) == "mine" and np.stack([fw.ones(1), Stranger()]) == "mine"


def test_asarray_says_what_to_do():
    with pytest.raises(RuntimeError, match="requires grad.*x.detach\\(\\).numpy\\(\\)"):
        np.asarray(fw.ones(1, requires_grad=True))
    assert type(np.asarray(fw.ones(1))) is np.ndarray


@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.4.0", reason="NumPy asks dtypes since 2.4")
def test_numpy_takes_our_dtypes():
    assert np.zeros(2, fw.float32).dtype == "float32" and np.issubdtype(fw.int8, np.integer)


def test_a_program_written_for_numpy_learns():
    """Logistic regression as one would write it for arrays: not a line of it knows of tensors."""
    def loss(weights, samples, targets):
        odds = np.dot(samples, weights)
        return np.mean(np.logaddexp(0, odds) - targets * odds)
    samples = rng.normal(size=(50, 2))
    targets = (samples[:, 0] > samples[:, 1]).astype(float)
    weights = fw.zeros(2, dtype=fw.float64, requires_grad=True)
    for _ in range(20):
        value = loss(weights, samples, targets)
        (slope,) = fw.autograd.grad(value, weights)
        weights = (weights - 2 * slope).detach().requires_grad_()
    assert loss(weights.detach().numpy(), samples, targets) < 0.25 < loss(np.zeros(2), samples, targets)
