"""Readers and writers of the model formats of other programs."""
