"""Translators that CTranslate2 can hold, and its translations, for tests of both directions."""

import ctranslate2 as peer

from keras_transformer.config import TransformerConfig
from keras_transformer.models import Transformer
from keras_transformer.text import SentencePieceTokenizer
from keras_transformer.translate.translator import Translator

ENGLISH = ["The old man sees the dog.", "A dog sleeps here.", "I see 3 dogs, don't I?"] * 20
GERMAN = ["Der alte Mann sieht den Hund.", "Ein Hund schläft hier.", "Ich sehe 3 Hunde."] * 20
OWN = {
    "post_norm": {},
    "pre_norm": dict(norm_first=True, activation="gelu"),
    "untied": dict(tie_output=False, norm_first=True),
    "separate": dict(share_embeddings=False, positions="learned"),
    "unequal": dict(num_decoder_heads=4, decoder_d_ff=40, norm_first=True),
    "unpositioned": dict(positions="none", norm_first=True),
}


def own_translator(changes, randomize):
    """Return a random translator whose config has these changes."""
    shared = changes.get("share_embeddings", True)
    tokenizer = SentencePieceTokenizer.train(ENGLISH, GERMAN, vocab_size=360, shared=shared)
    sizes = dict(
        source_vocab_size=tokenizer.source_vocab_size, d_model=16, d_ff=24, num_heads=2,
        target_vocab_size=tokenizer.target_vocab_size, num_encoder_layers=2, num_decoder_layers=2,
        max_length=64,
    )  # fmt: skip
    model = randomize(Transformer(TransformerConfig(**sizes | changes)), scale=2.0)
    return Translator(model, tokenizer, "en", "de")


def greedy_texts(out, tokenizer, texts, lengths):
    """Return CTranslate2's greedy translations, each of at most a number of tokens."""
    source, target = (tokenizer.pieces_of(side) for side in ("source", "target"))
    ids = {piece: i for i, piece in enumerate(target)}
    first = [target[i] for i in tokenizer.target_frame.before]
    options = dict(beam_size=1, target_prefix=[first] if first else None)
    model, rows = peer.Translator(str(out), compute_type="float32"), []
    for row in tokenizer.encode_source(texts):
        pieces = [source[i] for i in row]
        result = model.translate_batch([pieces], max_decoding_length=lengths(row), **options)
        rows.append([ids[x] for x in result[0].hypotheses[0]])
    return tokenizer.decode_target(rows)
