"""From ids to ids with a model: batches, padding, compiled searches."""
