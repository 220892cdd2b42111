"""Models of 8-bit numbers: next to those of floats, the same bits with every kernel."""

import io
import pickle

import numpy as np
import pytest

import framework as fw
from framework import _native, nn
from framework.ao import quantization
from framework.ao.nn import quantized
from framework.ao.nn.quantized import dynamic
from framework.ops.image.int8 import int8_conv
from framework.ops.linalg.int8 import int8_linear

native = _native.module
has_kernels = pytest.mark.skipif(
    not hasattr(native, "int8_linear"), reason=f"no native kernels: {_native.isa}"
)


@pytest.fixture(params=["plain", "words", "bytes", "tiles"])
def way(request):
    before = native.int8_way()
    assert native.use_int8_way(request.param)
    yield request.param
    native.use_int8_way(before)


def same_bits(op, *arrays, **settings):
    got = getattr(native, op.native)(*arrays, **settings)
    assert got is not NotImplemented
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(got, op.plain(*arrays, **settings), strict=True)


def numbers(rng, shape):
    return (rng.standard_normal(shape) * rng.choice([1e-3, 1, 100]) + rng.choice([0, 3, -5])).astype(
        np.float32
    )


def ranges(rng):
    if rng.random() < 0.6:
        return {"input_scale": None, "input_zero": 0}
    return {
        "input_scale": float(np.float32(rng.random() * 0.1 + 1e-3)),
        "input_zero": int(rng.integers(0, 256)),
    }


@has_kernels
def test_linear_kernels_give_the_bits_of_numpy(way):
    rng = np.random.default_rng(1)
    for case in range(60):
        m, n, k = (
            (1 if case % 3 == 0 else int(rng.integers(0, 80))),
            *(int(i) for i in rng.integers(1, 140, 2)),
        )
        w, scale = rng.integers(-128, 128, (n, k)).astype(np.int8), rng.random(n).astype(np.float32)
        b = None if case % 2 else numbers(rng, n)
        same_bits(int8_linear, numbers(rng, (m, k)), w, scale, b, **ranges(rng))
    large, scales = rng.integers(-128, 128, (71, 130)).astype(np.int8), rng.random(71).astype(np.float32)
    same_bits(int8_linear, numbers(rng, (531, 130)), large, scales, None, **ranges(rng))
    x = numbers(rng, (7, 5, 33)).transpose(1, 0, 2)
    same_bits(int8_linear, x, w[:, :1].repeat(33, 1), scale, None, **ranges(rng))
    # the largest sums that are let in
    x, w = np.ones((2, 65536), np.float32), np.full((3, 65536), -128, np.int8)
    same_bits(int8_linear, x, w, scale[:1].repeat(3), None, input_scale=1 / 255, input_zero=0)
    wide = np.ones((1, 65537), np.float32)
    assert (
        native.int8_linear(wide, wide.astype(np.int8), scale[:1], None, input_scale=None, input_zero=0)
        is NotImplemented
    )


