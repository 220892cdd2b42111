"""U-Net.

Source: Ronneberger et al., U-Net: convolutional networks for biomedical image segmentation, MICCAI 2015.
"""

from .. import nn
from ..ops.shape.join import cat
from ..tensor import Tensor


def _pair(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(inplace=True),
        nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(inplace=True),
    )


class UNet(nn.Module):
    """A U-Net with padded convolutions, so that the result has the size of the image.

    Shapes: (N, channels, H, W) to (N, classes, H, W), of any H and W from 2 ** depth on. width: channels of
    the first level, doubled at each of the ``depth`` levels below.

    >>> fw.models.UNet(3, 2, width=4, depth=2)(fw.ones(1, 3, 13, 10)).shape
    (1, 2, 13, 10)
    """

    def __init__(self, channels: int, classes: int, width: int = 64, depth: int = 4) -> None:
        super().__init__()
        widths = [width << i for i in range(depth + 1)]
        self.down = nn.ModuleList([_pair(a, b) for a, b in zip([channels, *widths], widths)])
        self.pool = nn.MaxPool2d(2)
        self.up = nn.ModuleList([nn.ConvTranspose2d(w, w // 2, 2, 2) for w in reversed(widths[1:])])
        self.join = nn.ModuleList([_pair(w, w // 2) for w in reversed(widths[1:])])
        self.out = nn.Conv2d(width, classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        skips = [self.down[0](x)]
        for level in self.down[1:]:
            skips.append(level(self.pool(skips[-1])))
        x = skips.pop()
        for up, join in zip(self.up, self.join):
            beside, x = skips.pop(), up(x)
            (h, w), (rows, columns) = beside.shape[2:], x.shape[2:]
            x = nn.functional.pad(x, (0, w - columns, 0, h - rows))  # an odd size was rounded down
            x = join(cat([beside, x], 1))
        return self.out(x)
