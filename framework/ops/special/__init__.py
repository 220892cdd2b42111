"""Special functions: gamma, zeta, Bessel, the normal distribution."""

from . import bessel_kernels as bessel_kernels
from . import special as special
from . import special_kernels as special_kernels
from . import special_more as special_more
