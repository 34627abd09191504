"""Map of Whisper checkpoints."""

from __future__ import annotations

from keras_transformer.hub.families.family import (
    Family,
    Rule,
    dense,
    norm,
    table,
    their_activation,
    token_id,
    token_ids,
)
from keras_transformer.hub.families.fields import (
    ACTIVATIONS,
    OF_SIDES,
    SIDE_NAMES,
    SIDE_SYNONYMS,
    activation,
    exactly,
    pair_tokens,
    rate,
    size,
)
from keras_transformer.hub.families.general_fields import ENCODER_DECODER
from keras_transformer.models import Speech, SpeechConfig

_SIZES = ("vocab_size", "num_mel_bins", "d_model", "max_source_positions", "max_target_positions")
_FIELDS = (
    ENCODER_DECODER
    | {name: size() for name in (*_SIZES, *OF_SIDES)}
    | dict(
        dropout=rate(0.0),
        activation_function=activation("gelu"),
        scale_embedding=exactly(False),
        tie_word_embeddings=exactly(True),
        median_filter_width=exactly(7),
        **pair_tokens(50256, 50257, 50256),
    )
)
_HARMLESS = (  # fields of a classifier of sounds, and of masks in training
    "use_weighted_layer_sum",
    "classifier_proj_size",
    "apply_spec_augment",
    *(f"mask_{x}_{y}" for x in ("time", "feature") for y in ("prob", "length", "min_masks")),
)


def _config(theirs, names):
    """Return our config of a Whisper."""
    return SpeechConfig(
        vocab_size=theirs["vocab_size"],
        num_mels=theirs["num_mel_bins"],
        d_model=theirs["d_model"],
        d_ff=theirs["encoder_ffn_dim"],
        decoder_d_ff=theirs["decoder_ffn_dim"],
        num_encoder_layers=theirs["encoder_layers"],
        num_decoder_layers=theirs["decoder_layers"],
        num_heads=theirs["encoder_attention_heads"],
        num_decoder_heads=theirs["decoder_attention_heads"],
        dropout=theirs["dropout"],
        activation=ACTIVATIONS[theirs["activation_function"]],
        epsilon=1e-5,
        max_frames=2 * theirs["max_source_positions"],
        max_length=theirs["max_target_positions"],
        pad_id=token_id(theirs, "pad_token_id", "eos_token_id"),
        bos_id=token_id(theirs, "decoder_start_token_id"),
        eos_id=token_ids(theirs, "eos_token_id"),
    )


def _config_file(config):
    """Return the `config.json` of a Whisper."""
    return dict(
        architectures=["WhisperForConditionalGeneration"],
        is_encoder_decoder=True,
        vocab_size=config.vocab_size,
        num_mel_bins=config.num_mels,
        d_model=config.d_model,
        encoder_ffn_dim=config.d_ff,
        decoder_ffn_dim=config.decoder_sizes["d_ff"],
        encoder_layers=config.num_encoder_layers,
        decoder_layers=config.num_decoder_layers,
        encoder_attention_heads=config.num_heads,
        decoder_attention_heads=config.decoder_sizes["num_heads"],
        dropout=config.dropout,
        attention_dropout=0.0,
        activation_dropout=0.0,
        activation_function=their_activation(config.activation),
        scale_embedding=False,
        tie_word_embeddings=True,
        max_source_positions=config.max_frames // 2,
        max_target_positions=config.max_length,
        pad_token_id=config.pad_id,
        bos_token_id=config.eos_ids[0],
        eos_token_id=config.eos_id,
        decoder_start_token_id=config.bos_id,
        begin_suppress_tokens=None,
    )


def _attention(ours: str, theirs: str, heads: int, cross: bool = False) -> list[Rule]:
    """Return the rules of an attention layer.

    Whisper's keys have no bias; ours is set to zero. A bias of the keys adds the same number to
    all scores of a query, so it never changes the attention.
    """
    query, key, value = (f"{theirs}.{name}_proj" for name in "qkv")
    rules = dense(f"{ours}/output", f"{theirs}.out_proj")
    biases = f"{query}.bias", None, f"{value}.bias"
    if cross:
        rules += dense(f"{ours}/query", query)
        rules += dense(f"{ours}/key_value", key, value, bias=False, heads=(heads,) * 2)
        return [*rules, Rule(f"{ours}/key_value/bias", biases[1:], heads=(heads,) * 2)]
    fused = f"{ours}/query_key_value"
    rules += dense(fused, query, key, value, bias=False, heads=(heads,) * 3)
    return [*rules, Rule(f"{fused}/bias", biases, heads=(heads,) * 3)]


def _rules(config: SpeechConfig) -> list[Rule]:
    """Return the rules of all weights of a Whisper."""
    rules = []
    sides = dict(encoder=config.num_encoder_layers, decoder=config.num_decoder_layers)
    for side, layers in sides.items():
        attention, heads = "attention", config.num_heads
        if side == "decoder":
            attention, heads = "self_attention", config.decoder_sizes["num_heads"]
        for i in range(layers):
            ours, theirs = f"{side}/block_{i}", f"model.{side}.layers.{i}"
            rules += _attention(f"{ours}/{attention}", f"{theirs}.self_attn", heads)
            rules += norm(f"{ours}/{attention}_norm/norm", f"{theirs}.self_attn_layer_norm")
            if side == "decoder":
                path, name = f"{ours}/cross_attention", f"{theirs}.encoder_attn"
                rules += _attention(path, name, heads, cross=True)
                rules += norm(f"{path}_norm/norm", f"{name}_layer_norm")
            rules += dense(f"{ours}/feed_forward/hidden", f"{theirs}.fc1")
            rules += dense(f"{ours}/feed_forward/output", f"{theirs}.fc2")
            rules += norm(f"{ours}/feed_forward_norm/norm", f"{theirs}.final_layer_norm")
        rules += norm(f"{side}/norm", f"model.{side}.layer_norm")
    for i in (0, 1):
        path, name = f"source_embedding/convolution_{i}", f"model.encoder.conv{i + 1}"
        rules += dense(path, name, layout="convolution")
    positions = "model.encoder.embed_positions.weight"
    rules.append(Rule("source_embedding/positions", (positions,)))
    rules += table("target_embedding/tokens", "model.decoder.embed_tokens")
    return rules + table("target_embedding/positions", "model.decoder.embed_positions")


FAMILIES = {
    "whisper": Family(
        Speech,
        _config,
        _rules,
        _config_file,
        aliases={"proj_out.weight": ("model.decoder.embed_tokens.weight",)},
        prefix="model.",
        fields=_FIELDS,
        harmless=_HARMLESS,
        synonyms=SIDE_SYNONYMS | {"num_key_value_heads": "encoder_attention_heads"},
        names=SIDE_NAMES
        | dict(
            num_mels="num_mel_bins",
            max_frames="max_source_positions",
            max_length="max_target_positions",
        ),
        architectures=("WhisperForConditionalGeneration", "WhisperModel"),
    )
}
