"""Special functions: ``framework.special``."""

# functions of the rooms, written by framework.ops.stub
from .ops.pointwise import erf as erf
from .ops.pointwise import erfc as erfc
from .ops.pointwise import exp2 as exp2
from .ops.pointwise import expm1 as expm1
from .ops.pointwise import log1p as log1p
from .ops.pointwise import round as round
from .ops.pointwise import sigmoid as expit  # noqa: F401
from .ops.reduce import logsumexp as logsumexp
from .ops.softmax import log_softmax as log_softmax
from .ops.softmax import softmax as softmax
from .ops.special import digamma as digamma
from .ops.special import digamma as psi  # noqa: F401
from .ops.special import entr as entr
from .ops.special import erfcx as erfcx
from .ops.special import erfinv as erfinv
from .ops.special import i0 as i0
from .ops.special import i0 as modified_bessel_i0  # noqa: F401
from .ops.special import lgamma as gammaln  # noqa: F401
from .ops.special import lgamma as lgamma
from .ops.special import log_ndtr as log_ndtr
from .ops.special import logit as logit
from .ops.special import ndtr as ndtr
from .ops.special import ndtri as ndtri
from .ops.special import polygamma as polygamma
from .ops.special import sinc as sinc
from .ops.special import xlog1py as xlog1py
from .ops.special import xlogy as xlogy
from .ops.special_more import bessel_j0 as bessel_j0
from .ops.special_more import bessel_j1 as bessel_j1
from .ops.special_more import bessel_y0 as bessel_y0
from .ops.special_more import bessel_y1 as bessel_y1
from .ops.special_more import i0e as i0e
from .ops.special_more import i1 as i1
from .ops.special_more import i1 as modified_bessel_i1  # noqa: F401
from .ops.special_more import i1e as i1e
from .ops.special_more import igamma as gammainc  # noqa: F401
from .ops.special_more import igammac as gammaincc  # noqa: F401
from .ops.special_more import modified_bessel_k0 as modified_bessel_k0
from .ops.special_more import modified_bessel_k1 as modified_bessel_k1
from .ops.special_more import mvlgamma as multigammaln  # noqa: F401
from .ops.special_more import scaled_modified_bessel_k0 as scaled_modified_bessel_k0
from .ops.special_more import scaled_modified_bessel_k1 as scaled_modified_bessel_k1
from .ops.special_more import spherical_bessel_j0 as spherical_bessel_j0
from .ops.special_more import zeta as zeta

# end of the functions
