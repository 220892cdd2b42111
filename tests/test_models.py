"""The models: names and numbers of published implementations, gradients, weights.

The numbers in golden/models.json came from torchvision 0.28 and transformers 5, with weights by the
formula of ``filled``.
"""

import hashlib
import io
import json
from pathlib import Path

import numpy as np
import pytest

import framework as fw
from framework import models, nn
from framework.errors import CheckpointError, ShapeError

GOLDEN = Path(__file__).parent / "golden" / "models.json"


def filled(shapes):
    """Weights that depend on the names' order of length and the position only; sums of squares near 1."""
    found = {}
    for name, shape in shapes.items():
        count = int(np.prod(shape, dtype=int))
        wave = np.cos(np.arange(count) * 0.7 + len(name)).reshape(shape)
        if name.endswith("running_var") or len(shape) == 1 and name.endswith("weight"):
            found[name] = (1 + 0.1 * wave).astype(np.float32)
        elif name.endswith("num_batches_tracked"):
            found[name] = np.zeros(shape, np.int64)
        elif len(shape) < 2:
            found[name] = (0.1 * wave).astype(np.float32)
        else:
            found[name] = (wave * (2 / np.prod(shape[1:])) ** 0.5).astype(np.float32)
    return found


def names_of(shapes):
    """One short text for all names and shapes, in order."""
    text = "\n".join(f"{name} {list(shape)}" for name, shape in shapes.items())
    return f"{len(shapes)} {hashlib.sha256(text.encode()).hexdigest()[:16]}"


def shapes_of(model):
    return {name: tuple(x.shape) for name, x in model.state_dict().items()}


MAKERS = {
    "resnet18": lambda: models.resnet18(num_classes=7),
    "resnet34": lambda: models.resnet34(num_classes=7),
    "resnet50": lambda: models.resnet50(num_classes=7),
    "mobilenet_v2": lambda: models.mobilenet_v2(num_classes=7),
    "vit": lambda: models.VisionTransformer(64, 16, 2, 32, 4, 64, num_classes=7),
    "gpt2": lambda: models.GPT2(vocabulary=11, context=16, layers=2, width=16, heads=2),
}


@pytest.mark.parametrize("name", MAKERS)
def test_names_and_numbers_of_published_models(name):
    golden = json.loads(GOLDEN.read_text())[name]
    model = MAKERS[name]().eval()
    shapes = shapes_of(model)
    assert names_of(shapes) == golden["names"]
    models.load_weights(model, {k: fw.from_numpy(v) for k, v in filled(shapes).items()})
    with fw.no_grad():
        if name == "gpt2":
            y = model(fw.arange(12).reshape(2, 6) % 11)[:, -1]
        else:
            y = model(
                fw.from_numpy(np.sin(np.arange(2 * 3 * 64 * 64)).reshape(2, 3, 64, 64).astype(np.float32))
            )
    want = np.array(golden["logits"])
    np.testing.assert_allclose(y.numpy(), want, rtol=0, atol=2e-4 * np.abs(want).max())


@pytest.mark.parametrize(
    "name, make", [("vgg16", lambda: models.vgg16(batch_norm=True)), ("vit_b_16", models.vit_b_16)]
)
def test_names_of_large_models(name, make, monkeypatch):
    """Without filling hundreds of millions of weights by chance: only names and shapes are looked at."""
    for init in ("kaiming_normal_", "kaiming_uniform_", "xavier_uniform_", "uniform_", "normal_"):
        monkeypatch.setattr(nn.init, init, lambda x, *args, **settings: x)
    assert names_of(shapes_of(make())) == json.loads(GOLDEN.read_text())[name]["names"]


SMALL = {
    "MLP": (lambda: models.MLP(5, [6, 4], 3, norm=True, dropout=0.1), (4, 5)),
    "LeNet": (models.LeNet, (2, 1, 28, 28)),
    "VGG": (lambda: models.VGG(11, True, 4, head=16), (2, 3, 32, 32)),
    "ResNet": (lambda: models.resnet18(num_classes=4, small_images=True), (2, 3, 8, 8)),
    "MobileNetV2": (lambda: models.MobileNetV2(4, 0.25), (2, 3, 32, 32)),
    "VisionTransformer": (lambda: models.VisionTransformer(16, 8, 1, 8, 2, 16, 4), (2, 3, 16, 16)),
    "UNet": (lambda: models.UNet(3, 2, 4, 2), (2, 3, 13, 10)),
    "DCGANGenerator": (lambda: models.DCGANGenerator(8, 4, 3, 16), (2, 8)),
    "DCGANDiscriminator": (lambda: models.DCGANDiscriminator(4, 3, 16), (2, 3, 16, 16)),
}


@pytest.mark.parametrize("name", SMALL)
def test_every_parameter_gets_a_gradient_and_weights_come_back(name):
    make, shape = SMALL[name]
    fw.manual_seed(0)
    model = make()
    y = model(fw.randn(*shape))
    (y * fw.randn(y.shape)).sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
    file = io.BytesIO()
    fw.save({"epoch": 1, "model_state_dict": {f"module.{k}": v for k, v in model.state_dict().items()}}, file)
    file.seek(0)
    other = models.load_weights(make(), file).eval()
    x = fw.randn(*shape)
    np.testing.assert_array_equal(other(x).detach().numpy(), model.eval()(x).detach().numpy())


