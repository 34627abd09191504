"""Maps of ViT and DeiT checkpoints, with a classifier or without one."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from keras_transformer.config import require
from keras_transformer.hub.families.encoder_map import (
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
    read_same,
    size,
    write_same,
)
from keras_transformer.hub.families.label_fields import (
    label_fields,
    labels_of,
    problem_type_of,
)
from keras_transformer.models import ViT, ViTConfig


def sides(default: int) -> Field:
    """Return a field for a size of images or patches."""

    def are_sides(value):
        sides = value if isinstance(value, list) and len(value) == 2 else [value]
        return all(map(is_size, sides))

    return Field("a whole number of at least 1, or a list of two", are_sides, default)


_SIZES = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads")
_FIELDS = {name: size() for name in _SIZES} | dict(
    image_size=sides(224),
    patch_size=sides(16),
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
_SAME = dict(  # our field -> Hugging Face's, with the same value
    num_channels="num_channels",
    d_model="hidden_size",
    d_ff="intermediate_size",
    num_layers="num_hidden_layers",
    num_heads="num_attention_heads",
    dropout="hidden_dropout_prob",
    qkv_bias="qkv_bias",
    epsilon="layer_norm_eps",
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
# For a file without `architectures`: the index in `_CLASSES` of the architecture with this weight.
# If it has none of these weights, the last architecture is taken.
_HEADS = {"classifier.weight": 0, "cls_classifier.weight": 1}
LAYER = BERT_LAYER | {
    "attention/query_key_value": " ".join(
        f"attention.attention.{x}" for x in ("query", "key", "value")
    ),
    "attention_norm/norm": "layernorm_before",
    "feed_forward_norm/norm": "layernorm_after",
}


def _layers(kind):
    """Return `part` of `Family`: prefixes since `transformers` 5.0, and those before, of the rules.

    The last pair keeps all other names.
    """
    inside = f"{kind}.layers.", f"{kind}.encoder.layer."
    return (("layers.", "encoder.layer."), inside, ("", ""))


DENSE = {
    "attention.q_proj": "attention.attention.query",
    "attention.k_proj": "attention.attention.key",
    "attention.v_proj": "attention.attention.value",
    "attention.o_proj": "attention.output.dense",
    "mlp.fc1": "intermediate.dense",
    "mlp.fc2": "output.dense",
}


def square(theirs: Mapping[str, Any], name: str) -> int:
    """Return the side of a square of a `config.json`, which is one number or two equal ones."""
    side = theirs[name]
    if not isinstance(side, list):
        return side
    require(side[0] == side[-1], name, side, "one number")
    return side[0]


def _config(theirs, names, kind):
    """Return our config of a ViT or DeiT."""
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
        patch_size=square(theirs, "patch_size"),
        activation=ACTIVATIONS[theirs["hidden_act"]],
        distillation=distillation,
        **read_same(theirs, _SAME),
    )


def _config_file(config, kind):
    """Return the `config.json` of a ViT or DeiT."""
    usual = config.distillation, config.num_classes > 0
    classes = [name for name, facts in _CLASSES[kind].items() if facts == usual]
    require(len(classes) > 0, "distillation", config.distillation, "that of the kind of checkpoint")
    labels = [f"LABEL_{i}" for i in range(config.num_classes)]
    height, width = config.image_size
    return write_same(config, _SAME) | dict(
        architectures=classes,
        **label_fields(labels, config.problem_type),
        image_size=height if height == width else [height, width],
        patch_size=config.patch_size,
        attention_probs_dropout_prob=0.0,
        hidden_act=their_activation(config.activation),
    )


def _rules(config: ViTConfig, kind: str) -> list[Rule]:
    """Return the rules of all weights of a ViT or DeiT."""
    inputs = f"{kind}.embeddings"
    rules = dense(
        "embedding/patches", f"{inputs}.patch_embeddings.projection", layout="convolution"
    )
    rules.append(Rule("embedding/class_token", (f"{inputs}.cls_token",), "row"))
    rules.append(Rule("embedding/positions", (f"{inputs}.position_embeddings",), "row"))
    rules += blocks(config, f"{kind}.encoder.layer.{{}}", LAYER, qkv_bias=config.qkv_bias)
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
            for name, old in DENSE.items()
            for part in ("weight", "bias")
        ),
        part=_layers(kind),
        fields=_FIELDS,
        # Fields of a pooler and of a head that this model lacks.
        harmless=("pooler_act", "pooler_output_size", "encoder_stride"),
        names={"number of patches": "number of patches by image_size and patch_size"}
        | _SAME
        | dict(num_classes="id2label", activation="hidden_act"),
    )
    for kind in _CLASSES
}
