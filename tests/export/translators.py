"""A small random translator, saved, for tests of exports."""

from __future__ import annotations

from keras_transformer.config import TransformerConfig
from keras_transformer.models import Transformer
from keras_transformer.text import SentencePieceTokenizer
from keras_transformer.translate.translator import Translator

MAX_LENGTH = 32

SUBJECTS = ["the old man", "a small child", "the queen", "my neighbour", "the black cat"]
VERBS = ["sees", "hears", "loves", "follows"]
OBJECTS = ["the dog", "a red apple", "the sea at night", "two birds"]
ENGLISH = [f"{s} {v} {o}" for s in SUBJECTS for v in VERBS for o in OBJECTS]
MADE_UP = [" ".join(word[::-1] + "ö" for word in text.split()) for text in ENGLISH]


def save_translator(randomize, folder, shared):
    """Save a translator with one vocabulary (`shared`) or two."""
    # With bytes, which have the same ids in all vocabularies, swapped vocabularies would not show.
    tokenizer = SentencePieceTokenizer.train(
        ENGLISH, MADE_UP, vocab_size=320, shared=shared, byte_fallback=shared
    )
    config = TransformerConfig(
        tokenizer.source_vocab_size,
        tokenizer.target_vocab_size,
        d_model=16,
        d_ff=32,
        num_heads=2,
        num_encoder_layers=1,
        num_decoder_layers=1,
        max_length=MAX_LENGTH,
        share_embeddings=shared,
        eos_id=3 if shared else (3, 91),
    )
    Translator(randomize(Transformer(config), 3.0), tokenizer).save(folder)
    return folder
