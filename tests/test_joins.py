"""Sequential runs a layer with the norm and relu behind it in one call: numbers, graph, what stays apart."""

import copy

import numpy as np
import pytest

import framework as fw
from framework.nn import joins
from framework.ops.image import joined

nn = fw.nn
LAYERS = {
    "linear": (lambda **k: nn.Linear(24, 40, **k), (7, 24)),
    "linear, one row": (lambda **k: nn.Linear(24, 40, **k), (1, 24)),
    "linear, vector": (lambda **k: nn.Linear(24, 40, **k), (24,)),
    "linear, three dimensions": (lambda **k: nn.Linear(24, 40, **k), (2, 3, 24)),
    "linear, large": (lambda **k: nn.Linear(200, 130, **k), (150, 200)),
    "conv1d": (lambda **k: nn.Conv1d(5, 9, 3, stride=2, padding=1, **k), (2, 5, 37)),
    "conv2d": (lambda **k: nn.Conv2d(3, 17, 3, stride=2, padding=1, dilation=2, **k), (2, 3, 19, 23)),
    "conv2d, wide": (lambda **k: nn.Conv2d(32, 33, 3, padding=1, **k), (2, 32, 13, 18)),
    "conv2d, depthwise": (lambda **k: nn.Conv2d(16, 16, 3, padding=1, groups=16, **k), (2, 16, 11, 18)),
    "conv2d, two rows a group": (lambda **k: nn.Conv2d(6, 12, 3, groups=6, stride=1, **k), (2, 6, 20, 21)),
    "conv2d, groups": (lambda **k: nn.Conv2d(8, 12, 3, groups=2, **k), (1, 8, 9, 9)),
    "conv2d, 1x1": (lambda **k: nn.Conv2d(24, 20, 1, **k), (2, 24, 8, 9)),
    "conv2d, many channels": (lambda **k: nn.Conv2d(700, 5, 2, **k), (1, 700, 5, 6)),
    "conv2d, no batch": (lambda **k: nn.Conv2d(3, 4, 3, **k), (3, 8, 8)),
    "conv2d, mirrored": (lambda **k: nn.Conv2d(3, 4, 3, padding=1, padding_mode="reflect", **k),
                         (1, 3, 8, 8)),
    "conv3d": (lambda **k: nn.Conv3d(2, 7, (2, 3, 3), padding=1, **k), (1, 2, 5, 9, 8)),
}


def both(layer, x, *others):
    """(the Sequential's result, that of its modules one by one)"""
    model = nn.Sequential(layer, *(others or (nn.ReLU(),)))
    joined, plain = model(x), x
    for module in model:
        plain = module(plain)
    return joined, plain


@pytest.fixture
def joined_calls(monkeypatch):
    """The names of the joined records whose kernel was called."""
    names = []

    def watched(op):
        function = op.cpu

        def call(*args, **settings):
            names.append(op.name)
            return function(*args, **settings)
        return call
    for op in (joined._linear_relu_op, joined._conv_relu_op, joined._conv_norm_op):
        monkeypatch.setattr(op, "cpu", watched(op))
    return names


@pytest.mark.parametrize("dtype", [fw.float32, fw.float64])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("name", LAYERS)
def test_the_same_bits_and_gradients(name, bias, dtype):
    fw.manual_seed(0)
    make, shape = LAYERS[name]
    layer = make(bias=bias, dtype=dtype)
    found = []
    for which in (0, 1):
        x = fw.arange(np.prod(shape), dtype=dtype).cos().reshape(shape).requires_grad_()
        y = both(layer, x)[which]
        grads = fw.autograd.grad((y * y * y).sum(), [x, *layer.parameters()], create_graph=True)
        second = fw.autograd.grad(sum((g * g).sum() for g in grads), [x, *layer.parameters()])
        found.append([y, *grads, *second])
    assert found[0][0].grad_fn.name() == found[1][0].grad_fn.name() or "no batch" in name
    for got, wanted in zip(*found):
        assert got.dtype == wanted.dtype
        assert got.detach().numpy().tobytes() == wanted.detach().numpy().tobytes()


@pytest.mark.skipif(not joined._conv_then, reason="no extension")
def test_layers_are_joined(joined_calls):
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 5),
                          nn.ReLU(inplace=True), nn.Linear(5, 2))
    model(fw.ones(2, 3, 8, 8)).sum().backward()
    assert joined_calls == ["conv_relu", "linear_relu"]
    assert all(p.grad is not None for p in model.parameters())


