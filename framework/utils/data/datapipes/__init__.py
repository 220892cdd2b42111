"""Datasets put together by chaining: each reads the one before it, ``pipe.map(f).batch(8)``."""

from . import iter as iter
from . import map as map
