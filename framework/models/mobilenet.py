"""MobileNetV2, under torchvision's names.

Source: Sandler et al., MobileNetV2: inverted residuals and linear bottlenecks, CVPR 2018.
"""

from typing import Any

from .. import nn
from ..tensor import Tensor
from .weights import load_weights

# expansion, channels, repetitions, stride of the first (table 2 of the paper)
_STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


def _divisible(channels: float) -> int:
    """The nearest multiple of 8 that is not more than a tenth smaller."""
    rounded = max(8, int(channels + 4) // 8 * 8)
    return rounded + 8 if rounded < 0.9 * channels else rounded


def _unit(inputs: int, outputs: int, size: int, stride: int = 1, groups: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, size, stride, size // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU6(inplace=True),
    )


class InvertedResidual(nn.Module):
    """Widen by 1x1, filter each channel by 3x3, narrow by 1x1 without activation; added to x where shapes
    allow.

    Shapes: (N, inputs, H, W) to (N, outputs, H / stride, W / stride).
    """

    def __init__(self, inputs: int, outputs: int, stride: int, expansion: int) -> None:
        super().__init__()
        width = inputs * expansion
        self.adds = stride == 1 and inputs == outputs
        widen = [] if expansion == 1 else [_unit(inputs, width, 1)]
        self.conv = nn.Sequential(
            *widen,
            _unit(width, width, 3, stride, width),
            nn.Conv2d(width, outputs, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv(x) if self.adds else self.conv(x)


class MobileNetV2(nn.Module):
    """MobileNetV2. Shapes: (N, channels, H, W) to (N, num_classes).

    width: factor of all channels.

    >>> fw.models.MobileNetV2(num_classes=10, width=0.25).eval()(fw.ones(1, 3, 32, 32)).shape
    (1, 10)
    """

    def __init__(
        self, num_classes: int = 1000, width: float = 1.0, channels: int = 3, dropout: float = 0.2
    ) -> None:
        super().__init__()
        inputs, last = _divisible(32 * width), _divisible(1280 * max(1.0, width))
        layers: list[nn.Module] = [_unit(channels, inputs, 3, 2)]
        for expansion, planes, count, stride in _STAGES:
            outputs = _divisible(planes * width)
            for i in range(count):
                layers.append(InvertedResidual(inputs, outputs, stride if i == 0 else 1, expansion))
                inputs = outputs
        self.features = nn.Sequential(*layers, _unit(inputs, last, 1))
        self.classifier = nn.Sequential(nn.Dropout(dropout), nn.Linear(last, num_classes))
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out")

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.features(x).mean((2, 3)))


def mobilenet_v2(weights: Any = None, **settings: Any) -> MobileNetV2:
    """MobileNetV2, 3.5 million parameters. weights: see ``load_weights``; settings: of ``MobileNetV2``."""
    model = MobileNetV2(**settings)
    return model if weights is None else load_weights(model, weights)  # type: ignore[return-value]
