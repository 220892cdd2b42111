"""How results lie in memory, and that copies keep what is shared."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import framework as fw
import framework.nn.functional as F
from framework.ops.image.pool import max_spread

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


# -- memory formats --------------------------------------------------------------------------------------

IMAGES = fw.tensor(np.random.default_rng(1).standard_normal((2, 5, 6, 7), np.float32))
VOLUMES = fw.ones(2, 3, 2, 3, 4)
LAST, LAST_3D = fw.channels_last, fw.channels_last_3d
KEEP: dict[str, Any] = {
    "add": lambda x: x + 1, "relu": F.relu, "clone": lambda x: x.clone(), "double": lambda x: x.double(),
    "add channels": lambda x: x + fw.ones(1, 5, 1, 1), "where": lambda x: fw.where(x > 0, x, x * 0),
    "conv2d": lambda x: F.conv2d(x, fw.ones(3, 5, 2, 2), fw.ones(3), padding=1),
    "depthwise": lambda x: F.conv2d(x, fw.ones(5, 1, 3, 3), groups=5),
    "conv_transpose2d": lambda x: F.conv_transpose2d(x, fw.ones(5, 3, 2, 2)),
    "max_pool2d": lambda x: F.max_pool2d(x, 3, 2, 1), "avg_pool2d": lambda x: F.avg_pool2d(x, 2),
    "adaptive_max_pool2d": lambda x: F.adaptive_max_pool2d(x, (2, 3)),
    "batch_norm": lambda x: F.batch_norm(x, None, None, fw.ones(5), fw.ones(5), training=True),
    "batch_norm, eval": lambda x: F.batch_norm(x, fw.zeros(5), fw.ones(5))}


def test_strides_of_formats() -> None:
    x = IMAGES.contiguous(memory_format=LAST)
    assert x.shape == IMAGES.shape and x.stride() == (210, 1, 35, 5) and x.tolist() == IMAGES.tolist()
    assert x.is_contiguous(memory_format=LAST) and not x.is_contiguous()
    assert x.contiguous(memory_format=LAST) is x
    assert not IMAGES.is_contiguous(memory_format=LAST) and x.contiguous().stride() == IMAGES.stride()
    y = VOLUMES.to(memory_format=LAST_3D)
    assert y.stride() == (72, 1, 36, 12, 3) and y.is_contiguous(memory_format=LAST_3D)
    assert not y.is_contiguous(memory_format=LAST) and not fw.ones(3).is_contiguous(memory_format=LAST)
    thin = fw.ones(2, 1, 3, 4)
    assert thin.is_contiguous() and thin.is_contiguous(memory_format=LAST)
    assert x.to(fw.float64, memory_format=fw.contiguous_format).stride() == IMAGES.stride()
    assert x.to(fw.float64, memory_format=fw.preserve_format).stride() == x.stride()


@pytest.mark.parametrize("make", [
    fw.zeros_like, fw.ones_like, fw.empty_like, lambda x, **k: fw.full_like(x, 3.0, **k), fw.rand_like,
    fw.randn_like, lambda x, **k: fw.randint_like(x, 5, **k), fw.clone])
def test_tensors_like_others(make: Any) -> None:
    x = IMAGES.contiguous(memory_format=LAST)
    assert make(x).stride() == make(IMAGES, memory_format=LAST).stride() == x.stride()
    assert make(x, memory_format=fw.contiguous_format).stride() == make(IMAGES).stride() == IMAGES.stride()
    assert make(x).shape == x.shape
    with pytest.raises(fw.errors.ShapeError, match="4 dimensions"):
        make(fw.ones(3), memory_format=LAST)
    with pytest.raises(TypeError, match="memory_format"):
        make(x, memory_format="last")


def test_empty_in_a_format() -> None:
    x = fw.empty(2, 3, 4, 5, memory_format=LAST, requires_grad=True)
    assert x.shape == (2, 3, 4, 5) and x.is_contiguous(memory_format=LAST) and x.is_leaf and x.requires_grad
    assert fw.empty(2, 3, memory_format=fw.contiguous_format).is_contiguous()
    with pytest.raises(ValueError, match="preserve_format"):
        x.contiguous(memory_format=fw.preserve_format)


@pytest.mark.parametrize("name", KEEP)
def test_images_keep_their_format(name: str) -> None:
    """Results and gradients are the same numbers; results lie as the input does."""
    found = []
    for memory_format in (fw.contiguous_format, LAST):
        x = IMAGES.clone(memory_format=memory_format).requires_grad_()
        y = KEEP[name](x)
        assert y.is_contiguous(memory_format=memory_format)
        (y * y.detach().sin()).sum().backward()
        found.append((y.detach().numpy(), x.grad.numpy()))
    for rows, last in zip(*found):
        np.testing.assert_allclose(last, rows, rtol=1e-5, atol=1e-5 * np.abs(rows).max())


def test_volumes_keep_their_format() -> None:
    x = VOLUMES.contiguous(memory_format=LAST_3D)
    for run in (lambda x: F.conv3d(x, fw.ones(4, 3, 2, 2, 2)), lambda x: F.max_pool3d(x, 2),
                lambda x: F.batch_norm(x, fw.zeros(3), fw.ones(3))):
        assert run(x).is_contiguous(memory_format=LAST_3D) and run(x).tolist() == run(VOLUMES).tolist()


@pytest.mark.parametrize("dims", [2, 3])
@pytest.mark.parametrize("mean", [False, True])
def test_pooling_is_the_same_in_both_formats(dims: int, mean: bool) -> None:
    """Values, places, gradients and theirs, for many sizes, strides, paddings and dilations."""
    rng = np.random.default_rng(dims)
    last = LAST if dims == 2 else LAST_3D
    pool = getattr(F, f"{'avg' if mean else 'max'}_pool{dims}d")
    for trial in range(40):
        sizes = rng.integers(3, 10, size=dims).tolist()
        kernel = [int(rng.integers(1, 4)) for _ in sizes]
        settings: dict[str, Any] = {"stride": rng.integers(1, 4, size=dims).tolist(),
                                    "padding": [int(rng.integers(0, k // 2 + 1)) for k in kernel],
                                    "ceil_mode": bool(trial % 2)}
        if mean:
            settings["count_include_pad"] = trial % 3 == 0
        else:
            settings["return_indices"] = True
            settings["dilation"] = [int(rng.integers(1, 3)) if s > 4 else 1 for s in sizes]
        values = rng.standard_normal((2, int(rng.integers(1, 20)), *sizes)).round(1)
        if trial % 5 == 0 and not mean:
            values[rng.random(values.shape) < 0.1] = np.nan
        found = []
        for memory_format in (fw.contiguous_format, last):
            x = fw.tensor(values, dtype=fw.float64 if trial % 2 else fw.float32)
            x = x.contiguous(memory_format=memory_format).requires_grad_()
            y, *places = pool(x, kernel, **settings) if not mean else [pool(x, kernel, **settings)]
            v = (fw.arange(y.numel()).reshape(y.shape) % 7 - 3.0).to(x.dtype)
            v = v.contiguous(memory_format=memory_format).requires_grad_()
            (g,) = fw.autograd.grad(y, x, v, create_graph=True)
            (back,) = fw.autograd.grad((g * g).sum(), v)
            assert y.is_contiguous(memory_format=memory_format)
            found.append([t.detach().numpy() for t in (y, g, back, *places)])
        for rows, channels in zip(*found):
            np.testing.assert_allclose(channels, rows, rtol=1e-5, atol=1e-6)


def test_places_outside_their_windows_are_refused_in_both_formats() -> None:
    layout: dict[str, Any] = {"kernel": (2, 2), "stride": (2, 2), "padding": (0, 0), "dilation": (1, 1),
                              "out": (2, 2)}
    for memory_format in (fw.contiguous_format, LAST):
        where = fw.full((1, 3, 2, 2), 200, dtype=fw.uint8).contiguous(memory_format=memory_format)
        y = fw.ones(1, 3, 2, 2).contiguous(memory_format=memory_format)
        assert max_spread.run(y, where, x_shape=(1, 3, 4, 4), **layout).sum().item() == 0


def test_weights_decide_too() -> None:
    w = fw.ones(3, 5, 2, 2).to(memory_format=LAST)
    assert F.conv2d(IMAGES, w).is_contiguous(memory_format=LAST)
    assert F.conv2d(IMAGES, w.contiguous()).is_contiguous()


def test_a_module_in_channels_last_trains_alike() -> None:
    def losses(memory_format: Any) -> list[float]:
        fw.manual_seed(0)
        n = fw.nn
        model = n.Sequential(n.Conv2d(5, 8, 3, padding=1), n.BatchNorm2d(8), n.ReLU(), n.MaxPool2d(2),
                             n.Conv2d(8, 4, 3), n.AvgPool2d(1), n.Flatten(), n.Linear(4, 2)).double()
        model.to(memory_format=memory_format)
        assert model[0].weight.is_contiguous(memory_format=memory_format) and model[0].bias.is_contiguous()
        optimizer = fw.optim.Adam(model.parameters(), lr=0.01)
        found = []
        for _ in range(3):
            loss = model(IMAGES.double().to(memory_format=memory_format)).square().sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        return found
    np.testing.assert_allclose(losses(LAST), losses(fw.contiguous_format), rtol=1e-9)


def test_formats_have_names() -> None:
    assert repr(LAST) == "framework.channels_last" and isinstance(LAST, fw.memory_format)
    assert copy.deepcopy(LAST) is LAST and pickle.loads(pickle.dumps(LAST)) is LAST
