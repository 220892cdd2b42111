"""Rows of ops/shape."""
