"""Rows of ops/signal."""
