"""Special functions: ``framework.special``."""

# functions of the rooms, written by framework.ops.stub
from .ops.pointwise.elementary import erf as erf
from .ops.pointwise.elementary import erfc as erfc
from .ops.pointwise.elementary import exp2 as exp2
from .ops.pointwise.elementary import expm1 as expm1
from .ops.pointwise.elementary import log1p as log1p
from .ops.pointwise.elementary import sigmoid as expit  # noqa: F401
from .ops.pointwise.rounding import round as round
from .ops.reduce.softmax import log_softmax as log_softmax
from .ops.reduce.softmax import softmax as softmax
from .ops.reduce.sums import logsumexp as logsumexp
from .ops.special.bessel import bessel_j0 as bessel_j0
from .ops.special.bessel import bessel_j1 as bessel_j1
from .ops.special.bessel import bessel_y0 as bessel_y0
from .ops.special.bessel import bessel_y1 as bessel_y1
from .ops.special.bessel import i0 as i0
from .ops.special.bessel import i0 as modified_bessel_i0  # noqa: F401
from .ops.special.bessel import i0e as i0e
from .ops.special.bessel import i1 as i1
from .ops.special.bessel import i1 as modified_bessel_i1  # noqa: F401
from .ops.special.bessel import i1e as i1e
from .ops.special.bessel import modified_bessel_k0 as modified_bessel_k0
from .ops.special.bessel import modified_bessel_k1 as modified_bessel_k1
from .ops.special.bessel import scaled_modified_bessel_k0 as scaled_modified_bessel_k0
from .ops.special.bessel import scaled_modified_bessel_k1 as scaled_modified_bessel_k1
from .ops.special.bessel import spherical_bessel_j0 as spherical_bessel_j0
from .ops.special.entropy import entr as entr
from .ops.special.entropy import logit as logit
from .ops.special.entropy import xlog1py as xlog1py
from .ops.special.entropy import xlogy as xlogy
from .ops.special.gamma import digamma as digamma
from .ops.special.gamma import digamma as psi  # noqa: F401
from .ops.special.gamma import igamma as gammainc  # noqa: F401
from .ops.special.gamma import igammac as gammaincc  # noqa: F401
from .ops.special.gamma import lgamma as gammaln  # noqa: F401
from .ops.special.gamma import lgamma as lgamma
from .ops.special.gamma import mvlgamma as multigammaln  # noqa: F401
from .ops.special.gamma import polygamma as polygamma
from .ops.special.gamma import zeta as zeta
from .ops.special.normal import erfcx as erfcx
from .ops.special.normal import erfinv as erfinv
from .ops.special.normal import log_ndtr as log_ndtr
from .ops.special.normal import ndtr as ndtr
from .ops.special.normal import ndtri as ndtri
from .ops.special.polynomials import chebyshev_polynomial_t as chebyshev_polynomial_t
from .ops.special.polynomials import chebyshev_polynomial_u as chebyshev_polynomial_u
from .ops.special.polynomials import chebyshev_polynomial_v as chebyshev_polynomial_v
from .ops.special.polynomials import chebyshev_polynomial_w as chebyshev_polynomial_w
from .ops.special.polynomials import hermite_polynomial_h as hermite_polynomial_h
from .ops.special.polynomials import hermite_polynomial_he as hermite_polynomial_he
from .ops.special.polynomials import laguerre_polynomial_l as laguerre_polynomial_l
from .ops.special.polynomials import legendre_polynomial_p as legendre_polynomial_p
from .ops.special.polynomials import shifted_chebyshev_polynomial_t as shifted_chebyshev_polynomial_t
from .ops.special.polynomials import shifted_chebyshev_polynomial_u as shifted_chebyshev_polynomial_u
from .ops.special.polynomials import shifted_chebyshev_polynomial_v as shifted_chebyshev_polynomial_v
from .ops.special.polynomials import shifted_chebyshev_polynomial_w as shifted_chebyshev_polynomial_w
from .ops.special.sinc import sinc as sinc

# end of the functions
