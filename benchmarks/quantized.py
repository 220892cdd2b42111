"""Models of the examples with 8-bit numbers: accuracy, size and time beside floats.

    python -m benchmarks.quantized --data ../shared/data       # trains three small models first: some minutes
    python -m benchmarks.quantized --data ../shared/data --onnx    # and each of them in ONNX Runtime

Times are medians of alternating calls, each of one thread unless told otherwise: of the processor's time
then, else of the clock.
"""

import argparse
import io
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import framework as fw
from benchmarks.onnx_models import session
from framework import nn
from framework.ao import quantization
from framework.data import DataLoader, Subset, transforms
from framework.data.cifar import CIFAR10

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


def trained(model: nn.Module, batches: Callable, steps: int, lr: float) -> nn.Module:
    """The model after some steps of Adam; ``batches()`` gives an input and its targets."""
    optimizer = fw.optim.Adam(model.parameters(), lr=lr)
    schedule = fw.optim.lr_scheduler.OneCycleLR(optimizer, lr, total_steps=steps)
    model.train()
    for _ in range(steps):
        x, y = batches()
        loss = nn.functional.cross_entropy(model(x).flatten(0, -2), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return model.eval()


def fused(model: nn.Module) -> nn.Module:
    """With the batch norms of digits and of residual networks folded into the convolutions before them."""
    names = dict(model.named_modules())
    pairs = []
    for name in names:
        owner, _, own = name.rpartition(".")
        at = f"{owner}." if owner else ""
        for conv, norm in (("conv", "norm"), ("conv", "bn")):
            if own.startswith(conv) and at + own.replace(conv, norm) in names:
                pairs.append([name, at + own.replace(conv, norm)])
        if own == "downsample":
            pairs.append([f"{name}.0", f"{name}.1"])
    return quantization.fuse_modules(model, pairs) if pairs else model


def calibrated(model: nn.Module, inputs: list) -> nn.Module:
    """Static quantisation, with the ranges of these inputs."""
    model.qconfig = quantization.get_default_qconfig()
    return quantization.quantize(model, lambda m, *xs: [m(x) for x in xs], inputs)


def times(calls: list[Callable], rounds: int) -> list[float]:
    """Milliseconds of each call: medians, the calls taking turns."""
    clock = time.thread_time if fw.get_num_threads() == 1 else time.perf_counter
    found: list[list[float]] = [[] for _ in calls]
    with fw.no_grad():
        for _ in range(rounds):
            for call, times_of in zip(calls, found):
                start = clock()
                call()
                times_of.append(clock() - start)
    return [sorted(t)[len(t) // 2] * 1e3 for t in found]


def size(model: nn.Module) -> float:
    """Megabytes of parameters and buffers, or of a file."""
    if isinstance(model, InOnnxRuntime):
        return model.megabytes
    return sum(t.numel() * t.dtype.itemsize for t in model.state_dict().values()) / 1e6


class InOnnxRuntime(nn.Module):
    """The exported model, called as the model is; with one thread."""

    def __init__(self, model: nn.Module, x: fw.Tensor) -> None:
        super().__init__()
        file = io.BytesIO()
        fw.onnx.export(model, x[:2], file, input_names=["x"], dynamic_axes={"x": {0: "batch"}})
        self.session, self.megabytes = session(file.getvalue()), len(file.getvalue()) / 1e6

    def forward(self, x: fw.Tensor) -> fw.Tensor:
        return fw.from_numpy(self.session.run(None, {"x": x.numpy()})[0])


def digits(data: Path, quick: bool) -> tuple:
    from digits import Net, load_data

    train, test = load_data(str(data / "mnist"))
    (x, y), (test_x, test_y) = train.tensors, test.tensors

    def batches() -> tuple:
        pick = fw.randint(0, len(x), (64,))
        return x[pick], y[pick]

    model = trained(Net(28), batches, 60 if quick else 900, 2e-3)

    def score(m: nn.Module) -> float:
        return float((fw.cat([m(b) for b in test_x.split(500)]).argmax(1) == test_y).float().mean()) * 100

    return (
        "digits (MNIST), accuracy %",
        model,
        score,
        [x[i : i + 100] for i in range(0, 1000, 100)],
        test_x[:32],
    )


def cifar(data: Path, quick: bool) -> tuple:
    from cifar_resnet import MEAN, STD, SmallResNet

    plain = [transforms.ConvertImageDtype(fw.float32), transforms.Normalize(MEAN, STD)]
    varied = transforms.Compose(
        [transforms.RandomCrop(32, padding=4), transforms.RandomHorizontalFlip(), *plain]
    )
    train = CIFAR10(data / "cifar10-subset", train=True, transform=varied)
    test = CIFAR10(data / "cifar10-subset", train=False, transform=transforms.Compose(plain))
    test = Subset(test, range(min(len(test), 2000)))
    loader, state = DataLoader(train, 64, shuffle=True), {}

    def batches() -> tuple:
        try:
            return next(state["it"])
        except (KeyError, StopIteration):
            state["it"] = iter(loader)
            return next(state["it"])

    model = trained(SmallResNet(16), batches, 20 if quick else 1200, 5e-3)
    held = list(DataLoader(test, 250))

    def score(m: nn.Module) -> float:
        return sum(int((m(x).argmax(1) == y).sum()) for x, y in held) / len(test) * 100

    return "CIFAR-10 ResNet, accuracy %", model, score, [batches()[0] for _ in range(10)], held[0][0][:32]


def gpt(data: Path, quick: bool) -> tuple:
    from gpt import batch, held_out, load_text

    from framework.models import GPT2

    text = load_text(str(data / "text" / "tinyshakespeare.txt"))
    letters = sorted(set(text))
    number = {letter: i for i, letter in enumerate(letters)}
    tokens = fw.tensor([number[letter] for letter in text])
    cut = len(tokens) * 9 // 10
    train, test = tokens[:cut], tokens[cut:]
    model = GPT2(vocabulary=len(letters), context=64, layers=4, width=128, heads=4, dropout=0.0)
    trained(model, lambda: batch(train, 16, 64), 20 if quick else 600, 2e-3)
    return (
        "GPT, loss in nats a letter",
        model,
        lambda m: held_out(m, test, 64),
        [batch(train, 16, 64)[0] for _ in range(10)],
        test[: 32 * 64].reshape(32, 64),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with mnist, cifar10-subset, text")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="hardly trained models")
    parser.add_argument("--onnx", action="store_true", help="also as ONNX files in ONNX Runtime")
    args = parser.parse_args()
    sys.path.insert(0, str(EXAMPLES))
    fw.set_num_threads(args.threads)
    print("| model | numbers | score | MB | ms, batch 1 | ms, batch 32 |")
    print("| --- | --- | --- | --- | --- | --- |")
    for make in (digits, cifar, gpt):
        fw.manual_seed(0)
        name, model, score, inputs, x = make(args.data, args.quick)
        kinds: dict[str, Any] = {"float32": model}
        if make is gpt:
            kinds["int8, dynamic"] = quantization.quantize_dynamic(model)
        else:
            kinds["float32, norms folded"] = fused(model)
            kinds["int8, dynamic"] = quantization.quantize_dynamic(fused(model), {nn.Linear, nn.Conv2d})
        kinds["int8, calibrated"] = calibrated(fused(model), inputs)
        if args.onnx:
            kinds |= {f"{kind}, ONNX Runtime": InOnnxRuntime(m, x) for kind, m in kinds.items()}
        one, many = [
            times([lambda m=m, x=part: m(x) for m in kinds.values()], args.rounds) for part in (x[:1], x)
        ]
        for kind, m, t, u in zip(kinds, kinds.values(), one, many):
            with fw.no_grad():
                print(f"| {name} | {kind} | {score(m):.3f} | {size(m):.3f} | {t:.3f} | {u:.2f} |", flush=True)


if __name__ == "__main__":
    main()
