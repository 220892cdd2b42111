"""Rows of ops/random."""
