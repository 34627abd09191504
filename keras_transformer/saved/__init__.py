"""Saved folders: a model with its tokenizer, config and card."""
