"""Kernels and search loops for JAX."""
