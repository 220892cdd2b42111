"""Rows of the rooms in ops/signal."""
