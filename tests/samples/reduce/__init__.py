"""Rows of the rooms in ops/reduce."""
