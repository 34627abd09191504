"""Kernels and searches for PyTorch."""
