"""Report of a translator's errors on a test set, as one HTML file."""

from keras_transformer.analysis.report.measure import Report, Sentence, measure
from keras_transformer.analysis.report.page import page

__all__ = ["Report", "Sentence", "measure", "page"]
