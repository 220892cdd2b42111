"""Functions of ``nn.functional`` that PyTorch has in its main namespace as well."""

from .activations import hardshrink, prelu
from .adaptive_pool import adaptive_avg_pool1d
from .conv import conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d
from .distances import cosine_similarity, pairwise_distance
from .einsum import bilinear
from .inplace_forms import celu_, selu_, threshold_
from .pad import pixel_shuffle, pixel_unshuffle
from .pool import avg_pool1d
from .public import public

for _function in (adaptive_avg_pool1d, avg_pool1d, bilinear, celu_, conv1d, conv2d, conv3d, conv_transpose1d,
                  conv_transpose2d, conv_transpose3d, cosine_similarity, hardshrink, pairwise_distance,
                  pixel_shuffle, pixel_unshuffle, prelu, selu_, threshold_):
    public(name=_function.__name__, numpy=True)(_function)
