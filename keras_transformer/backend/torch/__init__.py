"""Kernels and search loops for PyTorch."""
