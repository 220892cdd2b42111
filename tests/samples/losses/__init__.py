"""Rows of ops/losses."""
