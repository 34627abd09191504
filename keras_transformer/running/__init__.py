"""Models run on token ids: batches, padding, compiled searches and scores."""
