"""Rows of ops/sequence."""
