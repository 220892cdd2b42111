"""Fuzzers for operations of one and of two operands."""
