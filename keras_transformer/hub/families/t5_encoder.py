"""Map of checkpoints of the encoder of a T5, mT5 or UMT5 alone, such as sentence-t5."""

from __future__ import annotations

import functools

from keras_transformer.hub.families.family import Family, token_id
from keras_transformer.hub.families.fields import ACTIVATIONS, flag
from keras_transformer.hub.families.t5 import (
    FEED_FORWARDS,
    NAMES,
    SYNONYMS,
    feed_forward_name,
    feed_forward_of,
    fields_of,
    rules_of,
)
from keras_transformer.models import T5Encoder, T5EncoderConfig

_CLASSES = {kind: f"{kind.upper()}EncoderModel" for kind in FEED_FORWARDS}


def _config(theirs, names):
    """Return our config of the encoder of a T5."""
    gated, name = feed_forward_of(theirs)
    return T5EncoderConfig(
        vocab_size=theirs["vocab_size"],
        d_model=theirs["d_model"],
        d_ff=theirs["d_ff"],
        num_layers=theirs["num_layers"],
        num_heads=theirs["num_heads"],
        head_dim=theirs["d_kv"],
        num_buckets=theirs["relative_attention_num_buckets"],
        max_distance=theirs["relative_attention_max_distance"],
        positions_by_layer=theirs["model_type"] == "umt5",
        dropout=theirs["dropout_rate"],
        activation=ACTIVATIONS[name],
        gated=gated,
        epsilon=theirs["layer_norm_epsilon"],
        max_length=theirs["n_positions"],
        pad_id=token_id(theirs, "pad_token_id"),
        head="hidden",
    )


def _config_file(config, kind):
    """Return the `config.json` of the encoder of a T5."""
    return dict(
        architectures=[_CLASSES[kind]],
        is_encoder_decoder=False,
        vocab_size=config.vocab_size,
        d_model=config.d_model,
        d_ff=config.d_ff,
        num_layers=config.num_layers,
        num_heads=config.num_heads,
        d_kv=config.head_dim,
        relative_attention_num_buckets=config.num_buckets,
        relative_attention_max_distance=config.max_distance,
        dropout_rate=config.dropout,
        feed_forward_proj=feed_forward_name(config),
        layer_norm_epsilon=config.epsilon,
        n_positions=config.max_length,
        pad_token_id=config.pad_id,
    )


def _rules(config):
    return rules_of(config, {"encoder": config.num_layers})


VARIANTS = {
    (kind, _CLASSES[kind]): Family(
        T5Encoder,
        _config,
        _rules,
        functools.partial(_config_file, kind=kind),
        aliases={"encoder.embed_tokens.weight": ("shared.weight",)},
        free=frozenset({"labels"}),
        fields=fields_of(feed_forward) | {"is_encoder_decoder": flag(True)},
        also_read=("pad_token_id",),
        # Fields of the decoder and of the output, which this model lacks.
        harmless=("num_decoder_layers", "scale_decoder_outputs", "tie_word_embeddings"),
        synonyms=SYNONYMS,
        names=NAMES | {"num_layers": "num_layers"},
        architectures=(_CLASSES[kind],),
    )
    for kind, feed_forward in FEED_FORWARDS.items()
}
