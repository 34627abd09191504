"""Map of ViT checkpoints, with a classifier or without one."""

from __future__ import annotations

from keras_transformer.checkpoints.families.encoders import (
    BERT_LAYER,
    FIELDS,
    blocks,
)
from keras_transformer.checkpoints.families.family import (
    Family,
    Rule,
    dense,
    norm,
    their_activation,
)
from keras_transformer.checkpoints.families.fields import (
    ACTIVATIONS,
    Field,
    activation,
    flag,
    is_size,
    mapping,
    positive,
    rate,
    size,
)
from keras_transformer.checkpoints.families.labels import (
    labels_of,
    problem_fields,
    problem_type_of,
)
from keras_transformer.config import require
from keras_transformer.models import ViT, ViTConfig


def _sides(default: int) -> Field:
    def fits(value):
        sides = value if isinstance(value, list) and len(value) == 2 else [value]
        return all(map(is_size, sides))

    return Field("a whole number of at least 1, or a list of two", fits, default)


_SIZES = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads")
_FIELDS = {name: size() for name in _SIZES} | dict(
    image_size=_sides(224),
    patch_size=_sides(16),
    num_channels=size(3),
    hidden_dropout_prob=rate(0.0),
    hidden_act=activation("gelu"),
    qkv_bias=flag(True),
    layer_norm_eps=positive(1e-12),
    is_encoder_decoder=FIELDS["is_encoder_decoder"],
    architectures=FIELDS["architectures"],
    id2label=mapping(),
    num_labels=size(2),
    problem_type=FIELDS["problem_type"],
)
_CLASSIFIER, _BARE = "ViTForImageClassification", "ViTModel"
_LAYER = BERT_LAYER | {
    "attention/query_key_value": " ".join(
        f"attention.attention.{x}" for x in ("query", "key", "value")
    ),
    "attention_norm/norm": "layernorm_before",
    "feed_forward_norm/norm": "layernorm_after",
}
# The names of `transformers` since 5.0, and those that it still writes.
_LAYERS = (("layers.", "encoder.layer."), ("vit.layers.", "vit.encoder.layer."), ("", ""))
_DENSE = {
    "attention.q_proj": "attention.attention.query",
    "attention.k_proj": "attention.attention.key",
    "attention.v_proj": "attention.attention.value",
    "attention.o_proj": "attention.output.dense",
    "mlp.fc1": "intermediate.dense",
    "mlp.fc2": "output.dense",
}


def _config(theirs, names):
    patch = theirs["patch_size"]
    if isinstance(patch, list):
        if patch[0] != patch[1]:
            raise ValueError(f"patch_size must be one number, got {patch}")
        patch = patch[0]
    known = (_CLASSIFIER, _BARE)
    usual = known["classifier.weight" not in set(names)]
    architecture = (theirs["architectures"] or [usual])[0]
    require(architecture in known, "architectures", architecture, f"one of {known}")
    bare = architecture == _BARE
    return ViTConfig(
        num_classes=0 if bare else len(labels_of(theirs)),
        problem_type=None if bare else problem_type_of(theirs),
        image_size=theirs["image_size"],
        patch_size=patch,
        num_channels=theirs["num_channels"],
        d_model=theirs["hidden_size"],
        d_ff=theirs["intermediate_size"],
        num_layers=theirs["num_hidden_layers"],
        num_heads=theirs["num_attention_heads"],
        dropout=theirs["hidden_dropout_prob"],
        activation=ACTIVATIONS[theirs["hidden_act"]],
        qkv_bias=theirs["qkv_bias"],
        epsilon=theirs["layer_norm_eps"],
    )


def _config_file(config):
    labels = [f"LABEL_{i}" for i in range(config.num_classes)]
    height, width = config.image_size
    return dict(
        architectures=[_CLASSIFIER if labels else _BARE],
        id2label={str(i): label for i, label in enumerate(labels)},
        label2id={label: i for i, label in enumerate(labels)},
        **problem_fields(config.problem_type, len(labels)),
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
    rules += blocks(config, "vit.encoder.layer.{}", _LAYER, qkv_bias=config.qkv_bias)
    rules += norm("encoder/norm", "vit.layernorm")
    return rules + (dense("head", "classifier") if config.num_classes else [])


FAMILIES = {
    "vit": Family(
        ViT,
        _config,
        _rules,
        _config_file,
        aliases={},
        # The pooler of a bare model, which classifiers do not have.
        unused=("pooler.dense.weight", "pooler.dense.bias"),
        prefix="vit.",
        endings=tuple(
            (f".{name}.{part}", f".{old}.{part}")
            for name, old in _DENSE.items()
            for part in ("weight", "bias")
        ),
        part=_LAYERS,
        fields=_FIELDS,
        # Of a pooler and of a head that this model lacks.
        harmless=("pooler_act", "pooler_output_size", "encoder_stride"),
        names=dict(
            num_classes="id2label",
            d_model="hidden_size",
            d_ff="intermediate_size",
            num_layers="num_hidden_layers",
            num_heads="num_attention_heads",
            dropout="hidden_dropout_prob",
            activation="hidden_act",
            epsilon="layer_norm_eps",
        ),
    )
}
