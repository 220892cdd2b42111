"""Rows of ops/normalization."""
