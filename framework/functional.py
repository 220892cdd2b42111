"""PyTorch's place for functions that are written in Python there; here they are as all others."""

from .ops.index.nonzero import unravel_index as unravel_index
from .ops.linalg.distances import cdist as cdist
from .ops.linalg.einsum import einsum as einsum
from .ops.linalg.norm import norm as norm
from .ops.linalg.older_names import lu as lu
from .ops.linalg.older_names import pca_lowrank as pca_lowrank
from .ops.linalg.older_names import svd_lowrank as svd_lowrank
from .ops.linalg.products import tensordot as tensordot
from .ops.reduce.unique import unique as unique
from .ops.reduce.unique import unique_consecutive as unique_consecutive
from .ops.shape.grids import atleast_1d as atleast_1d
from .ops.shape.grids import atleast_2d as atleast_2d
from .ops.shape.grids import atleast_3d as atleast_3d
from .ops.shape.grids import broadcast_shapes as broadcast_shapes
from .ops.shape.grids import broadcast_tensors as broadcast_tensors
from .ops.shape.grids import meshgrid as meshgrid
from .ops.shape.join import block_diag as block_diag
from .ops.shape.join import cartesian_prod as cartesian_prod
from .ops.shape.split import split as split
from .ops.signal.stft import istft as istft
from .ops.signal.stft import stft as stft
