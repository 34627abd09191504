"""Translators: engines, ensembles, glossaries, documents, reranking, estimates of quality."""
