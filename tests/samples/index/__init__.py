"""Rows of the rooms in ops/index."""
