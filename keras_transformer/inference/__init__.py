"""Inference with saved models: translators, language models, transcribers."""
