"""Kernels, search loops and strategies for TensorFlow."""
