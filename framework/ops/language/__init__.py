"""The language of scalar expressions, and the elementwise ops that are written in it."""

from . import elementwise as elementwise
from . import erf as erf
from . import expression as expression
from . import program as program
