"""Convolutional networks."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

from ..workload import Case, Loss, fill, forward_flops, integers, normal, training, workload


def _classifier(M: ModuleType, model: Any, x: Any, classes: int) -> Case:
    y = integers(M, classes, len(x))
    fill(M, model)
    forward, first = forward_flops(M, model, lambda: model(x))
    optimizer = M.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9)
    return training(M, model, lambda: M.nn.functional.cross_entropy(model(x), y), optimizer,
                    forward=forward, first=first)


@workload(tiny={"batch": 4, "channels": 4}, training=True)
def cnn_step(M: ModuleType, *, batch: int = 64, channels: int = 32) -> Case:
    """Training step of a CNN of two convolutions on 28x28 images (MNIST's size), batch 64."""
    n = M.nn
    model = n.Sequential(n.Conv2d(1, channels, 3, padding=1), n.ReLU(), n.MaxPool2d(2),
                         n.Conv2d(channels, 2 * channels, 3, padding=1), n.ReLU(), n.MaxPool2d(2),
                         n.Flatten(), n.Linear(2 * channels * 49, 128), n.ReLU(), n.Linear(128, 10))
    return _classifier(M, model, normal(M, batch, 1, 28, 28), 10)


def _block(M: ModuleType, inner: int, outer: int, stride: int) -> Any:
    """Two convolutions with batch norm and a way around them."""
    n = M.nn

    class Block(n.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv1 = n.Conv2d(inner, outer, 3, stride=stride, padding=1, bias=False)
            self.bn1 = n.BatchNorm2d(outer)
            self.conv2 = n.Conv2d(outer, outer, 3, padding=1, bias=False)
            self.bn2 = n.BatchNorm2d(outer)
            self.relu = n.ReLU()
            self.around = n.Sequential()
            if stride != 1 or inner != outer:
                self.around = n.Sequential(n.Conv2d(inner, outer, 1, stride=stride, bias=False),
                                           n.BatchNorm2d(outer))

        def forward(self, x: Any) -> Any:
            y = self.relu(self.bn1(self.conv1(x)))
            return self.relu(self.bn2(self.conv2(y)) + self.around(x))
    return Block()


@workload(tiny={"batch": 2, "widths": (4, 8), "blocks": 1, "size": 8}, tolerance=0.05, kinks=True,
          training=True)
def resnet20_step(M: ModuleType, *, batch: int = 32, widths: tuple[int, ...] = (16, 32, 64),
                  blocks: int = 3, size: int = 32) -> Case:
    """Training step of ResNet-20 on 32x32 images (CIFAR's size), batch 32."""
    n = M.nn
    layers = [n.Conv2d(3, widths[0], 3, padding=1, bias=False), n.BatchNorm2d(widths[0]), n.ReLU()]
    inner = widths[0]
    for stage, outer in enumerate(widths):
        for i in range(blocks):
            layers.append(_block(M, inner, outer, 2 if stage and not i else 1))
            inner = outer
    model = n.Sequential(*layers, n.AdaptiveAvgPool2d(1), n.Flatten(), n.Linear(inner, 10))
    return _classifier(M, model, normal(M, batch, 3, size, size), 10)


def train_conv3x3(M: ModuleType, batch: int, channels: int, size: int,
                  around: Callable[[Loss], Loss] = lambda loss: loss) -> Case:
    """A training step of one 3x3 convolution; ``around`` may put something around the loss."""
    model = fill(M, M.nn.Conv2d(channels, channels, 3, padding=1))
    x = normal(M, batch, channels, size, size, requires_grad=True)
    forward, _ = forward_flops(M, model, lambda: model(x))

    def loss() -> Any:
        x.grad = None
        return model(x).square().mean()
    case = training(M, model, around(loss), M.optim.SGD(model.parameters(), lr=1e-4), forward=forward)
    of_step = case.values
    case.values = lambda value: [*of_step(value), x.grad]
    return case


@workload(tiny={"batch": 2, "channels": 4, "size": 6}, training=True)
def conv3x3_step(M: ModuleType, *, batch: int = 8, channels: int = 128, size: int = 28) -> Case:
    """A wide 3x3 convolution, 128 to 128 channels on 28x28, batch 8: forward, all gradients, SGD."""
    return train_conv3x3(M, batch, channels, size)


@workload(tiny={"channels": 4, "size": 8})
def conv_batch_1(M: ModuleType, *, channels: int = 32, size: int = 64) -> Case:
    """Inference of three 3x3 convolutions (3-32-64-64 channels) on one 64x64 image."""
    n = M.nn
    model = fill(M, n.Sequential(n.Conv2d(3, channels, 3, padding=1), n.ReLU(),
                                 n.Conv2d(channels, 2 * channels, 3, padding=1, stride=2), n.ReLU(),
                                 n.Conv2d(2 * channels, 2 * channels, 3, padding=1), n.ReLU()))
    x = normal(M, 1, 3, size, size)

    def run() -> Any:
        with M.no_grad():
            return model(x)
    return Case(run, flops=forward_flops(M, model, run)[0])
