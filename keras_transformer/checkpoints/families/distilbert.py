"""Map of DistilBERT checkpoints."""

from __future__ import annotations

from keras_transformer.checkpoints.families.encoders import FIELDS, Names
from keras_transformer.checkpoints.families.family import (
    Family,
    Rule,
    dense,
    norm,
    table,
    their_activation,
    token_id,
)
from keras_transformer.checkpoints.families.fields import ACTIVATIONS, activation, rate, size
from keras_transformer.models import BERT, BERTConfig

NAMES = Names(
    "DistilBert",
    ("vocab_transform", "vocab_layer_norm"),
    output_bias="vocab_projector.bias",
    pooler="pre_classifier",
    classifier="classifier",
)
_HEADS = ("vocab_transform", "vocab_layer_norm", "vocab_projector", "pre_classifier")
_SIZES = ("vocab_size", "dim", "hidden_dim", "n_layers", "n_heads", "max_position_embeddings")
_SHARED = ("tie_word_embeddings", "architectures", "id2label", "num_labels")
_FIELDS = {name: FIELDS[name] for name in _SHARED} | dict.fromkeys(_SIZES, size())
_FIELDS |= dict(activation=activation("gelu"), dropout=rate(0.1), seq_classif_dropout=rate(0.2))


def _config(theirs, names):
    return BERTConfig(
        vocab_size=theirs["vocab_size"],
        d_model=theirs["dim"],
        d_ff=theirs["hidden_dim"],
        num_layers=theirs["n_layers"],
        num_heads=theirs["n_heads"],
        num_types=0,
        dropout=theirs["dropout"],
        head_dropout=theirs["seq_classif_dropout"],
        activation=ACTIVATIONS[theirs["activation"]],
        epsilon=1e-12,
        max_length=theirs["max_position_embeddings"],
        pad_id=token_id({"pad_token_id": 0, **theirs}, "pad_token_id"),
        pooler="relu",
        **NAMES.fields(theirs, names),
    )


def _config_file(config):
    return NAMES.config_file(config) | dict(
        vocab_size=config.vocab_size,
        dim=config.d_model,
        hidden_dim=config.d_ff,
        n_layers=config.num_layers,
        n_heads=config.num_heads,
        dropout=config.dropout,
        attention_dropout=0.0,
        seq_classif_dropout=config.head_dropout,
        activation=their_activation(config.activation),
        max_position_embeddings=config.max_length,
        pad_token_id=config.pad_id,
    )


def _rules(config: BERTConfig) -> list[Rule]:
    rules = table("embedding/tokens", "distilbert.embeddings.word_embeddings")
    rules += table("embedding/positions", "distilbert.embeddings.position_embeddings")
    rules += norm("embedding/norm", "distilbert.embeddings.LayerNorm")
    for i in range(config.num_layers):
        ours, theirs = f"encoder/block_{i}", f"distilbert.transformer.layer.{i}"
        rules += dense(
            f"{ours}/attention/query_key_value",
            *(f"{theirs}.attention.{x}_lin" for x in "qkv"),
            heads=(config.num_heads,) * 3,
        )
        rules += dense(f"{ours}/attention/output", f"{theirs}.attention.out_lin")
        rules += norm(f"{ours}/attention_norm/norm", f"{theirs}.sa_layer_norm")
        rules += dense(f"{ours}/feed_forward/hidden", f"{theirs}.ffn.lin1")
        rules += dense(f"{ours}/feed_forward/output", f"{theirs}.ffn.lin2")
        rules += norm(f"{ours}/feed_forward_norm/norm", f"{theirs}.output_layer_norm")
    return rules + NAMES.rules(config)


FAMILIES = {
    "distilbert": Family(
        BERT,
        _config,
        _rules,
        _config_file,
        aliases={"vocab_projector.weight": ("distilbert.embeddings.word_embeddings.weight",)},
        unused=(
            "embeddings.position_ids",
            # Weights of heads that a checkpoint may have in addition to that of its config.
            *(f"{name}.{part}" for name in _HEADS for part in ("weight", "bias")),
        ),
        prefix="distilbert.",
        fields=_FIELDS,
    )
}
