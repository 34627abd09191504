"""ViT, with its classifier."""

from __future__ import annotations

from keras_transformer.checkpoints.families.base import (
    Family,
    Rule,
    activation,
    dense,
    norm,
    their_activation,
)
from keras_transformer.models import ViT, ViTConfig


def _config(theirs, names):
    patch = theirs.get("patch_size", 16)
    if not isinstance(patch, int):
        if len(set(patch)) > 1:
            raise ValueError(f"patch_size must be one number, got {patch}")
        patch = patch[0]
    return ViTConfig(
        num_classes=_num_classes(theirs),
        image_size=theirs.get("image_size", 224),
        patch_size=patch,
        num_channels=theirs.get("num_channels", 3),
        d_model=theirs["hidden_size"],
        d_ff=theirs["intermediate_size"],
        num_layers=theirs["num_hidden_layers"],
        num_heads=theirs["num_attention_heads"],
        dropout=theirs.get("hidden_dropout_prob", 0.0),
        activation=activation(theirs.get("hidden_act", "gelu")),
        qkv_bias=theirs.get("qkv_bias", True),
        epsilon=theirs.get("layer_norm_eps", 1e-12),
    )


def _num_classes(theirs):
    """Where a file says nothing of them there are two, as `transformers` has it."""
    names = theirs.get("id2label")
    return theirs.get("num_labels") or (len(names) if names else 2)


def _config_file(config):
    labels = [f"LABEL_{i}" for i in range(config.num_classes)]
    height, width = config.image_size
    return dict(
        architectures=["ViTForImageClassification"],
        id2label={str(i): label for i, label in enumerate(labels)},
        label2id={label: i for i, label in enumerate(labels)},
        image_size=height if height == width else [height, width],
        patch_size=config.patch_size,
        num_channels=config.num_channels,
        hidden_size=config.d_model,
        intermediate_size=config.d_ff,
        num_hidden_layers=config.num_layers,
        num_attention_heads=config.num_heads,
        hidden_dropout_prob=config.dropout,
        attention_probs_dropout_prob=0.0,
        hidden_act=their_activation(config.activation),
        qkv_bias=config.qkv_bias,
        layer_norm_eps=config.epsilon,
    )


def _rules(config: ViTConfig) -> list[Rule]:
    rules = dense(
        "embedding/patches", "vit.embeddings.patch_embeddings.projection", layout="convolution"
    )
    rules.append(Rule("embedding/class_token", ("vit.embeddings.cls_token",), "row"))
    rules.append(Rule("embedding/positions", ("vit.embeddings.position_embeddings",), "row"))
    for i in range(config.num_layers):
        ours, theirs = f"encoder/block_{i}", f"vit.encoder.layer.{i}"
        rules += dense(
            f"{ours}/attention/query_key_value",
            *(f"{theirs}.attention.attention.{x}" for x in ("query", "key", "value")),
            bias=config.qkv_bias,
        )
        for layer, name in (
            ("attention/output", "attention.output.dense"),
            ("feed_forward/hidden", "intermediate.dense"),
            ("feed_forward/output", "output.dense"),
        ):
            rules += dense(f"{ours}/{layer}", f"{theirs}.{name}")
        rules += norm(f"{ours}/attention_norm/norm", f"{theirs}.layernorm_before")
        rules += norm(f"{ours}/feed_forward_norm/norm", f"{theirs}.layernorm_after")
    return rules + norm("encoder/norm", "vit.layernorm") + dense("head", "classifier")


FAMILIES = {
    "vit": Family(
        ViT,
        _config,
        _rules,
        _config_file,
        aliases={},
        unused=("pooler.dense.weight", "pooler.dense.bias"),  # of the bare model, read by none
    )
}
