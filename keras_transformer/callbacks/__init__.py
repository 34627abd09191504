"""Callbacks for `fit`: checkpoints of the full state, BLEU of real translations, progress line."""

from keras_transformer.callbacks.checkpoints import Checkpoints, TrainingStopped
from keras_transformer.callbacks.reports import Progress, TensorBoard, TranslationQuality

__all__ = ["Checkpoints", "Progress", "TensorBoard", "TrainingStopped", "TranslationQuality"]
