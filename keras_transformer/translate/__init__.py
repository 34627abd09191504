"""Translators, their engines, and techniques that use them, such as ensembles and reranking."""
