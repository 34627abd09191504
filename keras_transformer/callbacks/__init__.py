"""Callbacks for `fit`: checkpoints, BLEU of validation texts, progress line, TensorBoard."""

from keras_transformer.callbacks.checkpoints import Checkpoints, TrainingStopped
from keras_transformer.callbacks.reports import Progress, TensorBoard, TranslationQuality

__all__ = ["Checkpoints", "Progress", "TensorBoard", "TrainingStopped", "TranslationQuality"]
