"""Map of ModernBERT checkpoints, and the parts that it shares with the map of EuroBERT."""

from __future__ import annotations

import dataclasses
import functools

from keras_transformer.hub.families.encoder_map import BERT_SIZES, FIELDS, EncoderNames
from keras_transformer.hub.families.family import (
    Family,
    Rule,
    dense,
    table,
    their_activation,
    token_id,
)
from keras_transformer.hub.families.fields import (
    ACTIVATIONS,
    Field,
    activation,
    exactly,
    mapping,
    positive,
    size,
    token,
)
from keras_transformer.hub.families.rotary_fields import parameters_by_type, read_rotary
from keras_transformer.hub.families.window_fields import (
    FULL,
    SLIDING,
    layer_types,
    read_windows,
    window_fields,
)
from keras_transformer.models import ModernBERT, ModernBERTConfig

# Sizes and fields of encoders with rotary positions; their dropout rates are of training only.
SIZES = {ours: name for ours, name in BERT_SIZES.items() if ours not in ("dropout", "epsilon")}
_OTHERS = ("hidden_dropout_prob", "layer_norm_eps", "is_decoder", "add_cross_attention")
SHARED_FIELDS = {name: field for name, field in FIELDS.items() if name not in _OTHERS}
FAMILY = functools.partial(
    Family, ModernBERT, free=frozenset({"dropout", "head_dropout"}), prefix="model."
)


class _Names(EncoderNames):
    """Names of the parts of heads; each head has a dense layer and a norm of its own."""

    def _rules(self, head):
        if head == "hidden":
            return []
        rules = dense("transform/dense", self.transform[0], bias=False)
        rules += _gamma("transform/norm", self.transform[1])
        if head == "masked_lm":
            return [*rules, Rule("output_bias/bias", (self.output_bias,))]
        ours = "span" if head == "span_extraction" else "classifier"
        return rules + dense(ours, self.classifier)


NAMES = _Names(
    "ModernBert",
    ("head.dense", "head.norm"),
    output_bias="decoder.bias",
    pooler="head.dense",
    classifier="classifier",
    sizes=SIZES
    | dict(
        max_length="max_position_embeddings",
        epsilon="norm_eps",
        pooling="classifier_pooling",
    ),
)
_NO_BIAS = dict.fromkeys(("attention_bias", "mlp_bias", "norm_bias", "classifier_bias"))
_FIELDS = (
    SHARED_FIELDS
    | {name: exactly(False) for name in _NO_BIAS}
    | dict(
        norm_eps=positive(1e-5),
        pad_token_id=token(50283),
        hidden_activation=activation("gelu"),
        classifier_activation=exactly("gelu"),
        classifier_pooling=Field("'cls' or 'mean'", lambda x: x in ("cls", "mean"), "cls"),
        decoder_bias=exactly(True),
        local_attention=size(128),
        layer_types=layer_types(),
        rope_parameters=mapping(),
        rope_scaling=exactly(None),
        rope_theta=exactly(None),
        # In older files, in place of the two fields above.
        global_attn_every_n_layers=size(3),
        global_rope_theta=positive(160_000.0),
        local_rope_theta=positive(10_000.0),
    )
)


def _config(theirs, names):
    """Return our config; blocks with and without a window have different rotary rates."""
    every = theirs["global_attn_every_n_layers"]
    usual = [bool(i % every) for i in range(theirs["num_hidden_layers"])]
    # Half of `local_attention` is visible on each side.
    window, layers = read_windows(
        theirs | {"sliding_window": theirs["local_attention"] // 2 + 1}, usual
    )
    local, full = parameters_by_type(theirs)
    return ModernBERTConfig(
        activation=ACTIVATIONS[theirs["hidden_activation"]],
        pad_id=token_id(theirs, "pad_token_id"),
        theta=_theta(theirs, FULL, full, theirs["global_rope_theta"]),
        local_theta=_theta(theirs, SLIDING, local, theirs["local_rope_theta"]),
        window=window,
        window_layers=layers,
        **NAMES.fields(theirs, names),
    )


def _theta(theirs, kind, parameters, default):
    parameters = {"rope_theta": default} | parameters
    theta, scaling = read_rotary(theirs | {"rope_parameters": parameters})
    if scaling:
        raise ValueError(f"rope_parameters of {kind} must not be scaled, got {parameters}")
    return theta


def _config_file(config):
    plain = dataclasses.replace(config, window=None, window_layers=None)
    thetas = {FULL: config.theta, SLIDING: config.local_theta or config.theta}
    return NAMES.config_file(plain) | dict(
        hidden_activation=their_activation(config.activation),
        pad_token_id=config.pad_id,
        local_attention=max(1, 2 * ((config.window or 65) - 1)),
        layer_types=window_fields(config)["layer_types"],
        rope_parameters={
            kind: {"rope_type": "default", "rope_theta": theta} for kind, theta in thetas.items()
        },
        attention_dropout=0.0,
    )


def _gamma(ours, theirs):
    return [Rule(f"{ours}/gamma", (f"{theirs}.weight",))]


def _rules(config: ModernBERTConfig) -> list[Rule]:
    rules = table("embedding/tokens", "model.embeddings.tok_embeddings")
    rules += _gamma("embedding/norm", "model.embeddings.norm")
    for i in range(config.num_layers):
        ours, theirs = f"encoder/block_{i}", f"model.layers.{i}"
        heads = (config.num_heads,) * 3
        fused = f"{ours}/attention/query_key_value"
        rules += dense(fused, f"{theirs}.attn.Wqkv", bias=False, heads=heads)
        rules += dense(f"{ours}/attention/output", f"{theirs}.attn.Wo", bias=False)
        if i:  # the first block has none
            rules += _gamma(f"{ours}/attention_norm/norm", f"{theirs}.attn_norm")
        for part, name in enumerate(("hidden", "gate")):
            kernel, joined = f"{ours}/feed_forward/{name}/kernel", f"{theirs}.mlp.Wi.weight"
            rules.append(Rule(kernel, (joined,), "transposed", share=(part, 2)))
        rules += dense(f"{ours}/feed_forward/output", f"{theirs}.mlp.Wo", bias=False)
        rules += _gamma(f"{ours}/feed_forward_norm/norm", f"{theirs}.mlp_norm")
    return rules + _gamma("encoder/norm", "model.final_norm") + NAMES.rules(config)


FAMILIES = {
    "modernbert": FAMILY(
        _config,
        _rules,
        _config_file,
        aliases={"decoder.weight": ("model.embeddings.tok_embeddings.weight",)},
        heads=NAMES.weights,
        fields=_FIELDS,
        # Of training, and of an implementation on GPUs; `reference_compile` is in older files.
        harmless=(
            "embedding_dropout",
            "mlp_dropout",
            "initializer_cutoff_factor",
            "sparse_prediction",
            "sparse_pred_ignore_index",
            "deterministic_flash_attn",
            "reference_compile",
        ),
        names=NAMES.of_ours | dict(activation="hidden_activation", window="local_attention"),
    )
}
