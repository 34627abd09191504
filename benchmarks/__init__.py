"""Benchmarks of speed, memory and output quality, each run as `python -m benchmarks.NAME`."""