@pytest.mark.parametrize("dtype", [fw.float32, fw.float64])
def test_special_numbers(dtype):
    layer = nn.Linear(1, 6, dtype=dtype)
    conv = nn.Conv2d(1, 6, 1, dtype=dtype)
    values = fw.tensor([float("nan"), float("inf"), -float("inf"), -0.0, 0.0, -1e-42], dtype=dtype)
    with fw.no_grad():
        for module in (layer, conv):
            module.bias.copy_(values)
            module.weight.fill_(0)
    for module, x in ((layer, fw.ones(3, 1, dtype=dtype)), (conv, fw.ones(2, 1, 3, 5, dtype=dtype))):
        got, wanted = (y.detach().numpy() for y in both(module, x))
        assert got.tobytes() == wanted.tobytes()


def normed(n, channels, **settings):
    norm = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)[n - 1](channels, **settings)
    with fw.no_grad():
        norm.running_mean.normal_()
        norm.running_var.uniform_(0.2, 3.0)
        for p in norm.parameters():
            p.normal_()
    return norm


@pytest.mark.parametrize("active", [True, False])
@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("name", [n for n in LAYERS if n.startswith("conv") and "no batch" not in n])
def test_a_norm_in_evaluation(name, affine, active, joined_calls):
    fw.manual_seed(1)
    make, shape = LAYERS[name]
    for dtype, places in ((fw.float32, 2e-5), (fw.float64, 1e-13)):
        layer = make(dtype=dtype)
        norm = normed(layer.n, layer.out_channels, affine=affine, dtype=dtype)
        others = (norm.eval(), nn.ReLU()) if active else (norm.eval(),)
        with fw.no_grad():
            got, wanted = both(layer, fw.randn(*shape, dtype=dtype), *others)
        np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=places, atol=places * 10)
    if joined._conv_then and "mirrored" not in name:
        assert joined_calls == ["conv_norm"] * 2


def test_a_norm_far_from_zero():
    conv, norm = nn.Conv2d(8, 4, 3), normed(2, 4).eval()
    with fw.no_grad():
        conv.bias.fill_(1e4)
        norm.running_mean.fill_(1e4)
        x = fw.randn(2, 8, 9, 9)
        got, wanted = both(conv, x, norm, nn.ReLU())
        scale = (norm.weight / (norm.running_var + norm.eps).sqrt()).abs().max().item()
    step = float(np.spacing(np.float32(1e4))) * scale  # what the last bit of the bias is worth in the result
    np.testing.assert_allclose(got.numpy(), wanted.numpy(), atol=16 * step)  # of 72 roundings, 36 at worst


def test_a_norm_stays_apart_where_it_is_recorded_or_counts(joined_calls):
    x = fw.randn(4, 3, 8, 8)
    for norm in (normed(2, 5), normed(2, 5, track_running_stats=True).eval(),
                 nn.BatchNorm2d(5, track_running_stats=False).eval()):
        conv = nn.Conv2d(3, 5, 3).requires_grad_(False)
        before = norm.running_mean if norm.running_mean is None else norm.running_mean.clone()
        got = nn.Sequential(conv, norm, nn.ReLU())(x)
        got.sum().backward()
        assert norm.weight.grad is not None
        assert norm.running_mean is None or norm.training != fw.equal(norm.running_mean, before)
    assert not joined_calls


def test_the_statistics_may_change_at_any_time():
    conv, norm = nn.Conv2d(3, 5, 3), normed(2, 5).eval()
    model, x = nn.Sequential(conv, norm), fw.randn(2, 3, 8, 8)
    with fw.no_grad():
        first = model(x)
        norm.running_mean.numpy()[...] += 1
        shift = (norm.weight / (norm.running_var + norm.eps).sqrt()).reshape(5, 1, 1)
        np.testing.assert_allclose(model(x).numpy(), (first - shift).numpy(), atol=1e-4)


class Twice(nn.Linear):
    def forward(self, input):
        return 2 * super().forward(input)


