"""Residual networks, under torchvision's names.

Source: He et al., Deep residual learning for image recognition, CVPR 2016. The stride of a bottleneck
stands in its 3x3 convolution, as in torchvision.
"""

from typing import Any

from .. import nn
from ..tensor import Tensor
from .weights import load_weights


def _conv(inputs: int, outputs: int, size: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False)


class BasicBlock(nn.Module):
    """Two 3x3 convolutions beside a shortcut. Shapes: (N, C, H, W) to (N, width, H / stride, W / stride)."""

    expansion = 1

    def __init__(self, inputs: int, width: int, stride: int = 1, downsample: nn.Module | None = None) -> None:
        super().__init__()
        self.conv1 = _conv(inputs, width, 3, stride)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = _conv(width, width, 3)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = downsample

    def forward(self, x: Tensor) -> Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return self.relu(y + (x if self.downsample is None else self.downsample(x)))


class Bottleneck(nn.Module):
    """1x1, 3x3 and 1x1 convolutions beside a shortcut.

    Shapes: (N, C, H, W) to (N, 4 width, H / stride, W / stride).
    """

    expansion = 4

    def __init__(self, inputs: int, width: int, stride: int = 1, downsample: nn.Module | None = None) -> None:
        super().__init__()
        self.conv1 = _conv(inputs, width, 1)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = _conv(width, width, 3, stride)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = _conv(width, width * self.expansion, 1)
        self.bn3 = nn.BatchNorm2d(width * self.expansion)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = downsample

    def forward(self, x: Tensor) -> Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        return self.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet(nn.Module):
    """A residual network of four stages.

    block: BasicBlock or Bottleneck; layers: blocks in each stage. small_images: a 3x3 convolution without
    pooling at the start, as is used for images of 32x32. Shapes: (N, channels, H, W) to (N, num_classes).

    >>> fw.models.resnet18(num_classes=10, small_images=True)(fw.ones(1, 3, 32, 32)).shape
    (1, 10)
    """

    def __init__(
        self,
        block: type[BasicBlock] | type[Bottleneck],
        layers: list[int],
        num_classes: int = 1000,
        channels: int = 3,
        small_images: bool = False,
    ) -> None:
        super().__init__()
        self.conv1 = _conv(channels, 64, 3) if small_images else _conv(channels, 64, 7, 2)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.Identity() if small_images else nn.MaxPool2d(3, 2, 1)
        inputs = 64
        for i, count in enumerate(layers):
            width, stride = 64 << i, 1 if i == 0 else 2
            setattr(self, f"layer{i + 1}", self._stage(block, inputs, width, count, stride))
            inputs = width * block.expansion
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(inputs, num_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    @staticmethod
    def _stage(block: Any, inputs: int, width: int, count: int, stride: int) -> nn.Sequential:
        outputs = width * block.expansion
        shortcut = None
        if stride != 1 or inputs != outputs:
            shortcut = nn.Sequential(_conv(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))
        return nn.Sequential(
            block(inputs, width, stride, shortcut), *[block(outputs, width) for _ in range(count - 1)]
        )

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(self.avgpool(x).flatten(1))


def _made(block: Any, layers: list[int], weights: Any, settings: dict) -> ResNet:
    model = ResNet(block, layers, **settings)
    return model if weights is None else load_weights(model, weights)  # type: ignore[return-value]


def resnet18(weights: Any = None, **settings: Any) -> ResNet:
    """ResNet-18, 11.7 million parameters. weights: see ``load_weights``; settings: those of ``ResNet``."""
    return _made(BasicBlock, [2, 2, 2, 2], weights, settings)


def resnet34(weights: Any = None, **settings: Any) -> ResNet:
    """ResNet-34, 21.8 million parameters. weights: see ``load_weights``; settings: those of ``ResNet``."""
    return _made(BasicBlock, [3, 4, 6, 3], weights, settings)


def resnet50(weights: Any = None, **settings: Any) -> ResNet:
    """ResNet-50, 25.6 million parameters. weights: see ``load_weights``; settings: those of ``ResNet``."""
    return _made(Bottleneck, [3, 4, 6, 3], weights, settings)
