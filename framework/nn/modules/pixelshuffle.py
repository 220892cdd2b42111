"""Where PyTorch programs look for pixel shuffles: names only."""

from ..flatten import PixelShuffle as PixelShuffle
from ..flatten import PixelUnshuffle as PixelUnshuffle
