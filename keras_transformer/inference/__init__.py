"""From input to output with a saved model: translators, language models, transcribers."""
