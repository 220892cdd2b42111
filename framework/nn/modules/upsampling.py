"""Where PyTorch programs look for upsampling layers: names only."""

from ..flatten import Upsample as Upsample
from ..flatten import UpsamplingBilinear2d as UpsamplingBilinear2d
from ..flatten import UpsamplingNearest2d as UpsamplingNearest2d
