"""Rows of ops/special."""