@has_kernels
def test_convolution_kernels_give_the_bits_of_numpy(way):
    rng = np.random.default_rng(2)
    for case in range(60):
        d, groups = (1 if case % 4 == 0 else 2), int(rng.choice([1, 1, 2, 3]))
        c, o = groups * int(rng.integers(1, 20)), groups * int(rng.integers(1, 20))
        kernel = tuple(int(i) for i in rng.integers(1, 4, d))
        if case % 5 == 0:  # read where it lies
            groups, c, kernel = 1, 16 * int(rng.integers(1, 5)), (1,) * d
        stride, dilation = (tuple(int(i) for i in rng.integers(1, 3, d)) for _ in range(2))
        x = numbers(rng, (int(rng.integers(0, 4)), c, *(int(i) for i in rng.integers(5, 12, d))))
        w = rng.integers(-128, 128, (o, c // groups, *kernel)).astype(np.int8)
        if case % 2 and d == 2:
            w = np.ascontiguousarray(w.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
        same_bits(
            int8_conv,
            x,
            w,
            rng.random(o).astype(np.float32),
            None if case % 2 else numbers(rng, o),
            stride=stride,
            padding=tuple(int(i) for i in rng.integers(0, 3, d)),
            dilation=dilation,
            groups=groups,
            **ranges(rng),
        )


@has_kernels
def test_numbers_that_are_none(way):
    w, one = np.array([[3, -4, 5]], np.int8), np.ones(1, np.float32)
    for bad in (np.nan, np.inf, -np.inf, 3e38):
        x = np.array([[1, bad, -bad]], np.float32)
        same_bits(int8_linear, x, w, one, None, input_scale=None, input_zero=0)  # nan, all of it
        same_bits(
            int8_linear, x, w, one, None, input_scale=0.5, input_zero=7
        )  # nan counts as 0, others stop at the end
    assert np.isnan(native.int8_linear(x, w, one, None, input_scale=None, input_zero=0)).all()
    same_bits(int8_linear, np.zeros((2, 3), np.float32), w, one, None, input_scale=None, input_zero=0)


@has_kernels
def test_operands_that_do_not_fit_are_left_to_the_formula():
    x, w, s = np.ones((2, 3), np.float32), np.ones((4, 3), np.int8), np.ones(4, np.float32)
    call = {"input_scale": None, "input_zero": 0}
    for args in (
        (x[:, :2], w, s, None),
        (x, w.astype(np.int32), s, None),
        (x, w, s[:3], None),
        (x, w, s, s[:1]),
        (x.astype(np.float64), w, s, None),
        (x, w, s.astype(np.float64), None),
        (x[0, 0], w, s, None),
    ):
        assert native.int8_linear(*args, **call) is NotImplemented
    assert native.int8_linear(x, w, s, None, input_scale=1.0, input_zero=256) is NotImplemented
    image, kernel = np.ones((1, 3, 4, 4), np.float32), np.ones((4, 3, 2, 2), np.int8)
    good = {"stride": (1, 1), "padding": (0, 0), "dilation": (1, 1), "groups": 1, **call}
    for change in (
        {"stride": (0, 1)},
        {"padding": (-1, 0)},
        {"padding": (2**61, 0)},
        {"dilation": (4, 1)},
        {"groups": 2},
        {"stride": (1,)},
        {"dilation": (2**62, 2**62)},
        {"groups": 0},
    ):
        assert native.int8_conv(image, kernel, s, None, **{**good, **change}) is NotImplemented
    assert native.int8_conv(image, kernel, s, None, **good).shape == (1, 4, 3, 3)


def errors(got, want):
    return ((got - want).abs().max() / want.abs().max()).item()


def test_layers_are_next_to_those_of_floats():
    fw.manual_seed(0)
    layers = [
        (nn.Linear(40, 30), (9, 40)),
        (nn.Linear(7, 3, bias=False), (2, 5, 7)),
        (nn.Conv1d(6, 8, 3, 2, 1), (2, 6, 20)),
        (nn.Conv2d(8, 12, 3, padding=1, groups=2), (2, 8, 9, 9)),
        (nn.Conv2d(3, 5, 2, dilation=2), (3, 9, 9)),
    ]
    for layer, shape in layers:
        x = fw.randn(*shape)
        with fw.no_grad():
            want = layer(x)
        small = quantization.quantize_dynamic(layer, {type(layer)})
        assert type(small).__module__.endswith("dynamic.linear") and not small.training
        assert errors(small(x), want) < 0.03
        layer.qconfig = quantization.get_default_qconfig()
        fixed = quantization.quantize(layer, lambda m, x: m(x), [x])
        assert errors(fixed(x), want) < 0.03
        assert fw.equal(fixed(x), small(x))  # the same range, once found on the fly and once beforehand
        assert small(x.double()).dtype == fw.float64
        assert fw.equal(small(x.double()).float(), small(x))


def test_attention_of_8_bit_projections():
    fw.manual_seed(0)
    for settings in (
        {},
        {"batch_first": True},
        {"kdim": 6, "vdim": 10, "add_bias_kv": True, "add_zero_attn": True},
        {"bias": False},
    ):
        layer = nn.MultiheadAttention(8, 2, **settings).eval()
        small = quantization.quantize_dynamic(nn.Sequential(layer))[0]
        assert type(small) is dynamic.MultiheadAttention
        q, k, v = (
            fw.randn(5, 5, 8),
            fw.randn(5, 5, settings.get("kdim", 8)),
            fw.randn(5, 5, settings.get("vdim", 8)),
        )
        layer.qconfig = quantization.get_default_qconfig()
        ready = quantization.prepare(layer)
        with fw.no_grad():
            assert fw.allclose(ready(q, k, v)[0], layer(q, k, v)[0], atol=1e-6)
        calibrated = quantization.convert(ready)
        assert all("input_scale=0" in repr(part) for part in calibrated.children())
        with fw.no_grad():
            assert errors(calibrated(q, k, v)[0], layer(q, k, v)[0]) < 0.05
            assert calibrated(q[0], k[0], v[0])[0].shape == (5, 8)
        assert type(layer) is nn.MultiheadAttention
        mask = nn.Transformer.generate_square_subsequent_mask(5)
        padding = fw.tensor([[False] * 4 + [True]] * 5)
        for how in (
            {},
            {"attn_mask": mask},
            {"attn_mask": mask, "need_weights": False, "is_causal": True},
            {"key_padding_mask": padding},
        ):
            with fw.no_grad():
                (want, weights), (got, found) = layer(q, k, v, **how), small(q, k, v, **how)
            assert errors(got, want) < 0.05 and (found is None) == (weights is None)
        assert small(q[0], k[0], v[0])[0].shape == (5, 8)
    with pytest.raises(ValueError, match="is_causal"):
        small(q, k, v, is_causal=True)
    with pytest.raises(fw.errors.ShapeError, match="batch or none"):
        small(q[0], k, v)


def test_an_encoder_with_calibrated_attention():
    fw.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    model.qconfig = quantization.QConfig(quantization.MinMaxObserver, quantization.MinMaxObserver)
    with pytest.raises(ValueError, match="a scale for each output"):
        quantization.prepare(model, inplace=True)
    assert type(model.layers[0].self_attn) is nn.MultiheadAttention  # as it was
    model.qconfig = quantization.get_default_qconfig()
    x = fw.randn(6, 9, 16)
    small = quantization.quantize(model, lambda m: m(x), ())
    assert len([m for m in small.modules() if isinstance(m, quantized.Linear)]) == 2 * (4 + 2)
    with fw.no_grad():
        assert errors(small(x), model(x)) < 0.05


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.body = nn.Sequential(nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 16))
        self.again = self.body[2]
        self.head = nn.Linear(16, 4)

    def forward(self, x):
        x = nn.functional.relu(self.norm(self.conv(x))).mean((2, 3)).repeat(1, 4)
        return self.head(self.again(self.body(x)))


def test_models():
    fw.manual_seed(0)
    model, x = Net(), fw.randn(6, 3, 8, 8)
    model(x)
    model.eval()
    with fw.no_grad():
        want = model(x)
    text = repr(model)
    small = quantization.quantize_dynamic(model, {nn.Linear, nn.Conv2d})
    assert repr(model) == text and fw.equal(model(x), want)  # as it was
    assert type(small.conv) is dynamic.Conv2d and type(small.norm) is nn.BatchNorm2d
    assert small.again is small.body[2] and type(small.again) is dynamic.Linear
    assert errors(small(x), want) < 0.05 and not list(small.head.parameters())
    assert "DynamicQuantizedLinear(in_features=16, out_features=4, bias=True, dtype=qint8" in repr(small)
    named = quantization.quantize_dynamic(model, {"head"})
    assert type(named.head) is dynamic.Linear and type(named.again) is nn.Linear
    left = quantization.quantize_dynamic(model, {nn.Linear: "any", "head": None})
    assert type(left.head) is nn.Linear and type(left.again) is dynamic.Linear
    assert quantization.quantize_dynamic(model, {nn.Linear}, fw.int8, inplace=True) is model


def test_ranges_found_on_data():
    fw.manual_seed(0)
    model, x = Net(), fw.randn(6, 3, 8, 8)
    model(x)
    model.eval()
    folded = quantization.fuse_modules(model, [["conv", "norm"]])
    with fw.no_grad():
        want = model(x)
        fw.testing.assert_close(folded(x), want, rtol=1e-4, atol=1e-5)
    assert type(folded.norm) is nn.Identity and type(model.norm) is nn.BatchNorm2d
    folded.qconfig, folded.head.qconfig = quantization.get_default_qconfig(), None
    ready = quantization.prepare(folded)
    with pytest.raises(RuntimeError, match=r"convert: module conv \(Conv2d\).*has seen no numbers"):
        quantization.convert(ready)
    for part in x.split(2):
        assert fw.equal(ready(part), folded(part))
    small = quantization.convert(ready)
    assert type(small.head) is nn.Linear and type(small.conv) is fw.ao.nn.quantized.Conv2d
    assert errors(small(x), want) < 0.05
    low, high = min(x.min().item(), 0), max(x.max().item(), 0)
    assert abs(small.conv.input_scale.item() - (high - low) / 255) < 1e-6
    # a batch's results do not depend on what else is in it
    assert fw.equal(small(x)[:2], small(x[:2]))
    state = {name: value.clone() for name, value in small.state_dict().items()}
    assert state["conv.weight"].dtype is fw.int8 and state["conv.input_zero_point"].dtype is fw.uint8
    other = quantization.quantize(folded, lambda m, x: m(x), [x * 3])
    assert not fw.equal(other(x), small(x))
    other.load_state_dict(state)
    assert fw.equal(other(x), small(x))
    file = io.BytesIO()
    fw.save(small.state_dict(), file)
    file.seek(0)
    other.load_state_dict(fw.load(file))
    assert fw.equal(pickle.loads(pickle.dumps(small))(x), other(x))
    with pytest.raises(ValueError, match="inf or nan"):
        ready(x * float("nan"))


def test_what_cannot_be_done_is_said():
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    for wrong, match in (
        ((fw.nn.LSTM,), "LSTM has no form"),
        (("2",), "no modules of the names"),
        ((nn.Conv2d,), "no module of the classes"),
        (("1",), r"module 1 \(ReLU\)"),
    ):
        with pytest.raises(ValueError, match=match):
            quantization.quantize_dynamic(model, set(wrong))
    with pytest.raises(ValueError, match="dtype must be framework.qint8"):
        quantization.quantize_dynamic(model, dtype=fw.float16)
    with fw.no_grad():
        model[0].weight[0, 0] = float("inf")
    with pytest.raises(ValueError, match=r"module 0 \(Linear\): the weight has numbers that are inf or nan"):
        quantization.quantize_dynamic(model)
    with pytest.raises(ValueError, match="padding='same'"):
        quantization.quantize_dynamic(nn.Conv2d(1, 1, 3, padding="same"), {nn.Conv2d})
    for call, match in ((quantization.prepare, "has a qconfig"), (quantization.convert, "no observers")):
        with pytest.raises(ValueError, match=match):
            call(model)
    with pytest.raises(ValueError, match="backend"):
        quantization.get_default_qconfig("abacus")
    with pytest.raises(ValueError, match="wanted a Linear"):
        quantization.fuse_modules(model, ["0", "1", "0"])
    with pytest.raises(ValueError, match="PerChannelMinMaxObserver"):
        model.qconfig = quantization.QConfig(quantization.MinMaxObserver, quantization.MinMaxObserver)
        quantization.prepare(model)


def test_training_is_refused():
    layer, x = quantization.quantize_dynamic(nn.Linear(3, 2)), fw.randn(4, 3, requires_grad=True)
    y = layer(x)
    with pytest.raises(fw.errors.AutogradError, match="int8_linear has no derivative"):
        y.sum().backward()
    with pytest.raises(ValueError, match="empty"):
        fw.optim.SGD(layer.parameters(), lr=0.1)
    with pytest.raises(fw.errors.ShapeError, match="equal 'in'"):
        layer(fw.ones(2, 4))
    with pytest.raises(fw.errors.DTypeError, match="floating"):
        layer(fw.ones(2, 3, dtype=fw.int64))
    assert layer(fw.ones(0, 3)).shape == (0, 2)
    conv = dynamic.Conv2d(2, 3, 2)
    with pytest.raises(fw.errors.ShapeError, match="channels"):
        conv(fw.ones(1, 3, 4, 4))


def test_observers():
    seen, mean = quantization.MinMaxObserver(), quantization.MovingAverageMinMaxObserver(0.5)
    for x in (fw.tensor([0.0, 4.0]), fw.tensor([-1.0, 2.0]), fw.zeros(0)):
        assert seen(x) is x and mean(x) is x
    assert (seen.min_val.item(), seen.max_val.item()) == (-1, 4) and (
        mean.min_val.item(),
        mean.max_val.item(),
    ) == (-0.5, 3)
    scale, zero = seen.calculate_qparams()
    assert abs(scale.item() - 5 / 255) < 1e-7 and zero.item() == 51
    weights = quantization.PerChannelMinMaxObserver()
    weights(fw.tensor([[1.27, -0.5], [0.0, 0.0]]))
    fw.testing.assert_close(weights.calculate_qparams()[0], fw.tensor([0.01, 1.0]))


def test_as_close_as_pytorch():
    torch = pytest.importorskip("torch")
    fw.manual_seed(0)
    layer, x = nn.Linear(64, 48), fw.randn(50, 64)
    theirs = torch.nn.Sequential(torch.nn.Linear(64, 48))
    with torch.no_grad(), fw.no_grad():
        theirs[0].weight.copy_(torch.from_numpy(layer.weight.detach().numpy()))
        theirs[0].bias.copy_(torch.from_numpy(layer.bias.detach().numpy()))
        want = layer(x).numpy()
        ours = np.abs(quantization.quantize_dynamic(layer)(x).numpy() - want).max()
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            small = torch.ao.quantization.quantize_dynamic(theirs, {torch.nn.Linear}, dtype=torch.qint8)
        other = np.abs(small(torch.from_numpy(x.numpy())).numpy() - want).max()
    assert ours <= other
