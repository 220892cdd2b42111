"""Fourier transforms, windows, integrals and differences of sampled functions."""

from . import calculus as calculus
from . import fft as fft
from . import stft as stft
from . import window_functions as window_functions
from . import windows as windows
