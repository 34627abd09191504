"""T5, T5 v1.1, mT5 and MADLAD-400."""

from __future__ import annotations

from keras_transformer.checkpoints.families.base import (
    Family,
    Rule,
    activation,
    dense,
    scale,
    their_activation,
    token_id,
)
from keras_transformer.models import T5, T5Config


def _config(theirs, names):
    theirs = {"pad_token_id": 0, "eos_token_id": 1, **theirs}
    gated, _, name = theirs.get("feed_forward_proj", "relu").rpartition("-")
    if gated and name == "gelu":
        name = "gelu_new"
    return T5Config(
        vocab_size=theirs["vocab_size"],
        d_model=theirs["d_model"],
        d_ff=theirs["d_ff"],
        num_encoder_layers=theirs["num_layers"],
        num_decoder_layers=theirs.get("num_decoder_layers") or theirs["num_layers"],
        num_heads=theirs["num_heads"],
        head_dim=theirs["d_kv"],
        num_buckets=theirs.get("relative_attention_num_buckets", 32),
        max_distance=theirs.get("relative_attention_max_distance", 128),
        dropout=theirs.get("dropout_rate", 0.1),
        activation=activation(name),
        gated=bool(gated),
        # Whether the output has weights of its own is seen by them, not by the config: that of
        # mT5 says one thing and means another (`transformers` 5.23).
        tie_output="lm_head.weight" not in set(names),
        scale_output=_scales_output(theirs),
        epsilon=theirs.get("layer_norm_epsilon", 1e-6),
        max_length=theirs.get("n_positions", 512),
        pad_id=token_id(theirs, "pad_token_id"),
        bos_id=token_id(theirs, "decoder_start_token_id", "pad_token_id"),
        eos_id=token_id(theirs, "eos_token_id"),
    )


def _scales_output(theirs):
    if theirs["model_type"] == "mt5":
        return False
    tied = theirs.get("tie_word_embeddings", True) is not False
    return theirs.get("scale_decoder_outputs", tied)


def _config_file(config):
    name = their_activation(config.activation)
    name = "gelu" if config.gated and name == "gelu_new" else name
    return dict(
        architectures=["T5ForConditionalGeneration"],
        is_encoder_decoder=True,
        vocab_size=config.vocab_size,
        d_model=config.d_model,
        d_ff=config.d_ff,
        num_layers=config.num_encoder_layers,
        num_decoder_layers=config.num_decoder_layers,
        num_heads=config.num_heads,
        d_kv=config.head_dim,
        relative_attention_num_buckets=config.num_buckets,
        relative_attention_max_distance=config.max_distance,
        dropout_rate=config.dropout,
        feed_forward_proj=f"gated-{name}" if config.gated else name,
        tie_word_embeddings=config.scale_output,
        scale_decoder_outputs=config.scale_output,
        layer_norm_epsilon=config.epsilon,
        pad_token_id=config.pad_id,
        decoder_start_token_id=config.bos_id,
        eos_token_id=config.eos_id,
    )


def _rules(config: T5Config) -> list[Rule]:
    """Of T5, T5 v1.1, mT5 and MADLAD-400."""
    rules = []
    sides = dict(encoder=config.num_encoder_layers, decoder=config.num_decoder_layers)
    for side, layers in sides.items():
        attention = "attention" if side == "encoder" else "self_attention"
        for i in range(layers):
            ours, theirs = f"{side}/block_{i}", f"{side}.block.{i}.layer"
            query, key, value, output = (f"{theirs}.0.SelfAttention.{x}" for x in "qkvo")
            rules += dense(f"{ours}/{attention}/query_key_value", query, key, value, bias=False)
            rules += dense(f"{ours}/{attention}/output", output, bias=False)
            rules += scale(f"{ours}/{attention}_norm/norm", f"{theirs}.0.layer_norm")
            last = 1
            if side == "decoder":
                query, key, value, output = (f"{theirs}.1.EncDecAttention.{x}" for x in "qkvo")
                rules += dense(f"{ours}/cross_attention/query", query, bias=False)
                rules += dense(f"{ours}/cross_attention/key_value", key, value, bias=False)
                rules += dense(f"{ours}/cross_attention/output", output, bias=False)
                rules += scale(f"{ours}/cross_attention_norm/norm", f"{theirs}.1.layer_norm")
                last = 2
            layer = f"{theirs}.{last}.DenseReluDense"
            hidden = ("wi_0", "wi_1") if config.gated else ("wi",)
            for name, part in zip(("hidden", "gate"), hidden, strict=False):
                rules += dense(f"{ours}/feed_forward/{name}", f"{layer}.{part}", bias=False)
            rules += dense(f"{ours}/feed_forward/output", f"{layer}.wo", bias=False)
            rules += scale(f"{ours}/feed_forward_norm/norm", f"{theirs}.{last}.layer_norm")
        rules += scale(f"{side}/norm", f"{side}.final_layer_norm")
        table = f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        rules.append(Rule(f"{side}/relative_bias/embedding/embeddings", (table,)))
    rules.append(Rule("embedding/tokens/embeddings", ("shared.weight",)))
    if not config.tie_output:
        rules += dense("output", "lm_head", bias=False)
    return rules


_ALIASES = {
    "encoder.embed_tokens.weight": ("shared.weight",),
    "decoder.embed_tokens.weight": ("shared.weight",),
    "lm_head.weight": ("shared.weight", "decoder.embed_tokens.weight"),
}
# Of the first T5s, which computed positions there and used them nowhere.
_UNUSED = ("EncDecAttention.relative_attention_bias.weight",)

_T5 = Family(T5, _config, _rules, _config_file, _ALIASES, _UNUSED, free=frozenset({"max_length"}))
FAMILIES = {"t5": _T5, "mt5": _T5}
