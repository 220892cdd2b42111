"""Rows of ops/reduce."""