def test_every_model_is_tried():
    classes = {
        name
        for name in dir(models)
        if isinstance(getattr(models, name), type) and issubclass(getattr(models, name), nn.Module)
    }
    assert classes == {*SMALL, "GPT2", "CharRNN"}


def test_weights_that_do_not_fit_leave_the_model_as_it_was():
    model = models.MLP(3, [4], 2)
    before = {k: v.clone() for k, v in model.state_dict().items()}
    with pytest.raises((CheckpointError, RuntimeError), match=r"2\.weight"):
        models.load_weights(
            model, {"0.weight": fw.zeros(4, 3), "0.bias": fw.zeros(4), "2.weight": fw.zeros(9, 9)}
        )
    with pytest.raises(CheckpointError, match="no tensors by name"):
        models.load_weights(model, {"epoch": 3})
    assert all((before[k] == v).all() for k, v in model.state_dict().items())
    models.load_weights(model, {"0.bias": fw.ones(4)}, strict=False)
    assert model[0].bias.tolist() == [1, 1, 1, 1]


def test_gpt2_takes_files_without_prefix_and_with_masks():
    model, other = MAKERS["gpt2"](), MAKERS["gpt2"]()
    published = {k.removeprefix("transformer."): v for k, v in model.state_dict().items()}
    published["h.0.attn.bias"] = fw.ones(1, 1, 16, 16)
    published["lm_head.weight"] = published["wte.weight"]
    models.load_weights(other, published)
    x = fw.arange(6).reshape(1, 6)
    assert (model.eval()(x) == other.eval()(x)).all()


def test_gpt2_generates_what_it_would_without_its_cache():
    fw.manual_seed(0)
    model = models.load_weights(
        MAKERS["gpt2"](), {k: fw.from_numpy(v) for k, v in filled(shapes_of(MAKERS["gpt2"]())).items()}
    ).eval()
    start = fw.tensor([[1, 2, 3], [4, 5, 6]])
    found = model.generate(start, 8, temperature=0)
    want = start
    with fw.no_grad():
        for _ in range(8):
            want = fw.cat([want, model(want)[:, -1].argmax(1, keepdim=True)], 1)
    assert found.tolist() == want.tolist()
    draws = [
        model.generate(start, 5, top_k=3, generator=fw.Generator().manual_seed(1)).tolist() for _ in range(2)
    ]
    assert draws[0] == draws[1]
    with pytest.raises(ShapeError, match="context of 16"):
        model(fw.zeros(1, 17, dtype=fw.int64))


def test_char_rnn_goes_on_from_its_state():
    model = models.CharRNN(9, 8, 2, cell="gru")
    x = fw.tensor([[1, 2, 3, 4]])
    whole, _ = model(x)
    first, state = model(x[:, :2])
    second, _ = model(x[:, 2:], state)
    np.testing.assert_allclose(fw.cat([first, second], 1).detach().numpy(), whole.detach().numpy(), atol=1e-6)
    with pytest.raises(ValueError, match="cell must be one of"):
        models.CharRNN(9, cell="elman")


# -- summary ---------------------------------------------------------------------------------------


def test_summary_counts():
    shared = nn.Linear(4, 4)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, groups=1),
        nn.BatchNorm2d(8),
        nn.Flatten(),
        nn.Linear(32, 4),
        shared,
        nn.Dropout(0.5),
        shared,
    )
    model[0].weight.requires_grad_(False)
    model.train()
    found = nn.utils.summary(model, (2, 3, 2, 2))
    assert found.parameters == sum(p.numel() for p in model.parameters()) == 8 * 28 + 16 + 132 + 20
    assert found.trainable == found.parameters - 216
    assert [layer.kind for layer in found.layers] == [
        "Conv2d",
        "BatchNorm2d",
        "Flatten",
        "Linear",
        "Linear",
        "Dropout",
        "Linear",
    ]
    assert found.layers[0].flops == 2 * 8 * 4 * (2 * 27) and found.layers[3].flops == 2 * 4 * 64
    assert found.layers[0].output == (2, 8, 2, 2) and model.training and model[5].training
    assert model[1].running_mean.abs().sum().item() == 0  # nothing of the model moved
    transposed = nn.utils.summary(nn.ConvTranspose2d(2, 3, 2, 2, bias=False), (1, 2, 4, 4))
    assert transposed.flops == 2 * 2 * 16 * 3 * 4
    assert "84 parameters" in str(nn.utils.summary(nn.LSTMCell(2, 3), input_data=fw.ones(1, 2)))


def test_summary_restores_the_model_after_a_failure():
    model = nn.Sequential(nn.Linear(3, 2), nn.Dropout(0.5))
    with pytest.raises(Exception, match="Linear"):
        nn.utils.summary(model, (2, 4))
    assert model.training and not model[0]._forward_hooks
    with pytest.raises(TypeError, match="input_size"):
        nn.utils.summary(model)
