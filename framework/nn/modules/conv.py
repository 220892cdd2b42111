"""Where PyTorch programs look for convolutions: names only."""

from ..conv import Conv1d as Conv1d
from ..conv import Conv2d as Conv2d
from ..conv import Conv3d as Conv3d
from ..conv import ConvTranspose1d as ConvTranspose1d
from ..conv import ConvTranspose2d as ConvTranspose2d
from ..conv import ConvTranspose3d as ConvTranspose3d
from ..conv import _ConvNd as _ConvNd
from ..conv import _ConvTranspose as _ConvTransposeNd
from ..lazy import LazyConv1d as LazyConv1d
from ..lazy import LazyConv2d as LazyConv2d
from ..lazy import LazyConv3d as LazyConv3d
from ..lazy import LazyConvTranspose1d as LazyConvTranspose1d
from ..lazy import LazyConvTranspose2d as LazyConvTranspose2d
from ..lazy import LazyConvTranspose3d as LazyConvTranspose3d
