"""Rows of ops/image."""
