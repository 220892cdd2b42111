"""Rows of the rooms in ops/image."""
