"""Discrete Fourier transforms: ``framework.fft``."""

# functions of the rooms, written by framework.ops.stub
from .ops.signal.fft import fft as fft
from .ops.signal.fft import fft2 as fft2
from .ops.signal.fft import fftfreq as fftfreq
from .ops.signal.fft import fftn as fftn
from .ops.signal.fft import fftshift as fftshift
from .ops.signal.fft import hfft as hfft
from .ops.signal.fft import hfft2 as hfft2
from .ops.signal.fft import hfftn as hfftn
from .ops.signal.fft import ifft as ifft
from .ops.signal.fft import ifft2 as ifft2
from .ops.signal.fft import ifftn as ifftn
from .ops.signal.fft import ifftshift as ifftshift
from .ops.signal.fft import ihfft as ihfft
from .ops.signal.fft import ihfft2 as ihfft2
from .ops.signal.fft import ihfftn as ihfftn
from .ops.signal.fft import irfft as irfft
from .ops.signal.fft import irfft2 as irfft2
from .ops.signal.fft import irfftn as irfftn
from .ops.signal.fft import rfft as rfft
from .ops.signal.fft import rfft2 as rfft2
from .ops.signal.fft import rfftfreq as rfftfreq
from .ops.signal.fft import rfftn as rfftn

# end of the functions
