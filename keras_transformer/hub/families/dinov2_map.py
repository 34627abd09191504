"""Map of DINOv2 checkpoints, with registers or without, with a classifier or without one."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from keras_transformer.config import require
from keras_transformer.hub.families.encoder_map import FIELDS, blocks
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
    mapping,
    positive,
    rate,
    read_same,
    size,
    write_same,
)
from keras_transformer.hub.families.label_fields import label_fields, labels_of, problem_type_of
from keras_transformer.hub.families.vit_map import DENSE, LAYER, sides, square
from keras_transformer.models import ViT, ViTConfig

_CLASSES = {"dinov2": "Dinov2", "dinov2_with_registers": "Dinov2WithRegisters"}
_SAME = dict(  # our field -> Hugging Face's, with the same value
    num_channels="num_channels",
    d_model="hidden_size",
    num_layers="num_hidden_layers",
    num_heads="num_attention_heads",
    dropout="hidden_dropout_prob",
    qkv_bias="qkv_bias",
    epsilon="layer_norm_eps",
    gated="use_swiglu_ffn",
    layer_scale="layerscale_value",
)
_LAYER = {part: name for part, name in LAYER.items() if not part.startswith("feed_forward/")} | {
    "attention_norm/norm": "norm1",
    "feed_forward_norm/norm": "norm2",
}
_PLAIN = {"feed_forward/hidden": "mlp.fc1", "feed_forward/output": "mlp.fc2"}


def _fields(kind: str) -> Mapping[str, Field]:
    """Return the fields of a `config.json`."""
    has_registers = kind != "dinov2"
    return dict(
        hidden_size=size(),
        num_hidden_layers=size(),
        num_attention_heads=size(),
        mlp_ratio=positive(4),
        image_size=sides(224),
        patch_size=sides(16 if has_registers else 14),
        num_channels=size(3),
        hidden_dropout_prob=rate(0.0),
        hidden_act=activation("gelu"),
        qkv_bias=flag(True),
        layer_norm_eps=positive(1e-6),
        layerscale_value=positive(1.0),
        use_swiglu_ffn=flag(False),
        **(dict(num_register_tokens=size(4)) if has_registers else {}),
        architectures=FIELDS["architectures"],
        id2label=mapping(),
        num_labels=size(2),
        problem_type=FIELDS["problem_type"],
    )


def _d_ff(width: int, ratio: float, gated: bool) -> int:
    """Return the width inside the feed-forward; with a gate, two thirds, a multiple of 8."""
    d_ff = int(width * ratio)
    return -(-int(d_ff * 2 / 3) // 8) * 8 if gated else d_ff


def _config(theirs, names, kind):
    prefix = _CLASSES[kind]
    known = [f"{prefix}ForImageClassification", f"{prefix}Model"]
    default = known[0] if "classifier.weight" in set(names) else known[1]
    architecture = (theirs["architectures"] or [default])[0]
    require(architecture in known, "architectures", architecture, f"one of {known}")
    classifies, gated = architecture == known[0], theirs["use_swiglu_ffn"]
    return ViTConfig(
        num_classes=len(labels_of(theirs)) if classifies else 0,
        problem_type=problem_type_of(theirs) if classifies else None,
        image_size=square(theirs, "image_size"),  # only square positions can be interpolated
        patch_size=square(theirs, "patch_size"),
        d_ff=_d_ff(theirs["hidden_size"], theirs["mlp_ratio"], gated),
        activation="silu" if gated else ACTIVATIONS[theirs["hidden_act"]],
        num_registers=theirs.get("num_register_tokens", 0),
        pooling="class_and_mean",
        antialias=kind != "dinov2",
        **read_same(theirs, _SAME),
    )


def _config_file(config, kind):
    end = "ForImageClassification" if config.num_classes else "Model"
    labels = [f"LABEL_{i}" for i in range(config.num_classes)]
    height, width = config.image_size
    ratio = config.d_ff / config.d_model
    ratio = round(ratio * 3 / 2 if config.gated else ratio)
    require(config.layer_scale is not None, "layer_scale", None, "a number")
    fields = dict(
        architectures=[_CLASSES[kind] + end],
        **label_fields(labels, config.problem_type),
        image_size=height if height == width else [height, width],
        patch_size=config.patch_size,
        mlp_ratio=max(1, ratio),
        attention_probs_dropout_prob=0.0,
        hidden_act=their_activation(config.activation),
    )
    more = dict(use_mask_token=False)
    if kind != "dinov2":
        more = dict(num_register_tokens=config.num_registers)
    return write_same(config, _SAME) | fields | more


def _rules(config: ViTConfig, kind: str) -> list[Rule]:
    inputs, layers = f"{kind}.embeddings", f"{kind}.encoder.layer"
    patches = f"{inputs}.patch_embeddings.projection"
    rules = dense("embedding/patches", patches, layout="convolution")
    rules.append(Rule("embedding/class_token", (f"{inputs}.cls_token",), "row"))
    rules.append(Rule("embedding/positions", (f"{inputs}.position_embeddings",), "row"))
    if config.num_registers:
        rules.append(Rule("embedding/registers", (f"{inputs}.register_tokens",), "row"))
    layer = _LAYER | ({} if config.gated else _PLAIN)
    rules += blocks(config, f"{layers}.{{}}", layer, qkv_bias=config.qkv_bias)
    for i in range(config.num_layers):
        ours, theirs = f"encoder/block_{i}", f"{layers}.{i}"
        for number, name in enumerate(("attention", "feed_forward"), 1):
            scale = f"{theirs}.layer_scale{number}.lambda1"
            rules.append(Rule(f"{ours}/{name}_norm/layer_scale", (scale,)))
        if config.gated:
            for number, name in enumerate(("hidden", "gate")):
                path, joined = f"{ours}/feed_forward/{name}", f"{theirs}.mlp.weights_in"
                kernel, bias, share = (f"{joined}.weight",), (f"{joined}.bias",), (number, 2)
                rules.append(Rule(f"{path}/kernel", kernel, "transposed", share=share))
                rules.append(Rule(f"{path}/bias", bias, share=share))
            rules += dense(f"{ours}/feed_forward/output", f"{theirs}.mlp.weights_out")
    rules += norm("encoder/norm", f"{kind}.layernorm")
    return rules + (dense("head", "classifier") if config.num_classes else [])


FAMILIES = {
    kind: Family(
        ViT,
        functools.partial(_config, kind=kind),
        functools.partial(_rules, kind=kind),
        functools.partial(_config_file, kind=kind),
        aliases={},
        unused=("embeddings.mask_token",),  # of pretraining
        prefix=f"{kind}.",
        endings=tuple(
            (f".{name}.{part}", f".{old}.{part}")
            for name, old in DENSE.items()
            if name.startswith("attention")
            for part in ("weight", "bias")
        ),
        fields=_fields(kind),
        # Fields of training, and of a backbone with several outputs.
        harmless=(
            *("drop_path_rate", "use_mask_token", "apply_layernorm", "reshape_hidden_states"),
            *("out_features", "out_indices", "stage_names"),
        ),
        names=_SAME
        | dict(num_classes="id2label", activation="hidden_act", d_ff="mlp_ratio")
        | dict(num_registers="num_register_tokens"),
    )
    for kind in _CLASSES
}
