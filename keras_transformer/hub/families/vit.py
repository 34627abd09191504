"""Maps of ViT and DeiT checkpoints, with a classifier or without one."""

from __future__ import annotations

import functools

from keras_transformer.config import require
from keras_transformer.hub.families.encoders import (
    BERT_LAYER,
    FIELDS,
    blocks,
)
from keras_transformer.hub.families.family import (
    Family,
    Rule,
    dense,
    norm,
    their_activation,
)
from keras_transformer.hub.families.fields import (
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
from keras_transformer.hub.families.label_names import (
    labels_of,
    problem_fields,
    problem_type_of,
)
from keras_transformer.models import ViT, ViTConfig


def _sides(default: int) -> Field:
    def are_sides(value):
        sides = value if isinstance(value, list) and len(value) == 2 else [value]
        return all(map(is_size, sides))

    return Field("a whole number of at least 1, or a list of two", are_sides, default)


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
# Maps architectures to the distillation, and to whether there is a classifier.
_CLASSES = {
    "vit": {"ViTForImageClassification": ("none", True), "ViTModel": ("none", False)},
    "deit": {
        "DeiTForImageClassification": ("token", True),
        "DeiTForImageClassificationWithTeacher": ("head", True),
        "DeiTModel": ("token", False),
    },
}
# Index of the architecture in `_CLASSES`, by the weight that only it has.
_HEADS = {"classifier.weight": 0, "cls_classifier.weight": 1}
_LAYER = BERT_LAYER | {
    "attention/query_key_value": " ".join(
        f"attention.attention.{x}" for x in ("query", "key", "value")
    ),
    "attention_norm/norm": "layernorm_before",
    "feed_forward_norm/norm": "layernorm_after",
}


# Prefixes in `transformers` since 5.0, and the older ones, which it still writes.
def _layers(kind):
    inside = f"{kind}.layers.", f"{kind}.encoder.layer."
    return (("layers.", "encoder.layer."), inside, ("", ""))


_DENSE = {
    "attention.q_proj": "attention.attention.query",
    "attention.k_proj": "attention.attention.key",
    "attention.v_proj": "attention.attention.value",
    "attention.o_proj": "attention.output.dense",
    "mlp.fc1": "intermediate.dense",
    "mlp.fc2": "output.dense",
}


def _config(theirs, names, kind):
    """Return our config of a ViT or DeiT."""
    patch = theirs["patch_size"]
    if isinstance(patch, list):
        if patch[0] != patch[1]:
            raise ValueError(f"patch_size must be one number, got {patch}")
        patch = patch[0]
    known = [*_CLASSES[kind]]
    number = next((i for name, i in _HEADS.items() if name in set(names)), -1)
    architecture = (theirs["architectures"] or [known[number]])[0]
    require(architecture in known, "architectures", architecture, f"one of {known}")
    distillation, classifies = _CLASSES[kind][architecture]
    bare = not classifies
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
        distillation=distillation,
    )


def _config_file(config, kind):
    """Return the `config.json` of a ViT or DeiT."""
    usual = config.distillation, config.num_classes > 0
    classes = [name for name, facts in _CLASSES[kind].items() if facts == usual]
    require(len(classes) > 0, "distillation", config.distillation, "that of the kind of checkpoint")
    labels = [f"LABEL_{i}" for i in range(config.num_classes)]
    height, width = config.image_size
    return dict(
        architectures=classes,
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


def _rules(config: ViTConfig, kind: str) -> list[Rule]:
    """Return the rules of all weights of a ViT or DeiT."""
    inputs = f"{kind}.embeddings"
    rules = dense(
        "embedding/patches", f"{inputs}.patch_embeddings.projection", layout="convolution"
    )
    rules.append(Rule("embedding/class_token", (f"{inputs}.cls_token",), "row"))
    rules.append(Rule("embedding/positions", (f"{inputs}.position_embeddings",), "row"))
    rules += blocks(config, f"{kind}.encoder.layer.{{}}", _LAYER, qkv_bias=config.qkv_bias)
    rules += norm("encoder/norm", f"{kind}.layernorm")
    if config.distillation != "none":
        token = f"{inputs}.distillation_token"
        rules.append(Rule("embedding/distillation_token", (token,), "row"))
    if config.distillation == "head":
        rules += dense("distillation_head", "distillation_classifier")
        return rules + dense("head", "cls_classifier")
    return rules + (dense("head", "classifier") if config.num_classes else [])


FAMILIES = {
    kind: Family(
        ViT,
        functools.partial(_config, kind=kind),
        functools.partial(_rules, kind=kind),
        functools.partial(_config_file, kind=kind),
        aliases={},
        # The weights of the pooler of a bare model; a classifier has none.
        unused=("pooler.dense.weight", "pooler.dense.bias"),
        prefix=f"{kind}.",
        endings=tuple(
            (f".{name}.{part}", f".{old}.{part}")
            for name, old in _DENSE.items()
            for part in ("weight", "bias")
        ),
        part=_layers(kind),
        fields=_FIELDS,
        # Fields of a pooler and of a head that this model lacks.
        harmless=("pooler_act", "pooler_output_size", "encoder_stride"),
        names={"number of patches": "number of patches by image_size and patch_size"}
        | dict(
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
    for kind in _CLASSES
}
