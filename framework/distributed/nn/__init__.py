"""Collectives with derivatives."""

from . import functional as functional
