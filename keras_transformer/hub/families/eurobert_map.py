"""Map of EuroBERT checkpoints: blocks of a LLaMA without the causal mask."""

from __future__ import annotations

from keras_transformer.config import require
from keras_transformer.hub.families.encoder_map import EncoderNames
from keras_transformer.hub.families.family import (
    Rule,
    dense,
    scale,
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
from keras_transformer.hub.families.llama_map import INPUT_NORMS
from keras_transformer.hub.families.modernbert_map import FAMILY, SHARED_FIELDS, SIZES
from keras_transformer.hub.families.rotary_fields import read_rotary, rotary_fields
from keras_transformer.models import ModernBERTConfig

_POOLINGS = dict(bos="cls", mean="mean", late="late")  # theirs -> ours


class _Names(EncoderNames):
    """Names of the parts of heads; only the classifier of texts has two layers."""

    @property
    def heads(self) -> dict[str, str]:
        """Map from our heads to their architectures, without one of answers."""
        return {ours: name for ours, name in super().heads.items() if ours != "span_extraction"}

    def _rules(self, head):
        if head == "hidden":
            return []
        if head == "masked_lm":
            return dense("output", "lm_head", bias=False)
        rules = dense("pooler", self.pooler) if head == "sequence_classification" else []
        return rules + dense("classifier", self.classifier)


NAMES = _Names(
    "EuroBert",
    ("", ""),
    output_bias="",
    pooler="dense",
    classifier="classifier",
    sizes=SIZES | dict(num_kv_heads="num_key_value_heads", epsilon="rms_norm_eps"),
)
_FIELDS = SHARED_FIELDS | dict(
    num_key_value_heads=size(None),
    head_dim=size(None),
    rms_norm_eps=positive(1e-5),
    pad_token_id=token(128001),
    hidden_act=activation("silu"),
    attention_bias=exactly(False),
    mlp_bias=exactly(False),
    tie_word_embeddings=exactly(False),
    classifier_pooling=Field(f"one of {[*_POOLINGS]}", lambda x: x in [*_POOLINGS], "late"),
    rope_parameters=mapping(),
    rope_scaling=mapping(),
)


def _config(theirs, names):
    width = theirs["hidden_size"] // theirs["num_attention_heads"]
    head_dim = theirs["head_dim"] or width
    require(head_dim == width, "head_dim", head_dim, f"{width}, hidden_size by num_attention_heads")
    theta, scaling = read_rotary(theirs)
    name = "rope_scaling" if theirs["rope_scaling"] else "rope_parameters"
    require(scaling is None, name, theirs[name], "without a scaling")
    return ModernBERTConfig(
        activation=ACTIVATIONS[theirs["hidden_act"]],
        max_length=theirs["max_position_embeddings"],
        pad_id=token_id(theirs, "pad_token_id"),
        theta=theta,
        local_theta=None,
        norm="rms",
        embedding_norm=False,
        transform=False,
        pooling=_POOLINGS[theirs["classifier_pooling"]],
        tie_output=False,
        **NAMES.fields(theirs, names),
    )


def _config_file(config):
    poolings = {ours: name for name, ours in _POOLINGS.items()}
    return NAMES.config_file(config) | dict(
        num_key_value_heads=config.num_kv_heads or config.num_heads,
        hidden_act=their_activation(config.activation),
        pad_token_id=config.pad_id,
        classifier_pooling=poolings[config.pooling],
        attention_dropout=0.0,
        tie_word_embeddings=False,
        **rotary_fields(config.theta, None, config.max_length),
    )


def _rules(config: ModernBERTConfig) -> list[Rule]:
    rules = table("embedding/tokens", "model.embed_tokens")
    kv_heads = config.num_kv_heads or config.num_heads
    layers = {
        "attention/output": "self_attn.o_proj",
        "feed_forward/hidden": "mlp.gate_proj",
        "feed_forward/gate": "mlp.up_proj",
        "feed_forward/output": "mlp.down_proj",
    }
    for i in range(config.num_layers):
        ours, theirs = f"encoder/block_{i}", f"model.layers.{i}"
        rules += dense(
            f"{ours}/attention/query_key_value",
            *(f"{theirs}.self_attn.{x}_proj" for x in "qkv"),
            bias=False,
            heads=(config.num_heads, kv_heads, kv_heads),
        )
        for layer, name in layers.items():
            rules += dense(f"{ours}/{layer}", f"{theirs}.{name}", bias=False)
        for norm, name in INPUT_NORMS.items():
            rules += scale(f"{ours}/{norm.removeprefix('self_')}", f"{theirs}.{name}")
    return rules + scale("encoder/norm", "model.norm") + NAMES.rules(config)


FAMILIES = {
    "eurobert": FAMILY(
        _config,
        _rules,
        _config_file,
        aliases={},
        heads=NAMES.weights,
        fields=_FIELDS,
        also_read=("rope_theta", "partial_rotary_factor"),
        harmless=("pretraining_tp",),
        names=NAMES.of_ours
        | dict(
            max_length="max_position_embeddings", theta="rope_theta", pooling="classifier_pooling"
        ),
    )
}
