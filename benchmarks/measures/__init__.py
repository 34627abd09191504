"""Measures that only benchmarks use: contrastive pairs, gender bias, toxicity."""
