"""Discrete Fourier transforms: ``framework.fft``."""

# functions of the rooms, written by framework.ops.stub
from .ops.fft import fft as fft
from .ops.fft import fft2 as fft2
from .ops.fft import fftfreq as fftfreq
from .ops.fft import fftn as fftn
from .ops.fft import fftshift as fftshift
from .ops.fft import hfft as hfft
from .ops.fft import hfft2 as hfft2
from .ops.fft import hfftn as hfftn
from .ops.fft import ifft as ifft
from .ops.fft import ifft2 as ifft2
from .ops.fft import ifftn as ifftn
from .ops.fft import ifftshift as ifftshift
from .ops.fft import ihfft as ihfft
from .ops.fft import ihfft2 as ihfft2
from .ops.fft import ihfftn as ihfftn
from .ops.fft import irfft as irfft
from .ops.fft import irfft2 as irfft2
from .ops.fft import irfftn as irfftn
from .ops.fft import rfft as rfft
from .ops.fft import rfft2 as rfft2
from .ops.fft import rfftfreq as rfftfreq
from .ops.fft import rfftn as rfftn

# end of the functions