def test_what_is_watched_or_changed_stays_apart(joined_calls):
    x = fw.randn(3, 4)
    seen = []
    hooked, relu = nn.Linear(4, 5), nn.ReLU()
    handle = hooked.register_forward_hook(lambda module, args, out: seen.append(out))
    got, wanted = both(hooked, x, relu)
    assert len(seen) == 2 and (seen[0] < 0).any() and fw.equal(got, wanted)
    handle.remove()
    relu.register_full_backward_hook(lambda module, before, after: seen.append(after))
    both(hooked, x, relu)[0].sum().backward()
    assert len(seen) == 3
    replaced = nn.Linear(4, 5)
    replaced.forward = lambda input: input - 100
    assert (nn.Sequential(replaced, nn.ReLU())(x) == 0).all()
    twice = Twice(4, 5)
    assert fw.equal(*both(twice, x))
    with fw.autograd.set_detect_anomaly(True):
        both(nn.Linear(4, 5), x)
    assert not joined_calls


def test_under_autocast(joined_calls):
    pytest.importorskip("ml_dtypes")
    model = nn.Sequential(nn.Linear(4, 5), nn.ReLU())
    with fw.autocast("cpu", dtype=fw.bfloat16):
        assert model(fw.ones(2, 4)).dtype is fw.bfloat16
    assert not joined_calls
    model.bfloat16()
    assert model(fw.ones(2, 4, dtype=fw.bfloat16)).dtype is fw.bfloat16


def test_forward_mode():
    layer = nn.Linear(4, 5)
    x, t = fw.randn(3, 4), fw.randn(3, 4)
    forward_ad = fw.autograd.forward_ad
    with forward_ad.dual_level():
        got, wanted = (forward_ad.unpack_dual(y) for y in both(layer, forward_ad.make_dual(x, t)))
    assert fw.equal(got.primal, wanted.primal) and fw.equal(got.tangent, wanted.tangent)


@pytest.mark.parametrize("layer,x", [
    (nn.Linear(4, 5), fw.ones(2, 3)), (nn.Linear(4, 5), fw.ones(2, 4, dtype=fw.float64)),
    (nn.Linear(4, 5), 3.0), (nn.Conv2d(3, 4, 3), fw.ones(2, 2, 5, 5)),
    (nn.Conv2d(3, 4, 3), fw.ones(2, 3, 2, 2)),
    (nn.Conv2d(3, 4, 3), "text")])
def test_errors_are_those_of_the_layer(layer, x):
    with pytest.raises(Exception) as wanted:
        layer(x)
    with pytest.raises(type(wanted.value)) as found:
        nn.Sequential(layer, nn.ReLU())(x)
    assert str(found.value) == str(wanted.value)


def test_changes_in_place_are_noticed():
    model, x = nn.Sequential(nn.Linear(4, 5), nn.ReLU()), fw.randn(3, 4, requires_grad=True)
    y = model(x)
    y.mul_(2)
    with pytest.raises(fw.errors.AutogradError, match="relu"):
        y.sum().backward()
    y = model(fw.randn(3, 4))
    with fw.no_grad():
        model[0].weight.mul_(2)
    y.sum().backward()  # nothing that was kept has changed
    y = model(x)
    with fw.no_grad():
        model[0].weight.mul_(2)
    with pytest.raises(fw.errors.AutogradError, match="linear"):
        y.sum().backward()


def test_empty_batches_and_channels_last():
    for layer, shape in ((nn.Linear(4, 5), (0, 4)), (nn.Conv2d(3, 4, 3), (0, 3, 8, 8))):
        got, wanted = both(layer, fw.ones(*shape))
        assert got.shape == wanted.shape
    x = fw.randn(2, 3, 8, 9).contiguous(memory_format=fw.channels_last)
    got, wanted = both(nn.Conv2d(3, 4, 3), x)
    assert fw.equal(got, wanted) and got.stride() == wanted.stride()


def test_models_are_copied_and_changed():
    model = nn.Sequential(nn.Linear(4, 5), nn.ReLU())
    x = fw.randn(2, 4)
    assert fw.equal(copy.deepcopy(model)(x), model(x))
    model[1] = nn.Identity()
    assert fw.equal(model(x), model[0](x))
    assert set(joins.JOINS) == {nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d}


def test_modules_whose_hooks_were_removed_are_joined_again(joined_calls):
    model = nn.Sequential(nn.Linear(3, 2), nn.ReLU())
    x = fw.randn(2, 3)
    model(x)
    fresh = list(joined_calls)  # nothing is joined without the native kernels
    joined_calls.clear()
    handle = model[0].register_forward_hook(lambda *_: None)
    model(x)
    assert not joined_calls
    handle.remove()
    nn.utils.summary(model, (2, 3))
    joined_calls.clear()
    model(x)
    assert joined_calls == fresh
