"""Rows of the rooms in ops/sequence."""
