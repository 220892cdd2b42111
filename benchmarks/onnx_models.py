"""Models to export: those of the package, which ``benchmarks/ship.py`` times, and modules of the examples,
which ``python -m benchmarks.onnx_models`` exports.
"""

import importlib
import re
import sys
import types
from pathlib import Path

import numpy as np

import framework as fw
from framework import nn

BATCH, LENGTH, IMAGE = {0: "batch"}, {0: "batch", 1: "length"}, {0: "batch", 2: "h", 3: "w"}


def image(size, channels=3):
    return lambda n: np.random.default_rng(0).standard_normal((n, channels, size, size)).astype(np.float32)


def tokens(count, length):
    return lambda n: np.random.default_rng(0).integers(0, count, (n, length))


def rows(*shape):
    return lambda n: np.random.default_rng(0).standard_normal((n, *shape)).astype(np.float32)


# name: (what makes it of the module of models and of nn, what makes a batch, dynamic axes)
MODELS = {
    "MLP 784-256-128-10": (lambda M, nn: M.MLP(784, [256, 128], 10), rows(784), BATCH),
    "CNN of the digits, 28 x 28": (lambda M, nn: nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(1568, 10)), image(28, 1), BATCH),
    "LeNet, 28 x 28": (lambda M, nn: M.LeNet(), image(28, 1), BATCH),
    "VGG-11, 32 x 32": (lambda M, nn: M.VGG(11, num_classes=10, head=512), image(32), BATCH),
    "ResNet-18, 64 x 64": (lambda M, nn: M.resnet18(num_classes=10), image(64), IMAGE),
    "ResNet-50, 64 x 64": (lambda M, nn: M.resnet50(num_classes=10), image(64), BATCH),
    "MobileNetV2, 64 x 64": (lambda M, nn: M.MobileNetV2(10), image(64), IMAGE),
    "U-Net, width 16, 64 x 64": (lambda M, nn: M.UNet(3, 2, 16, 3), image(64), IMAGE),
    "DCGAN generator, width 32": (lambda M, nn: M.DCGANGenerator(100, 32), rows(100, 1, 1), BATCH),
    "DCGAN discriminator, width 32": (lambda M, nn: M.DCGANDiscriminator(32), image(64), BATCH),
    "CharRNN (LSTM 128), length 64": (lambda M, nn: M.CharRNN(64, 128), tokens(64, 64), LENGTH),
    "GPT-2, 4 x 256, length 64": (lambda M, nn: M.GPT2(
        vocabulary=512, context=128, width=256, layers=4, heads=4), tokens(512, 64), LENGTH),
    "ViT, 4 x 192, 64 x 64": (lambda M, nn: M.VisionTransformer(
        image_size=64, patch_size=8, layers=4, heads=3, width=192, hidden=768, num_classes=10),
        image(64), BATCH),
    "TransformerEncoder, 2 x 128": (lambda M, nn: nn.TransformerEncoder(
        nn.TransformerEncoderLayer(128, 4, 256, batch_first=True), 2, enable_nested_tensor=False),
        rows(32, 128), LENGTH),
}


def in_torch():
    """The modules of framework/models with PyTorch's names in their imports, or None without PyTorch."""
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(1)
    found = types.SimpleNamespace()
    names = {"from .. import nn": "from torch import nn", "..tensor import": "torch import",
             "..autograd.mode import": "torch import", "..creation import": "torch import",
             "..ops.shape.join import": "torch import", "..errors import": "framework.errors import",
             "from .weights import load_weights": "load_weights = None"}
    for path in sorted((Path(fw.__file__).parent / "models").glob("*.py")):
        if path.stem in ("__init__", "weights"):
            continue
        text = path.read_text()
        for ours, theirs in names.items():
            text = text.replace(ours, theirs)
        module = types.ModuleType(f"in_torch_{path.stem}")
        sys.modules[module.__name__] = module
        exec(compile(text, str(path), "exec"), vars(module))
        vars(found).update({k: v for k, v in vars(module).items() if not k.startswith("_")})
    return found


