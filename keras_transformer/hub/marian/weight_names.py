"""Names of Marian's weights: rules that map them to ours, in both directions."""

from __future__ import annotations

from collections.abc import Sequence

from keras_transformer.config import TransformerConfig
from keras_transformer.hub.families.family import Rule

SHARED = "Wemb"
OUTPUT = "decoder_ff_logit_out"
# Endings of arrays that only quantized decoding reads.
UNUSED = ("_QuantMultA", "_QuantMultB")


def embedding(side: str, shared: bool) -> str:
    """Return the name of the token table of "encoder" or "decoder", or of the shared one."""
    return SHARED if shared else f"{side}_Wemb"


def rules_of(
    config: TransformerConfig,
    tied_layers: Sequence[int] = (),
    projection: bool = True,
    output_transposed: bool = True,
) -> list[Rule]:
    """Return the rules of all weights of a model in Marian's legacy layers.

    Args:
        config: Our config.
        tied_layers: For each block of the decoder, the number from 1 of the block that has its
            weights. (): each has its own.
        projection: Whether attention has an output projection (W_o).
        output_transposed: Whether an untied output has the shape (V, D); older files have (D, V).
    """
    rules = []
    for i in range(config.num_encoder_layers):
        ours, theirs = f"encoder/block_{i}", f"encoder_l{i + 1}"
        sizes = config.num_heads, projection
        rules += _attention(f"{ours}/attention", f"{theirs}_self", config, *sizes)
        rules += _feed_forward(ours, theirs, config)
    for i in range(config.num_decoder_layers):
        number = tied_layers[i] if tied_layers else i + 1
        ours, theirs = f"decoder/block_{i}", f"decoder_l{number}"
        sizes = config.decoder_sizes["num_heads"], projection
        if config.decoder_recurrence:
            rules += _recurrence(f"{ours}/recurrence", f"{theirs}_rnn", config)
        else:
            rules += _attention(f"{ours}/self_attention", f"{theirs}_self", config, *sizes)
        rules += _attention(f"{ours}/cross_attention", f"{theirs}_context", config, *sizes)
        rules += _feed_forward(ours, theirs, config)
    for side, name in (("encoder", "source_embedding"), ("decoder", "target_embedding")):
        if config.norm_first:
            rules += _norm(f"{side}/norm", f"{side}_top")
        if config.norm_embeddings:
            rules += _norm(f"{name}/norm", f"{side}_emb", "_pre")
        if side == "decoder" or not config.share_embeddings:
            table = embedding(side, config.share_embeddings)
            rules.append(Rule(f"{name}/tokens/embeddings", (table,)))
    if not config.tie_output:
        end, layout = ("Wt", "transposed") if output_transposed else ("W", "same")
        rules.append(Rule("output/kernel", (f"{OUTPUT}_{end}",), layout))
    if config.output_bias:
        rules.append(Rule("output_bias/bias", (f"{OUTPUT}_b",), "row"))
    return rules


def _dense(ours, *theirs, heads=()):
    """Return the rules of a dense layer; `theirs` are names of kernels and biases."""
    kernels, biases = theirs[::2], theirs[1::2]
    return [
        Rule(f"{ours}/kernel", kernels, heads=heads),
        Rule(f"{ours}/bias", biases, "row", heads=heads),
    ]


def _norm(ours, theirs, end=""):
    return [
        Rule(f"{ours}/gamma", (f"{theirs}_ln_scale{end}",), "row"),
        Rule(f"{ours}/beta", (f"{theirs}_ln_bias{end}",), "row"),
    ]


def _sub_layer_norm(ours, theirs, config):
    return _norm(f"{ours}_norm/norm", theirs, "_pre" if config.norm_first else "")


def _attention(ours, theirs, config, heads, projection):
    query, key, value, output = (
        (f"{theirs}_W{part}", f"{theirs}_b{part}") for part in ("q", "k", "v", "o")
    )
    if ours.endswith("cross_attention"):
        rules = _dense(f"{ours}/query", *query)
        rules += _dense(f"{ours}/key_value", *key, *value, heads=(heads,) * 2)
    else:
        rules = _dense(f"{ours}/query_key_value", *query, *key, *value, heads=(heads,) * 3)
    if projection:
        rules += _dense(f"{ours}/output", *output)
    return rules + _sub_layer_norm(ours, f"{theirs}_Wo", config)


def _recurrence(ours, theirs, config):
    rules = [Rule(f"{ours}/candidate/kernel", (f"{theirs}_W",))]
    rules += _dense(f"{ours}/forget", f"{theirs}_Wf", f"{theirs}_bf")
    return rules + _sub_layer_norm(ours, theirs if config.norm_first else f"{theirs}_ffn", config)


def _feed_forward(ours, theirs, config):
    ours, theirs = f"{ours}/feed_forward", f"{theirs}_ffn"
    rules = _dense(f"{ours}/hidden", f"{theirs}_W1", f"{theirs}_b1")
    rules += _dense(f"{ours}/output", f"{theirs}_W2", f"{theirs}_b2")
    return rules + _sub_layer_norm(ours, f"{theirs}_ffn", config)
