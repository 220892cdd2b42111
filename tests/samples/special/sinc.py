"""Rows of ops/special/sinc.py."""

import numpy as np

from ..base import Sample, normal
from . import unary

unary("sinc", np.sinc, normal(2, 3), "framework",
      Sample("at 0", lambda M, x: M.sinc(x), (np.array([0.0, 1.0, -2.0, 9.3]),), np.sinc, torch=False,
             why="PyTorch's second derivative at 0 is 0, it is -pi**2 / 3"))
