"""Kernels for TensorFlow."""
