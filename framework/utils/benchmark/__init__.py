"""Timing of statements, tables that compare them, and random operands to time."""

from ...config.listing import listing as _listing
from .compare import Colorize as Colorize
from .compare import Compare as Compare
from .fuzzer import FuzzedParameter as FuzzedParameter
from .fuzzer import FuzzedTensor as FuzzedTensor
from .fuzzer import Fuzzer as Fuzzer
from .fuzzer import ParameterAlias as ParameterAlias
from .timer import Language as Language
from .timer import Measurement as Measurement
from .timer import TaskSpec as TaskSpec
from .timer import Timer as Timer
from .timer import ordered_unique as ordered_unique
from .timer import select_unit as select_unit
from .timer import trim_sigfig as trim_sigfig

__dir__ = _listing(globals())
