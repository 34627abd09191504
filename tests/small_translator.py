"""A small translator of random weights, for tests of translations."""

import random

import numpy as np

from keras_transformer.config import TransformerConfig
from keras_transformer.models import Transformer
from keras_transformer.text import SentencePieceTokenizer
from keras_transformer.translate.translator import Translator

WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
TEXTS = ["one two", "three", "eight nine six one", "four five six seven", "ten one ten", "two"]
TEXTS += ["nine nine nine two", "six"]
MAX_LENGTH = 40  # not a multiple of 16, to which lengths are rounded up for compilation
SHORT = dict(max_extra_length=6)


def made_tokenizer(*symbols):
    choose = random.Random(0).choices
    texts = [" ".join(choose(WORDS, k=1 + i % 6)) for i in range(200)]
    options = dict(vocab_size=56, byte_fallback=False, symbols=symbols)
    return SentencePieceTokenizer.train(texts, texts, **options)


def make(tokenizer, seed=5, **fields):
    """Make a translator with random weights so large that its choices are clear."""
    config = TransformerConfig(
        tokenizer.source_vocab_size,
        tokenizer.target_vocab_size,
        d_model=16,
        d_ff=16,
        num_encoder_layers=1,
        num_decoder_layers=1,
        num_heads=2,
        dropout=0.3,
        max_length=MAX_LENGTH,
        tie_output=False,
        **fields,
    )
    model = Transformer(config)
    model.set_weights(random_weights(model, seed))
    return Translator(model, tokenizer, "en", "xx")


def random_weights(model, seed):
    rng = np.random.default_rng(seed)
    config, weights = model.config, []
    for value in model.get_weights():
        if value.ndim > 1:
            is_embedding = value.shape[0] == config.source_vocab_size
            value = rng.normal(size=value.shape) * (0.1 if is_embedding else 0.5)
            if value.shape[1] == config.target_vocab_size:
                value[:, config.eos_id] *= 2  # or few translations would end by themselves
        weights.append(value)
    return weights
