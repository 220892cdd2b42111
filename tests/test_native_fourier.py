"""The native Fourier transforms, and views made natively, beside NumPy's."""

import numpy as np
import pytest

import framework as fw
from framework import _native
from framework.ops.signal.fft import fft_op

native = pytest.mark.skipif(_native.module is None, reason="no native kernels here")
SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 16, 17, 30, 61, 127)


@native
@pytest.mark.parametrize("n", [2, 4, 8])
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-6), (np.float64, 1e-15)])
def test_short_real_lines(n: int, dtype: type, tolerance: float) -> None:
    """Some thousands, for the threads; lines that overlap, that lie backwards, and in other orders."""
    whole = np.random.default_rng(n).standard_normal((37, 200, 10)).astype(dtype)
    frames = np.lib.stride_tricks.sliding_window_view(whole.reshape(37, -1), n, axis=1)[:, ::3]
    some = whole[..., :n]
    for x in (some, frames, whole[::-1, ::2, 1:n + 1], some.swapaxes(0, 1), some[:0]):
        for norm in (None, "ortho", "forward"):
            found = fw.fft.rfft(fw.from_numpy(x), norm=norm).numpy()
            want = np.fft.rfft(x.astype(np.float64), norm=norm)
            assert found.shape == want.shape and found.dtype == np.result_type(dtype, np.complex64)
            assert np.abs(found - want).max(initial=0) <= 8 * n * tolerance


@native
@pytest.mark.parametrize("kind", ["fft", "ifft", "rfft", "irfft"])
def test_transforms_are_numpys(kind: str) -> None:
    """Sizes of all radices, dimensions in any order, in any memory, of real and complex numbers."""
    rng = np.random.default_rng(5)
    for turn in range(150):
        ndim = int(rng.integers(1, 4))
        shape = tuple(rng.choice(SIZES, ndim))
        dims = tuple(int(d) for d in rng.permutation(ndim)[:rng.integers(1, ndim + 1)])
        x = rng.standard_normal(shape)
        if kind == "irfft" or kind != "rfft" and turn % 3:
            x = x + 1j * rng.standard_normal(shape)
        narrow = turn % 2 == 0
        x = x.astype({"f": "f4", "c": "c8"}[x.dtype.kind]) if narrow else x
        x = (x, np.ascontiguousarray(x.T).T, np.repeat(x, 2, -1)[..., ::2], x[::-1])[turn % 4]
        n = x.shape[dims[-1]]
        settings = {"kind": kind, "dims": dims, "norm": (None, "ortho", "forward", "backward")[turn % 4],
                    "size": max(1, 2 * (n - 1) + turn % 2) if kind == "irfft" else n}
        out, want = _native.module.fft(x, **settings), fft_op.plain(x, **settings)
        assert out.shape == want.shape and out.dtype == want.dtype, (shape, settings)
        error = np.abs(out - want).max() / max(np.abs(want).max(), 1e-30)
        assert error < (2e-6 if narrow else 2e-15), (shape, settings, error)


