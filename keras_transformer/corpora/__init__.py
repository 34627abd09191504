"""Translation and scoring of large corpora in shards, on one machine or on a Ray cluster."""

from keras_transformer.corpora.job import score_corpus, translate_corpus
from keras_transformer.corpora.outcome import Outcome, ShardError

__all__ = ["Outcome", "ShardError", "score_corpus", "translate_corpus"]
