"""Map of DistilBERT checkpoints."""

from __future__ import annotations

from keras_transformer.hub.families.encoder_map import (
    FIELDS,
    EncoderNames,
    blocks,
    embeddings,
)
from keras_transformer.hub.families.family import Family, Rule, their_activation, token_id
from keras_transformer.hub.families.fields import ACTIVATIONS, activation, rate, size
from keras_transformer.models import BERT, BERTConfig

NAMES = EncoderNames(
    "DistilBert",
    ("vocab_transform", "vocab_layer_norm"),
    output_bias="vocab_projector.bias",
    pooler="pre_classifier",
    classifier="classifier",
    sizes=dict(
        vocab_size="vocab_size",
        d_model="dim",
        d_ff="hidden_dim",
        num_layers="n_layers",
        num_heads="n_heads",
        max_length="max_position_embeddings",
        dropout="dropout",
        head_dropout="seq_classif_dropout",
    ),
)
_LAYER = {
    "attention/query_key_value": "attention.q_lin attention.k_lin attention.v_lin",
    "attention/output": "attention.out_lin",
    "attention_norm/norm": "sa_layer_norm",
    "feed_forward/hidden": "ffn.lin1",
    "feed_forward/output": "ffn.lin2",
    "feed_forward_norm/norm": "output_layer_norm",
}
_SIZES = ("vocab_size", "dim", "hidden_dim", "n_layers", "n_heads", "max_position_embeddings")
_SHARED: tuple[str, ...] = ("is_encoder_decoder", "tie_word_embeddings", "architectures")
_SHARED += ("id2label", "num_labels", "problem_type")
_FIELDS = {name: FIELDS[name] for name in _SHARED} | dict.fromkeys(_SIZES, size())
_FIELDS |= dict(activation=activation("gelu"), dropout=rate(0.1), seq_classif_dropout=rate(0.2))


def _config(theirs, names):
    """Return our config of a DistilBERT."""
    return BERTConfig(
        num_types=0,
        activation=ACTIVATIONS[theirs["activation"]],
        epsilon=1e-12,
        pad_id=token_id({"pad_token_id": 0, **theirs}, "pad_token_id"),
        pooler="relu",
        **NAMES.fields(theirs, names),
    )


def _config_file(config):
    return NAMES.config_file(config) | dict(
        attention_dropout=0.0,
        activation=their_activation(config.activation),
        pad_token_id=config.pad_id,
    )


def _rules(config: BERTConfig) -> list[Rule]:
    rules = embeddings(config, "distilbert")
    rules += blocks(config, "distilbert.transformer.layer.{}", _LAYER)
    return rules + NAMES.rules(config)


FAMILIES = {
    "distilbert": Family(
        BERT,
        _config,
        _rules,
        _config_file,
        aliases={"vocab_projector.weight": ("distilbert.embeddings.word_embeddings.weight",)},
        unused=("embeddings.position_ids",),
        heads=NAMES.weights,
        prefix="distilbert.",
        fields=_FIELDS,
        also_read=("pad_token_id",),
        harmless=("sinusoidal_pos_embds",),  # initializes a table that is in the weights
        synonyms=dict(
            hidden_size="dim", num_attention_heads="n_heads", num_hidden_layers="n_layers"
        ),
        names=NAMES.of_ours | dict(activation="activation"),
    )
}
