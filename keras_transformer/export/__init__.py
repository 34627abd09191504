"""Export of models: SavedModel, CTranslate2, ONNX, LiteRT, web, Hugging Face, Marian, GGUF."""

from __future__ import annotations

from keras_transformer.export.ctranslate2 import ctranslate2
from keras_transformer.export.gguf import gguf
from keras_transformer.export.hugging_face import hugging_face
from keras_transformer.export.litert import litert
from keras_transformer.export.marian import marian
from keras_transformer.export.onnx import onnx
from keras_transformer.export.saved_model import saved_model
from keras_transformer.export.web import web

__all__ = ["ctranslate2", "gguf", "hugging_face", "litert", "marian", "onnx", "saved_model", "web"]
