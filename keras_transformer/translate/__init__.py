"""Translators, their engines, and methods on them, such as ensembles and reranking."""
