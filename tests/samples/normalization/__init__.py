"""Rows of the rooms in ops/normalization."""
