"""Training data: corpora, readers of file formats, cleaning, batches and pretraining tasks."""
