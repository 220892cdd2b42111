"""How results lie in memory, and that copies keep what is shared."""

import copy
from typing import Any

import numpy as np
import pytest

import framework as fw
import framework.nn.functional as F

X = np.random.default_rng(0).uniform(0.5, 1.5, (3, 4, 5)).astype(np.float32)
IN_ROWS: dict[str, Any] = {
    **{name: lambda x, name=name: getattr(x, name)(1) for name in (
        "sum", "prod", "mean", "amax", "amin", "all", "any", "count_nonzero", "std", "var", "norm", "nansum",
        "logsumexp", "cumsum", "softmax", "log_softmax", "nanmean")},
    "sum, keepdim": lambda x: x.sum(1, keepdim=True), "max": lambda x: x.max(1),
    "cummax": lambda x: x.cummax(1),
    "aminmax": lambda x: x.aminmax(dim=1), "topk": lambda x: x.topk(2, 1), "cat": lambda x: fw.cat([x, x]),
    "stack": lambda x: fw.stack([x, x]), "roll": lambda x: x.roll(1, 1), "tril": lambda x: x.tril(),
    "layer_norm": lambda x: F.layer_norm(x, x.shape[2:]), "max_pool1d": lambda x: F.max_pool1d(x, 2),
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
    "rms_norm": lambda x: F.rms_norm(x, x.shape[2:])}


@pytest.mark.parametrize("dims", [(2, 0, 1), (1, 2, 0), (2, 1, 0)])
@pytest.mark.parametrize("name", IN_ROWS)
def test_results_of_transposed_inputs_are_contiguous(name: str, dims: tuple[int, ...]) -> None:
    """As in PyTorch, so that ``.view(-1)`` takes them."""
    x = fw.tensor(X).permute(*dims)
    found, plain = IN_ROWS[name](x), IN_ROWS[name](x.contiguous())
    for y, z in zip(*[t if isinstance(t, tuple) else (t,) for t in (found, plain)]):
        np.testing.assert_allclose(y.view(-1).numpy(), z.view(-1).numpy(), rtol=1e-5)


def test_elementwise_results_lie_as_their_input() -> None:
    x = fw.tensor(X).permute(2, 0, 1)
    for y in (x + 1, x * x, x.exp(), x.double(), fw.where(x > 1, x, 0.0)):
        assert y.stride() == x.stride()


@pytest.mark.parametrize("pair", [
    lambda x: (x, x[0]), lambda x: (x[:, 1], x), lambda x: (x.T, x), lambda x: (x.detach(), x),
    lambda x: (x.T[1:], x[:, 1:])], ids=["row", "column", "transposed", "detached", "two parts"])
def test_deepcopy_keeps_what_is_shared(pair: Any) -> None:
    x = fw.arange(6.0).reshape(2, 3)
    first, second = pair(x)
    one, two = copy.deepcopy((first, second))
    assert one.tolist() == first.tolist() and two.tolist() == second.tolist()
    assert one.stride() == first.stride() and two.stride() == second.stride()
    two.fill_(9.0)
    assert np.shares_memory(one.numpy(), two.numpy()) and not np.shares_memory(one.numpy(), x.numpy())
    assert one.amax() == 9.0 and one._version == 1
    assert x.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]


def test_deepcopy_leaves_the_memory_of_others_alone() -> None:
    """A part of a mapped file, say, is copied alone."""
    x = fw.from_numpy(np.frombuffer(bytearray(4000), np.float32)[:3])
    assert copy.deepcopy(x)._array.base is None


NUMBERS: dict[str, Any] = {
    "fill_": lambda: fw.zeros(2, dtype=fw.uint8).fill_(300),
    "__setitem__": lambda: fw.zeros(2, dtype=fw.uint8).__setitem__(0, 300),
    "full": lambda: fw.full((2,), 300, dtype=fw.uint8), "tensor": lambda: fw.tensor([1, 300], dtype=fw.uint8),
    "where": lambda: fw.zeros(2, dtype=fw.uint8).masked_fill(fw.tensor([True, False]), 300),
    "add": lambda: fw.zeros(2, dtype=fw.uint8) + 300}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_a_dtype_cannot_hold(name: str) -> None:
    with pytest.raises(fw.errors.RangeError, match=f"^{name}: the number 300 is out of bounds for uint8"):
        NUMBERS[name]()


def test_view_speaks_of_itself() -> None:
    with pytest.raises(fw.errors.ShapeError, match=r"^view: a tensor of shape \[6\]"):
        fw.ones(6).view(4)
