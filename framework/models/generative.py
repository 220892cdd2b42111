"""DCGAN.

Source: Radford et al., Unsupervised representation learning with deep convolutional GANs, ICLR 2016.
"""

from .. import nn
from ..tensor import Tensor


def _levels(image_size: int, name: str) -> int:
    levels = (image_size // 4).bit_length() - 1
    if image_size != 4 << levels or levels < 1:
        raise ValueError(f"{name}: image_size must be 8, 16, 32, ..., got {image_size}")
    return levels


def _start(model: nn.Module) -> None:
    """The paper's first weights: normal with deviation 0.02, the norms around 1."""
    for module in model.modules():
        if isinstance(module, (nn.Conv2d, nn.ConvTranspose2d)):
            nn.init.normal_(module.weight, 0.0, 0.02)
        elif isinstance(module, nn.BatchNorm2d) and module.bias is not None:
            nn.init.normal_(module.weight, 1.0, 0.02)
            nn.init.zeros_(module.bias)


class DCGANGenerator(nn.Module):
    """From noise to images in [-1, 1]. Shapes: (N, noise) or (N, noise, 1, 1) to (N, channels, S, S).

    >>> fw.models.DCGANGenerator(noise=8, width=4, image_size=16)(fw.randn(2, 8)).shape
    (2, 3, 16, 16)
    """

    def __init__(self, noise: int = 100, width: int = 64, channels: int = 3, image_size: int = 64) -> None:
        super().__init__()
        levels = _levels(image_size, "DCGANGenerator")
        planes = width << (levels - 1)
        layers: list[nn.Module] = [
            nn.ConvTranspose2d(noise, planes, 4, 1, 0, bias=False),
            nn.BatchNorm2d(planes),
            nn.ReLU(True),
        ]
        for _ in range(levels - 1):
            layers += [
                nn.ConvTranspose2d(planes, planes // 2, 4, 2, 1, bias=False),
                nn.BatchNorm2d(planes // 2),
                nn.ReLU(True),
            ]
            planes //= 2
        self.main = nn.Sequential(
            *layers, nn.ConvTranspose2d(planes, channels, 4, 2, 1, bias=False), nn.Tanh()
        )
        _start(self)

    def forward(self, noise: Tensor) -> Tensor:
        return self.main(noise if noise.ndim == 4 else noise[:, :, None, None])


class DCGANDiscriminator(nn.Module):
    """From images to one logit each. Shapes: (N, channels, S, S) to (N,).

    >>> fw.models.DCGANDiscriminator(width=4, image_size=16)(fw.randn(2, 3, 16, 16)).shape
    (2,)
    """

    def __init__(self, width: int = 64, channels: int = 3, image_size: int = 64) -> None:
        super().__init__()
        levels = _levels(image_size, "DCGANDiscriminator")
        layers: list[nn.Module] = [nn.Conv2d(channels, width, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, True)]
        for _ in range(levels - 1):
            layers += [
                nn.Conv2d(width, width * 2, 4, 2, 1, bias=False),
                nn.BatchNorm2d(width * 2),
                nn.LeakyReLU(0.2, True),
            ]
            width *= 2
        self.main = nn.Sequential(*layers, nn.Conv2d(width, 1, 4, 1, 0, bias=False))
        _start(self)

    def forward(self, images: Tensor) -> Tensor:
        return self.main(images).flatten()
