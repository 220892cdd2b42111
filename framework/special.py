"""Special functions: ``framework.special``."""

# functions of the rooms, written by framework.ops.stub
from .ops.pointwise.functions import erf as erf
from .ops.pointwise.functions import erfc as erfc
from .ops.pointwise.functions import exp2 as exp2
from .ops.pointwise.functions import expm1 as expm1
from .ops.pointwise.functions import log1p as log1p
from .ops.pointwise.functions import round as round
from .ops.pointwise.functions import sigmoid as expit  # noqa: F401
from .ops.reduce.reduce import logsumexp as logsumexp
from .ops.reduce.softmax import log_softmax as log_softmax
from .ops.reduce.softmax import softmax as softmax
from .ops.special.special import digamma as digamma
from .ops.special.special import digamma as psi  # noqa: F401
from .ops.special.special import entr as entr
from .ops.special.special import erfcx as erfcx
from .ops.special.special import erfinv as erfinv
from .ops.special.special import i0 as i0
from .ops.special.special import i0 as modified_bessel_i0  # noqa: F401
from .ops.special.special import lgamma as gammaln  # noqa: F401
from .ops.special.special import lgamma as lgamma
from .ops.special.special import log_ndtr as log_ndtr
from .ops.special.special import logit as logit
from .ops.special.special import ndtr as ndtr
from .ops.special.special import ndtri as ndtri
from .ops.special.special import polygamma as polygamma
from .ops.special.special import sinc as sinc
from .ops.special.special import xlog1py as xlog1py
from .ops.special.special import xlogy as xlogy
from .ops.special.special_more import bessel_j0 as bessel_j0
from .ops.special.special_more import bessel_j1 as bessel_j1
from .ops.special.special_more import bessel_y0 as bessel_y0
from .ops.special.special_more import bessel_y1 as bessel_y1
from .ops.special.special_more import i0e as i0e
from .ops.special.special_more import i1 as i1
from .ops.special.special_more import i1 as modified_bessel_i1  # noqa: F401
from .ops.special.special_more import i1e as i1e
from .ops.special.special_more import igamma as gammainc  # noqa: F401
from .ops.special.special_more import igammac as gammaincc  # noqa: F401
from .ops.special.special_more import modified_bessel_k0 as modified_bessel_k0
from .ops.special.special_more import modified_bessel_k1 as modified_bessel_k1
from .ops.special.special_more import mvlgamma as multigammaln  # noqa: F401
from .ops.special.special_more import scaled_modified_bessel_k0 as scaled_modified_bessel_k0
from .ops.special.special_more import scaled_modified_bessel_k1 as scaled_modified_bessel_k1
from .ops.special.special_more import spherical_bessel_j0 as spherical_bessel_j0
from .ops.special.special_more import zeta as zeta

# end of the functions
