"""Rows of the rooms in ops/linalg."""
