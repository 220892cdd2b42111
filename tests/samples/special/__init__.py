"""Rows of the rooms in ops/special."""
