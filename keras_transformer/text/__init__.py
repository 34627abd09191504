"""Text: tokenizers, which turn it into ids and back."""

from keras_transformer.text.base import Tokenizer
from keras_transformer.text.hub import KerasHubTokenizer
from keras_transformer.text.marian import MarianTokenizer
from keras_transformer.text.tokenizer import SentencePieceTokenizer, load_tokenizer

__all__ = [
    "KerasHubTokenizer",
    "MarianTokenizer",
    "SentencePieceTokenizer",
    "Tokenizer",
    "load_tokenizer",
]
