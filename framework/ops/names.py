"""Functions of ``nn.functional`` that PyTorch has in its main namespace as well."""

from .activations import hardshrink, prelu
from .adaptive_pool import adaptive_avg_pool1d
from .conv import conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d
from .distances import cosine_similarity, pairwise_distance
from .einsum import bilinear
from .inplace_forms import celu_, selu_, threshold_
from .integrals import pdist
from .norm import rms_norm
from .pad import channel_shuffle, pixel_shuffle, pixel_unshuffle
from .pool import avg_pool1d, max_pool1d, max_pool2d, max_pool3d
from .public import public
from .random_activations import rrelu, rrelu_

for _function in (adaptive_avg_pool1d, avg_pool1d, bilinear, celu_, channel_shuffle, conv1d, conv2d, conv3d,
                  conv_transpose1d, conv_transpose2d, conv_transpose3d, cosine_similarity, hardshrink,
                  max_pool1d, max_pool2d, max_pool3d, pairwise_distance, pdist, pixel_shuffle,
                  pixel_unshuffle, prelu, rms_norm, rrelu, rrelu_, selu_, threshold_):
    public(name=_function.__name__, numpy=True)(_function)
