"""Translation: translators, their engines, ensembles, glossaries, reranking, quality estimates."""
