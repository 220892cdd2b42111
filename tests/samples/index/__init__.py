"""Rows of ops/index."""
