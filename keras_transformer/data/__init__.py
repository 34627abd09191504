"""Data: corpora, readers of data sets, cleaning, batches of a token budget, pretraining tasks."""
