"""Data: corpora of sentence pairs, cleaning, and batches of a token budget."""
