"""Special functions: gamma, zeta, Bessel, the normal distribution."""

from . import bessel as bessel
from . import bessel_numbers as bessel_numbers
from . import entropy as entropy
from . import gamma as gamma
from . import normal as normal
from . import numbers as numbers
from . import polynomials as polynomials
from . import sinc as sinc
