"""Models of 8-bit numbers for inference, and what makes them of models of floats (docs/quantization.md)."""

from ...config.listing import listing as _listing
from .observers import MinMaxObserver as MinMaxObserver
from .observers import MovingAverageMinMaxObserver as MovingAverageMinMaxObserver
from .observers import PerChannelMinMaxObserver as PerChannelMinMaxObserver
from .observers import QConfig as QConfig
from .observers import default_qconfig as default_qconfig
from .observers import get_default_qconfig as get_default_qconfig
from .quantize import convert as convert
from .quantize import fuse_modules as fuse_modules
from .quantize import prepare as prepare
from .quantize import qint8 as qint8
from .quantize import quantize as quantize
from .quantize import quantize_dynamic as quantize_dynamic
from .quantize import quint8 as quint8
from .stubs import DeQuantStub as DeQuantStub
from .stubs import QuantStub as QuantStub

__dir__ = _listing(globals())
