"""Tokenizers, which convert text to token ids and back."""

from keras_transformer.text.hugging_face_tokenizer import read_tokenizer
from keras_transformer.text.keras_hub_tokenizer import KerasHubTokenizer
from keras_transformer.text.loading import load_tokenizer
from keras_transformer.text.marian_tokenizer import MarianTokenizer
from keras_transformer.text.multilingual import MultilingualTokenizer
from keras_transformer.text.sentence_piece import SentencePieceTokenizer
from keras_transformer.text.tokenizer import Tokenizer
from keras_transformer.text.words import WordTokenizer

__all__ = [
    "KerasHubTokenizer",
    "MarianTokenizer",
    "MultilingualTokenizer",
    "SentencePieceTokenizer",
    "Tokenizer",
    "WordTokenizer",
    "load_tokenizer",
    "read_tokenizer",
]
