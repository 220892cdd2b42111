"""Rows of the rooms in ops/shape."""
