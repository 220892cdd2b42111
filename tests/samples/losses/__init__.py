"""Rows of the rooms in ops/losses."""
