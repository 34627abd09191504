"""Tiny models of several families, for tests that hold for all of them."""

import numpy as np

from keras_transformer.config import TransformerConfig
from keras_transformer.models import (
    BERT,
    T5,
    BERTConfig,
    DeBERTa,
    DeBERTaConfig,
    Gemma,
    GemmaConfig,
    LLaMA,
    LLaMAConfig,
    T5Config,
    T5Gemma,
    T5GemmaConfig,
    Transformer,
)


def tiny(family, num_layers=1, dropout=0.0, dtype=None, **fields):
    """A model with random weights and 24 pieces; `fields` are further fields of its config."""
    sizes = dict(d_model=16, d_ff=32, num_heads=4, dropout=dropout) | fields
    if family in ("transformer", "t5", "t5gemma"):
        sizes |= dict(num_encoder_layers=num_layers, num_decoder_layers=num_layers)
    else:
        sizes |= dict(num_layers=num_layers)
    if family == "transformer":
        return Transformer(TransformerConfig(24, 24, **sizes), dtype=dtype)
    if family == "t5":
        return T5(T5Config(24, head_dim=4, **sizes), dtype=dtype)
    if family == "t5gemma":
        return T5Gemma(T5GemmaConfig(24, num_kv_heads=2, head_dim=4, **sizes), dtype=dtype)
    if family == "gemma":
        return Gemma(GemmaConfig(24, num_kv_heads=2, head_dim=4, **sizes), dtype=dtype)
    if family == "llama":
        return LLaMA(LLaMAConfig(24, num_kv_heads=2, **sizes), dtype=dtype)
    if family == "mixture":
        return LLaMA(LLaMAConfig(24, num_experts=4, balance_loss=0.1, **sizes), dtype=dtype)
    if family == "deberta":
        fields = dict(num_buckets=4, max_distance=5, convolution=3)
        return DeBERTa(DeBERTaConfig(24, **fields, **sizes), dtype=dtype)
    return BERT(BERTConfig(24, **sizes), dtype=dtype)


def inputs_of(family, ids, labels):
    """The inputs of a family for these labels."""
    if family in ("transformer", "t5", "t5gemma"):
        return {"source_ids": ids, "target_ids": np.roll(labels, 1, axis=1)}
    return {"token_ids": ids}
