"""Rows of the rooms in ops/convert."""
