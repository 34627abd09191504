"""Objects that run a model for one task: classifiers, taggers, answers, embeddings, parsers."""
