"""Rows of the rooms in ops/random."""
