"""Functions that PyTorch has in a second namespace: the main one or ``special``."""

from .image.adaptive_pool import adaptive_avg_pool1d
from .image.conv import conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d
from .image.other_names import conv_tbc, native_channel_shuffle
from .image.pixel_shuffle import channel_shuffle, pixel_shuffle, pixel_unshuffle
from .image.pool import avg_pool1d, max_pool1d, max_pool2d, max_pool3d
from .inplace_functions import celu_, selu_, threshold_
from .linalg.distances import cosine_similarity, pairwise_distance, pdist
from .linalg.einsum import bilinear
from .normalization.moments import rms_norm
from .pointwise.activations import celu, hardshrink, prelu, selu, threshold
from .pointwise.elementary import erf, erfc, exp2, expm1, log1p, sigmoid
from .pointwise.rounding import round
from .random.activations import rrelu, rrelu_
from .record.public import public
from .reduce.softmax import log_softmax, softmax
from .reduce.sums import logsumexp
from .special.bessel import i0
from .special.entropy import logit, xlogy
from .special.gamma import digamma, lgamma, polygamma
from .special.normal import erfinv
from .special.sinc import sinc

for _function in (adaptive_avg_pool1d, avg_pool1d, bilinear, celu, celu_, channel_shuffle, conv1d, conv2d,
                  conv3d, conv_tbc, conv_transpose1d, conv_transpose2d, conv_transpose3d, cosine_similarity,
                  hardshrink, max_pool1d, max_pool2d, max_pool3d, native_channel_shuffle, pairwise_distance,
                  pdist, pixel_shuffle, pixel_unshuffle, prelu, rms_norm, rrelu, rrelu_, selu, selu_,
                  threshold, threshold_):
    public(name=_function.__name__, numpy=True)(_function)
for _function in (lgamma, erfinv, xlogy, digamma, polygamma, i0, sinc, logit, erf, erfc, exp2, expm1, log1p,
                  round, softmax, log_softmax, logsumexp):
    public("special", name=_function.__name__)(_function)
public("special", name="expit")(sigmoid)
public("special", name="gammaln")(lgamma)
public("special", name="psi")(digamma)
public("special", name="modified_bessel_i0")(i0)