def session(data):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def example_modules():
    """(name, module, arguments, dynamic axes) of what the examples define."""
    folder = Path(__file__).resolve().parent.parent / "examples"
    sys.path.insert(0, str(folder))
    used = ("digits custom_dataset custom_op flow language_model translation vae sine_lbfgs cifar_resnet "
            "super_resolution vit hypernetwork dcgan gcn names tree_lstm")
    E = {n: importlib.import_module(n) for n in used.split()}
    yield "digits.Net", E["digits"].Net(8), (fw.randn(2, 1, 8, 8),), {"x": BATCH}
    yield "custom_dataset.Net", E["custom_dataset"].Net(), (fw.randn(2, 1, 12, 12),), {"x": IMAGE}
    yield "custom_op.BendLayer", E["custom_op"].BendLayer(), (fw.randn(2, 3),), {"x": BATCH}
    flow = E["flow"].Flow(4)
    yield "flow.Flow.log_prob", flow.log_prob, (fw.randn(5, 2),), {"x": BATCH}
    yield "language_model.Writer", E["language_model"].Writer(30, 16), (fw.randint(0, 30, (7, 2)),), \
        {"x": {0: "length", 1: "batch"}}
    translator = E["translation"].Translator(20, 20, 16)
    yield "translation.Translator.encode", translator.encode, (fw.randint(0, 20, (2, 7)),), {"x": LENGTH}
    state, memory, mask = fw.randn(1, 2, 16), fw.randn(2, 7, 16), fw.ones(2, 7) > 0
    yield "translation.Translator.decode", translator.decode, (fw.randint(0, 20, (2, 5)), state, memory,
                                                               mask), None
    vae = E["vae"].VAE(4)
    yield "vae.VAE.encoder", vae.encoder, (fw.randn(2, 64),), {"input": BATCH}
    yield "vae.VAE.decoder", vae.decoder, (fw.randn(2, 4),), {"input": BATCH}
    yield "sine_lbfgs.Waves", E["sine_lbfgs"].Waves(8), (fw.randn(2, 6),), {"waves": BATCH}
    yield "cifar_resnet.SmallResNet", E["cifar_resnet"].SmallResNet(), (fw.randn(2, 3, 32, 32),), {"x": BATCH}
    yield "super_resolution.SubPixel", E["super_resolution"].SubPixel(8), (fw.randn(1, 3, 9, 8),), \
        {"x": IMAGE}
    yield "vit.SmallViT", E["vit"].SmallViT(16, 2), (fw.randn(2, 1, 8, 8),), {"x": BATCH}
    yield "hypernetwork.Hypernetwork", E["hypernetwork"].Hypernetwork(16), (fw.randn(2, 10, 2),), \
        {"points": LENGTH}
    yield "dcgan.generator", E["dcgan"].generator(6, 4), (fw.randn(2, 6, 1, 1),), {"input": BATCH}
    yield "dcgan.judge", E["dcgan"].judge(4), (fw.randn(2, 1, 8, 8),), {"input": BATCH}
    yield "tree_lstm.TreeLSTM", E["tree_lstm"].TreeLSTM(["a", "b"], 4), (("a", "b"),), None
    graph = fw.eye(4).to_sparse_csr()
    yield "gcn.GCN", E["gcn"].GCN(5, 8, 3), (graph, fw.randn(4, 5)), None
    classifier = E["names"].Classifier(4)
    packed = nn.utils.rnn.pack_sequence([fw.tensor([1, 2, 3]), fw.tensor([4])])
    yield "names.Classifier", classifier, (packed,), None


def main():
    for name, module, args, axes in example_modules():
        try:
            program = fw.onnx.export(module, args, dynamic_axes=axes)
            print(f"{name}: {len(program.model_proto.graph.node)} nodes, equal at {len(program.checked)} "
                  f"sizes")
        except (fw.onnx.OnnxError, ValueError) as error:
            print(f"{name}: {type(error).__name__}: {re.sub(chr(10), ' ', str(error))[:300]}")


if __name__ == "__main__":
    main()
