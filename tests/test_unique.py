"""Elements without repetition, by counting, by sorting and by NumPy: the same results."""

import numpy as np
import pytest

import framework as fw

DRAWN = np.random.default_rng(0)
CASES = {
    "near": lambda n: DRAWN.integers(-5, 20, n), "far": lambda n: DRAWN.integers(-2**62, 2**62, n),
    "extremes": lambda n: DRAWN.choice([-2**63, 2**63 - 1, 0], n),
    "high": lambda n: DRAWN.integers(2**63 - 9, 2**63 - 1, n),
    "bytes": lambda n: DRAWN.integers(0, 256, n, np.uint8),
    "small": lambda n: DRAWN.integers(-128, 128, n).astype(np.int8),
    "32 bits": lambda n: DRAWN.integers(-2**31, 2**31, n).astype(np.int32),
    "bools": lambda n: DRAWN.random(n) < 0.5,
    "floats": lambda n: DRAWN.integers(0, 9, n).astype(np.float32) / 4,
    "odd": lambda n: DRAWN.choice([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0], n),
    "halves": lambda n: DRAWN.integers(0, 9, n).astype(np.float16)}


@pytest.mark.parametrize("kind", CASES)
@pytest.mark.parametrize("shape", [(0,), (1,), (7,), (255,), (256,), (3, 400), (2, 3, 50)])
def test_unique_is_numpys(kind, shape):
    x = CASES[kind](int(np.prod(shape))).reshape(shape)
    for laid in (x, x.T, x[::-1]):
        wanted = np.unique(laid, return_inverse=True, return_counts=True, equal_nan=False)
        inverse = wanted[1].reshape(laid.shape)
        t = fw.from_numpy(laid.copy(order="K"))
        values, places, counts = fw.unique(t, return_inverse=True, return_counts=True)
        np.testing.assert_array_equal(values.numpy(), wanted[0])
        np.testing.assert_array_equal(fw.unique(t).numpy(), wanted[0])
        assert values.numpy().dtype == laid.dtype and places.dtype is counts.dtype is fw.int64
        assert places.shape == laid.shape
        np.testing.assert_array_equal(counts.numpy(), wanted[2])
        if kind != "odd":
            np.testing.assert_array_equal(places.numpy(), inverse)
        np.testing.assert_array_equal(values[places].numpy(), laid)
        np.testing.assert_array_equal(fw.unique(t, return_inverse=True)[1].numpy(), places.numpy())
