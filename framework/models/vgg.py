"""VGG, under torchvision's names.

Source: Simonyan and Zisserman, Very deep convolutional networks for large-scale image recognition, ICLR 2015.
"""

from typing import Any

from .. import nn
from ..tensor import Tensor
from .weights import load_weights

_STAGES = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}
_WIDTHS = (64, 128, 256, 512, 512)


class VGG(nn.Module):
    """Stages of 3x3 convolutions, each with a pooling behind it, and three Linear layers.

    depth: 11, 13, 16 or 19. Shapes: (N, channels, H, W), H and W at least 32, to (N, num_classes).

    >>> model = fw.models.VGG(11, batch_norm=True, num_classes=10, head=64)
    >>> sum(p.numel() for p in model.features.parameters())
    9225984
    """

    def __init__(
        self,
        depth: int,
        batch_norm: bool = False,
        num_classes: int = 1000,
        channels: int = 3,
        dropout: float = 0.5,
        head: int = 4096,
    ) -> None:
        super().__init__()
        if depth not in _STAGES:
            raise ValueError(f"VGG: depth must be one of {sorted(_STAGES)}, got {depth}")
        layers: list[nn.Module] = []
        for count, width in zip(_STAGES[depth], _WIDTHS):
            for _ in range(count):
                layers.append(nn.Conv2d(channels, width, 3, padding=1))
                layers += [nn.BatchNorm2d(width)] if batch_norm else []
                layers.append(nn.ReLU(inplace=True))
                channels = width
            layers.append(nn.MaxPool2d(2, 2))
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d(7)
        self.classifier = nn.Sequential(
            nn.Linear(512 * 49, head),
            nn.ReLU(True),
            nn.Dropout(dropout),
            nn.Linear(head, head),
            nn.ReLU(True),
            nn.Dropout(dropout),
            nn.Linear(head, num_classes),
        )
        for module in self.modules():
            if isinstance(module, nn.Conv2d) and module.bias is not None:
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
                nn.init.zeros_(module.bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.avgpool(self.features(x)).flatten(1))


def _made(depth: int, weights: Any, settings: dict) -> VGG:
    model = VGG(depth, **settings)
    return model if weights is None else load_weights(model, weights)  # type: ignore[return-value]


def vgg11(weights: Any = None, **settings: Any) -> VGG:
    """VGG of 11 layers. weights: see ``load_weights``; settings: those of ``VGG``."""
    return _made(11, weights, settings)


def vgg13(weights: Any = None, **settings: Any) -> VGG:
    """VGG of 13 layers. weights: see ``load_weights``; settings: those of ``VGG``."""
    return _made(13, weights, settings)


def vgg16(weights: Any = None, **settings: Any) -> VGG:
    """VGG of 16 layers. weights: see ``load_weights``; settings: those of ``VGG``."""
    return _made(16, weights, settings)


def vgg19(weights: Any = None, **settings: Any) -> VGG:
    """VGG of 19 layers. weights: see ``load_weights``; settings: those of ``VGG``."""
    return _made(19, weights, settings)
