"""Rows of ops/convert."""
