"""Benchmarks: one source of workloads, run on any module that has PyTorch's API (docs/performance.md)."""
