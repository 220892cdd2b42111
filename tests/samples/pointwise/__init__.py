"""Rows of ops/pointwise."""
