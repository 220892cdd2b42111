"""Rows of the rooms in ops/pointwise."""
