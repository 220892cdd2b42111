"""What runs along dimensions on a device (running sums, rows in order): the CPU's numbers, in both orders of
threads, over guarded memory, with nan, infinities and equal elements.
"""

import numpy as np
import pytest
from test_cuda import cupy  # noqa: F401 - the fixture: CuPy, or its stand-in
from test_device_kernels import raw  # noqa: F401 - how the stand-in runs kernels

import framework as fw

DTYPES = ("float32", "float64", "bfloat16", "float16", "int32", "int64", "uint8")
CLOSE = {"float32": 3e-5, "float64": 1e-12, "bfloat16": 4e-2, "float16": 4e-3}
SHAPES = (((7,), 0), ((3, 1030), 1), ((2, 9, 5), 1), ((2500,), 0), ((4, 1), 1))


def tensors(shape, dtype, special):
    """On the CPU and on a device: few different values, and where that can be nan and infinities."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 5, shape) if "int" in dtype else rng.integers(-8, 8, shape) / 4
    if special and "int" not in dtype:
        x.reshape(-1)[2::11] = np.nan
        x.reshape(-1)[5::13] = -np.inf
        x.reshape(-1)[1::17] = -0.0
    x = fw.tensor(x).to(getattr(fw, dtype))
    return x, x.to("cuda")


def equal(got, want, close=0.0):
    assert got.dtype == want.dtype and got.shape == want.shape
    a, b = (x.cpu().double().numpy() for x in (got, want))
    np.testing.assert_allclose(a, b, rtol=close, atol=close * (np.abs(b[np.isfinite(b)]).max(initial=1.0)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("backward", [False, True])
def test_running_sums_and_extremes(dtype, backward, raw, cupy):  # noqa: F811
    from cupy import counts

    pytest.importorskip("ml_dtypes")
    raw.settings.update(backward=backward, guarded=True)
    for shape, dim in SHAPES:
        for special in (False, True):
            x, there = tensors(shape, dtype, special)
            for name in ("cummax", "cummin"):
                counts.clear()
                got, want = getattr(fw, name)(there, dim), getattr(fw, name)(x, dim)
                assert counts.launches == {name: 1}
                equal(got.values, want.values)
                assert got.indices.tolist() == want.indices.tolist()
        x, there = tensors(shape, dtype, False)
        close = CLOSE.get(dtype, 0)
        equal(fw.cumsum(there, dim, dtype=x.dtype), fw.cumsum(x, dim, dtype=x.dtype), close)
        flat = x / 3 + 1 if close else x
        factor = (flat / flat.abs().max() + 1e-2).to(x.dtype) if close else x
        got, want = (fw.cumprod(t, dim, dtype=x.dtype) for t in (factor.to("cuda"), factor))
        equal(got, want, close)
        if close:
            x[..., :1] = -np.inf
            want = fw.logcumsumexp(x.double(), dim).to(x.dtype)  # NumPy rounds halves at each step
            equal(fw.logcumsumexp(x.to("cuda"), dim), want, close)
            a, b = (t.detach().requires_grad_() for t in (flat, flat.to("cuda")))
            (a.cumsum(dim) * a.detach()).sum().backward()
            (b.cumsum(dim) * b.detach()).sum().backward()
            equal(b.grad, a.grad, close)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64"])
def test_long_rows_in_order(dtype, raw, cupy):  # noqa: F811
    """Tiles that are merged, or of which few elements are kept, in rounds; equal ones in their order."""
    from cupy import counts

    pytest.importorskip("ml_dtypes")
    for shape, dim in (((2, 4099), 1), ((6145, 2), 0), ((20000,), 0)):
        x, there = tensors(shape, dtype, True)
        n, order = shape[dim], fw.argsort(x, dim, stable=True)
        for largest in (False, True):
            want, got = (fw.sort(t, dim, largest, stable=True) for t in (x, there))
            assert got[1].tolist() == want[1].tolist()
            equal(got[0], want[0])
            for k in (1, 700, 1024, 1025, n):
                counts.clear()
                got = fw.topk(there, k, dim, largest)
                assert bool(counts.launches["merge_runs"]) is (k > 1024)
                first = fw.narrow(want[1], dim, 0, k)
                assert got[1].tolist() == first.tolist()
        want, got = (fw.median(t, dim, keepdim=True) for t in (x, there))
        equal(got[0], want[0])
        # of equal numbers the one in the middle of their order; NumPy's formula takes any of whole ones
        places = fw.narrow(order, dim, (n - 1) // 2, 1) if dtype == "int64" else want[1]
        assert got[1].tolist() == places.tolist()
        equal(fw.median(there), fw.median(x))


@pytest.mark.parametrize("dtype", (*DTYPES, "bool"))
def test_places_in_sorted_sequences(dtype, raw, cupy):  # noqa: F811
    from cupy import counts

    pytest.importorskip("ml_dtypes")
    raw.settings.update(guarded=True)
    for shape in ((9,), (2, 30), (3, 1)):
        x, there = (fw.sort(t, -1).values for t in tensors(shape, dtype, True))
        keys, there_too = tensors((*shape[:-1], 7), dtype, True)
        for right in (False, True):
            counts.clear()
            got = fw.searchsorted(there, there_too, right=right)
            assert counts.launches == {"search_sorted": 1}
            assert got.tolist() == fw.searchsorted(x, keys, right=right).tolist()
    if dtype == "float32":
        assert fw.bucketize(fw.tensor([[0.5], [3.0]], device="cuda"), fw.tensor([1.0, 2.0], device="cuda")
                            ).tolist() == [[0], [2]]


@pytest.mark.parametrize("dtype", (*DTYPES, "bool"))
@pytest.mark.parametrize("backward", [False, True])
def test_rows_in_order(dtype, backward, raw, cupy):  # noqa: F811
    from cupy import counts

    pytest.importorskip("ml_dtypes")
    raw.settings.update(backward=backward, guarded=True)
    for shape, dim in SHAPES:
        x, there = tensors(shape, dtype, True)
        if dtype == "int64":
            x.reshape(-1)[0], there.reshape(-1)[0] = np.iinfo("i8").min, np.iinfo("i8").min
        n, ours = shape[dim], {"order_rows", "order_tiles", "merge_runs", "take_ordered"}
        for largest in (False, True):
            calls = [lambda t: fw.sort(t, dim, largest, stable=True)]
            calls += [lambda t, k=k: fw.topk(t, k, dim, largest) for k in {1, n // 2 + 1, n}]
            calls += [lambda t: fw.kthvalue(t, n // 2 + 1, dim), lambda t: fw.kthvalue(t, 1, dim, True)]
            calls += [lambda t: fw.median(t, dim), lambda t: (fw.median(t), fw.median(t, dim, True)[1])]
            for call in calls:
                want = call(x)
                counts.clear()
                got = call(there)
                assert set(counts.launches) <= ours and counts.launches.total() <= 8
                equal(got[0], want[0])
                if call is calls[0]:
                    assert got[1].tolist() == want[1].tolist()
                elif got[0].ndim:  # of equal ones any: the element that is there
                    at = got[1].cpu().numpy()
                    at = at if at.ndim == len(shape) else np.expand_dims(at, dim)
                    there_is = np.take_along_axis(x.double().numpy(), at, dim).reshape(want[0].shape)
                    np.testing.assert_array_equal(there_is, want[0].double().numpy())


@pytest.mark.parametrize("dtype", (*DTYPES, "int8", "bool", "complex64"))
@pytest.mark.parametrize("backward", [False, True])
def test_sums_into_places_that_repeat_in_their_order(dtype, backward, raw, cupy):  # noqa: F811
    """Where determinism is asked for: the terms of each sum one after the other, as the CPU adds them."""
    pytest.importorskip("ml_dtypes")
    raw.settings.update(backward=backward, guarded=True)
    rng = np.random.default_rng(3)
    kind = getattr(fw, dtype)
    exact = dtype not in ("bfloat16", "float16")  # there the CPU rounds each sum

    def near(got, want):
        if exact:
            assert got.cpu().tolist() == want.tolist()
        else:
            equal(got, want, 0.1)
    x = fw.tensor(rng.integers(0, 3, (4, 6)) * 10.0 ** rng.integers(-3, 4, (4, 6))).to(kind)
    source = fw.tensor(rng.integers(0, 3, (300, 6)) * 10.0 ** rng.integers(-3, 4, (300, 6))).to(kind)
    rows, each = fw.tensor(rng.integers(0, 4, 300)), fw.tensor(rng.integers(0, 4, (300, 6)))
    there = [t.to("cuda") for t in (x, source, rows, each)]
    try:
        fw.use_deterministic_algorithms(True)
        for function in (lambda x, s, i, e: fw.index_add(x, 0, i, s),
                         lambda x, s, i, e: fw.scatter_add(x, 0, e, s),
                         lambda x, s, i, e: x.t().index_put((e[:6], i[:6]), s[0], accumulate=True),
                         lambda x, s, i, e: x.index_put((i[:0], i[:0]), s[0, :0], accumulate=True)):
            near(function(*there), function(x, source, rows, each))
        if kind.is_floating_point:
            a, b = (t.detach().requires_grad_() for t in (x, there[0]))
            (a[rows] * source).sum().backward(), (b[there[2]] * there[1]).sum().backward()
            near(b.grad, a.grad)
        with pytest.MonkeyPatch.context() as without:
            without.setattr(fw.backends.device_code, "enabled", False)
            with pytest.raises(RuntimeError, match="sum into places that repeat.*use_deterministic"):
                fw.index_add(there[0], 0, there[2], there[1])
    finally:
        fw.use_deterministic_algorithms(False)
