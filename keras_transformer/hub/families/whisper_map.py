"""Map of Whisper checkpoints."""

from __future__ import annotations

from keras_transformer.hub.families.bart_map import blocks, write_sides
from keras_transformer.hub.families.family import (
    Family,
    Rule,
    dense,
    norm,
    table,
    token_id,
    token_ids,
)
from keras_transformer.hub.families.fields import (
    ACTIVATIONS,
    OF_SIDES,
    SIDE_NAMES,
    SIDE_SIZES,
    SIDE_SYNONYMS,
    activation,
    exactly,
    pair_tokens,
    rate,
    read_same,
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
_SAME = SIDE_SIZES | dict(  # our field -> Hugging Face's, with the same value
    vocab_size="vocab_size",
    num_mels="num_mel_bins",
    max_length="max_target_positions",
)
_HARMLESS = (  # fields of audio classifiers, and of masks in training
    "use_weighted_layer_sum",
    "classifier_proj_size",
    "apply_spec_augment",
    *(f"mask_{x}_{y}" for x in ("time", "feature") for y in ("prob", "length", "min_masks")),
)


def _config(theirs, names):
    """Return our config of a Whisper."""
    return SpeechConfig(
        activation=ACTIVATIONS[theirs["activation_function"]],
        epsilon=1e-5,
        max_frames=2 * theirs["max_source_positions"],
        pad_id=token_id(theirs, "pad_token_id", "eos_token_id"),
        bos_id=token_id(theirs, "decoder_start_token_id"),
        eos_id=token_ids(theirs, "eos_token_id"),
        **read_same(theirs, _SAME),
    )


def _config_file(config):
    """Return the `config.json` of a Whisper."""
    return write_sides(config, _SAME) | dict(
        architectures=["WhisperForConditionalGeneration"],
        scale_embedding=False,
        tie_word_embeddings=True,
        max_source_positions=config.max_frames // 2,
        bos_token_id=config.eos_ids[0],
        begin_suppress_tokens=None,
    )


def _rules(config: SpeechConfig) -> list[Rule]:
    """Return the rules of all weights of a Whisper."""
    rules = blocks(config, key_bias=False)
    for side in ("encoder", "decoder"):
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
        names=SIDE_NAMES | _SAME | {"max_frames": "max_source_positions"},
        architectures=("WhisperForConditionalGeneration", "WhisperModel"),
    )
}