@native
@pytest.mark.parametrize("lines", [1, 2, 5, 16, 17, 40])
@pytest.mark.parametrize("n", [48, 64, 256, 320])
@pytest.mark.parametrize(("dtype", "most"), [("c8", 1e-6), ("c16", 1e-15)])
def test_lines_of_many_numbers_are_numpys(lines: int, n: int, dtype: str, most: float) -> None:
    """One line by vectors of its numbers, others side by side: squares of them are turned, not the rest."""
    rng = np.random.default_rng(n + lines)
    x = (rng.standard_normal((lines, n)) + 1j * rng.standard_normal((lines, n))).astype(dtype)
    half = x[:, :n // 2 + 1]
    for kind, given in (("fft", x), ("ifft", x), ("fft", x.T), ("fft", x.real), ("fft", x.real.copy()),
                        ("rfft", x.real), ("rfft", x.real.copy()), ("irfft", half), ("irfft", half.copy())):
        settings = {"kind": kind, "dims": (int(given.shape != (n, lines)),), "size": n, "norm": None}
        out, want = _native.module.fft(given, **settings), fft_op.plain(given, **settings)
        assert np.abs(out - want).max() < most * np.abs(want).max(), (kind, given.strides)


@native
def test_transforms_leave_what_they_do_not_know() -> None:
    settings = {"kind": "fft", "dims": (0,), "norm": None}
    for x in (np.ones(8, "int64"), np.ones((0, 8))[:, 0], np.ones(8, ">f8"), np.ones(8, "f2")):
        assert _native.module.fft(x, size=len(x), **settings) is NotImplemented
    assert _native.module.fft(np.ones(8), size=9, **settings) is NotImplemented
    assert _native.module.fft(np.ones(8), size=8, kind="fft", dims=(1,), norm=None) is NotImplemented
    assert _native.module.fft(np.ones((8, 8)), size=8, kind="fft", dims=(0, 0), norm=None) is NotImplemented


@native
def test_dimensions_from_the_33rd_on_are_told_apart() -> None:
    x = np.random.default_rng(0).standard_normal((4, *(1,) * 31, 6)) + 0j
    out = _native.module.fft(x, kind="fft", dims=(0, 32), size=6, norm=None)
    np.testing.assert_allclose(out, np.fft.fftn(x, axes=(0, 32)), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("n", [109, 113, 127, 211, 226, 257, 514, 633, 997, 1994, 4099, 100_003])
@pytest.mark.parametrize(("narrow", "most"), [(True, 2e-6), (False, 1e-14)])
def test_sizes_with_a_large_prime_factor_are_transformed(n: int, narrow: bool, most: float) -> None:
    """By a convolution, or by stages: one line often by the first, many by the second."""
    rng = np.random.default_rng(n)
    for lines in (1, 3, 16, 17, 40) if n < 10_000 else (1, 20):
        real = rng.standard_normal((lines, n))
        z = real + 1j * rng.standard_normal((lines, n))
        for kind, x in (("fft", z), ("ifft", z), ("rfft", real), ("irfft", z), ("hfft", z), ("fft", real)):
            given = x.astype({"c": "c8", "f": "f4"}[x.dtype.kind]) if narrow else x
            for dim in (0, 1) if n < 1000 else (1,):
                want = getattr(np.fft, kind)(x if dim else x.T, axis=dim, norm="ortho")
                found = getattr(fw.fft, kind)(fw.from_numpy(given if dim else given.T), dim=dim, norm="ortho")
                assert np.abs(found.numpy() - want).max() < most * np.abs(want).max(), (kind, lines, dim)


@native
def test_long_lines_and_threads_give_the_same_bits() -> None:
    x = np.random.default_rng(0).standard_normal((37, 1024)).astype("f4")
    before = fw.get_num_threads()
    try:
        found = []
        for threads in (1, 2):
            fw.set_num_threads(threads)
            found.append(_native.module.fft(x, kind="rfft", dims=(1,), size=1024, norm=None))
    finally:
        fw.set_num_threads(before)
    assert (found[0] == found[1]).all()


@native
def test_views_do_not_leave_the_memory() -> None:
    x = np.arange(12.0).reshape(3, 4)
    seen = _native.module.seen
    assert (seen(x[1:], (2, 2), (8, 32), -32, True) == [[0, 4], [1, 5]]).all()
    part = seen(x, (3,), (40,), 0, False)
    assert np.shares_memory(part, x) and not part.flags.writeable
    for shape, steps, offset in (((13,), (8,), 0), ((2,), (8,), -8), ((2,), (-8,), 0), ((4,), (32,), 0),
                                 ((2**62,), (2**62,), 0), ((1, 2), (8,), 0), ((0,), (8,), 0),
                                 ((-1,), (8,), 0)):
        assert seen(x, shape, steps, offset, True) is NotImplemented, (shape, steps, offset)
    assert seen(x[:, ::2].copy("F")[1:], (3,), (8,), -8, True).tolist() == [0.0, 4.0, 8.0]


@native
def test_expanded_arrays_are_read_only_where_elements_repeat() -> None:
    x = np.arange(3.0).reshape(3, 1)
    expand = _native.module.expand
    assert (expand(x, (2, 3, 4)) == np.broadcast_to(x, (2, 3, 4))).all()
    assert not expand(x, (3, 2)).flags.writeable and expand(x, (1, 3, 1)).flags.writeable
    for size in ((2, 1), (3,), (3, 0), (3, -1), (3, 2.0)):
        assert expand(x, size) is NotImplemented


@native
def test_what_the_native_function_leaves_goes_to_the_other() -> None:
    asked = []
    both = _native.module.preferring(lambda *a, **k: asked.append((a, k)) or NotImplemented,
                                     lambda *a, **k: (a, k))
    assert both(1, two=2) == ((1,), {"two": 2}) and asked == [((1,), {"two": 2})]
    with pytest.raises(ZeroDivisionError):
        _native.module.preferring(lambda: 1 // 0, lambda: 1)()
