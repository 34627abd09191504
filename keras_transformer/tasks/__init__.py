"""Objects that run a model for one task, such as classifiers, taggers, embedders and parsers."""
