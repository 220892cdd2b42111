"""framework.testing: what is equal and what is not, beside PyTorch's; tensors of random numbers."""

import re

import numpy as np
import pytest

import framework as fw

PAIRS = [
    ("equal", lambda M: (M.tensor([1.0, 2.0]), M.tensor([1.0, 2.0])), {}),
    ("rounded", lambda M: (M.tensor([1.0]), M.tensor([1.0 + 1e-6])), {}),
    ("apart", lambda M: (M.tensor([1.0, 2.0]), M.tensor([1.0, 2.5])), {}),
    ("tolerated", lambda M: (M.tensor([1.0, 2.0]), M.tensor([1.0, 2.5])), {"rtol": 0.0, "atol": 0.6}),
    ("shape", lambda M: (M.ones(2), M.ones(3)), {}),
    ("broadcast", lambda M: (M.ones(2, 1), M.ones(2, 2)), {}),
    ("dtype", lambda M: (M.ones(2), M.ones(2, dtype=M.float64)), {}),
    ("dtype allowed", lambda M: (M.ones(2), M.ones(2, dtype=M.float64)), {"check_dtype": False}),
    ("strides", lambda M: (M.ones(2, 3), M.ones(3, 2).T), {"check_stride": True}),
    ("nan", lambda M: (M.tensor([float("nan")]), M.tensor([float("nan")])), {}),
    ("nan equal", lambda M: (M.tensor([float("nan")]), M.tensor([float("nan")])), {"equal_nan": True}),
    ("inf", lambda M: (M.tensor([float("inf")]), M.tensor([float("inf")])), {}),
    ("integers", lambda M: (M.tensor([1, 2 ** 62]), M.tensor([1, 2 ** 62 + 1])), {}),
    ("booleans", lambda M: (M.tensor([True]), M.tensor([False])), {}),
    ("complex", lambda M: (M.tensor([1 + 1j]), M.tensor([1 + 2j])), {}),
    ("numbers", lambda M: (1.0, 1.0 + 1e-9), {}),
    ("numbers apart", lambda M: (1.0, 2.0), {}),
    ("types of numbers", lambda M: (1, 1.0), {}),
    ("list", lambda M: ([M.ones(1), 2.0], [M.ones(1), 3.0]), {}),
    ("lengths", lambda M: ([M.ones(1)], []), {}),
    ("dict", lambda M: ({"a": M.ones(1)}, {"a": M.zeros(1)}), {}),
    ("keys", lambda M: ({"a": M.ones(1)}, {"b": M.ones(1)}), {}),
    ("none", lambda M: (None, None), {}), ("none apart", lambda M: (None, 1.0), {"check_dtype": False}),
    ("arrays", lambda M: (np.ones(2), np.ones(2)), {}),
    ("empty", lambda M: (M.ones(0), M.ones(0)), {}),
]
NUMBERS = re.compile(r"[-+]?(?:inf|nan|\d+\.?\d*(?:e[-+]?\d+)?)")


def outcome(M, pair, settings):
    try:
        M.testing.assert_close(*pair(M), **settings)
    except (AssertionError, TypeError) as error:
        return type(error), str(error)
    return None, ""


@pytest.mark.parametrize("name, pair, settings", PAIRS, ids=[p[0] for p in PAIRS])
def test_same_verdict_as_torch(name, pair, settings):
    torch = pytest.importorskip("torch")
    ours, theirs = outcome(fw, pair, settings), outcome(torch, pair, settings)
    assert ours[0] == theirs[0], (ours, theirs)
    if ours[0] is AssertionError and "None" not in theirs[1]:
        first = theirs[1].splitlines()[0].replace("torch.", "framework.").replace("torch", "framework")
        assert ours[1].splitlines()[0].split(":")[0] == first.split(":")[0]
        assert ("Mismatched elements" in ours[1]) == ("Mismatched elements" in theirs[1])


def test_messages():
    with pytest.raises(AssertionError, match=r"1 / 4 \(25.0%\)[\s\S]*index \(1, 0\)"):
        fw.testing.assert_close(fw.zeros(2, 2), fw.tensor([[0.0, 0.0], [3.0, 0.0]]))
    with pytest.raises(AssertionError, match=r"item \[0\]\['a'\]"):
        fw.testing.assert_close([{"a": 1.0}], [{"a": 2.0}])
    with pytest.raises(AssertionError, match="^own$"):
        fw.testing.assert_close(1.0, 2.0, msg="own")
    with pytest.raises(AssertionError, match="^own: Scalars"):
        fw.testing.assert_close(1.0, 2.0, msg=lambda m: f"own: {m}")
    with pytest.raises(ValueError, match="both rtol and atol"):
        fw.testing.assert_close(1.0, 1.0, rtol=1.0)
    with pytest.raises(TypeError, match="nothing is known"):
        fw.testing.assert_close(object(), 1.0)
    with pytest.warns(FutureWarning, match="assert_close"):
        fw.testing.assert_allclose(fw.ones(2), np.ones(2))


@pytest.mark.parametrize("name", ["float32", "float64", "float16", "int64", "uint8", "bool", "complex64"])
def test_make_tensor(name):
    dtype = getattr(fw, name)
    x = fw.testing.make_tensor((20, 30), dtype=dtype, device="cpu", noncontiguous=True)
    assert x.shape == (20, 30) and x.dtype == dtype and not x.is_contiguous()
    if name == "int64":
        assert x.min().item() == -10 and x.max().item() == 9
    y = fw.testing.make_tensor(500, dtype=dtype, device="cpu", exclude_zero=True)
    assert bool((y != 0).all())
    if dtype.is_floating_point:
        z = fw.testing.make_tensor(50, dtype=dtype, device="cpu", low=2, high=3, requires_grad=True)
        assert z.requires_grad and z.min().item() >= 2 and z.max().item() <= 3
    with pytest.raises(ValueError, match="low"):
        fw.testing.make_tensor(2, dtype=dtype, device="cpu", low=3, high=3)
