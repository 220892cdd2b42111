"""Rows of the rooms in ops/write."""
