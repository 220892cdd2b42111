"""Layers that bring their input to mean 0 and variance 1."""

from . import channels as channels
from . import moments as moments
