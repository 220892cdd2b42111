"""Rows of ops/linalg."""
