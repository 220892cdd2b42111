"""Functions of ``nn.functional`` that PyTorch has in its main namespace as well."""

from .image.adaptive_pool import adaptive_avg_pool1d
from .image.conv import conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d
from .image.pad import channel_shuffle, pixel_shuffle, pixel_unshuffle
from .image.pool import avg_pool1d, max_pool1d, max_pool2d, max_pool3d
from .inplace_functions import celu_, selu_, threshold_
from .linalg.einsum import bilinear
from .losses.distances import cosine_similarity, pairwise_distance
from .normalization.layers import rms_norm
from .pointwise.activations import hardshrink, prelu
from .random.activations import rrelu, rrelu_
from .record.public import public
from .signal.calculus import pdist

for _function in (adaptive_avg_pool1d, avg_pool1d, bilinear, celu_, channel_shuffle, conv1d, conv2d, conv3d,
                  conv_transpose1d, conv_transpose2d, conv_transpose3d, cosine_similarity, hardshrink,
                  max_pool1d, max_pool2d, max_pool3d, pairwise_distance, pdist, pixel_shuffle,
                  pixel_unshuffle, prelu, rms_norm, rrelu, rrelu_, selu_, threshold_):
    public(name=_function.__name__, numpy=True)(_function)
