"""Our configs of models that CTranslate2 has converted, from shapes and numbers in their files."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from keras_transformer.config import SINUSOIDS, TransformerConfig, require
from keras_transformer.hub.ctranslate2_file import SIDES, ConvertedFile
from keras_transformer.hub.ctranslate2_writer import ACTIVATIONS
from keras_transformer.layers.embedding import sinusoids
from keras_transformer.models import SpeechConfig, T5Config

PAD = "<pad>"
SOURCE, TARGET = "encoder/embeddings_0/weight", "decoder/embeddings/weight"
OUTPUT, BIAS = "decoder/projection/weight", "decoder/projection/bias"
POSITIONS, RELATIVE = "position_encodings/encodings", "self_attention/relative_attention_bias"
# Members of CTranslate2's enum Activation, in its order.
_ENUM = ("RELU", "GELUTanh", "SWISH", "GELU", "GELUSigmoid", "Tanh", "Sigmoid")
_GELU = _ENUM.index("GELU")
_ACTIVATIONS = {_ENUM.index(theirs): ours for ours, theirs in ACTIVATIONS.items()}
_ROUNDING = 5e-3  # of sinusoids in bfloat16

Vocabularies = Mapping[str, Sequence[str]]


def kind_of(file: ConvertedFile) -> str:
    """Return the family whose map has the weights: "bart" (also Marian ...), "t5" or "whisper"."""
    if file.spec == "WhisperSpec":
        return "whisper"
    return "t5" if f"encoder/layer_0/{RELATIVE}" in file.places else "bart"


def starts_from_zero(file: ConvertedFile) -> bool:
    """Return whether the decoder's first input is zeros, as in Marian."""
    return bool(file.number("decoder/start_from_zero_embedding", 0))


def config_of(file: ConvertedFile, facts: Mapping[str, Any], vocabularies: Vocabularies) -> Any:
    """Return our config of a model.

    Args:
        file: Its `model.bin`.
        facts: Content of its `config.json`.
        vocabularies: The pieces of "source" and "target" in the order of their ids.

    Raises:
        ValueError: If a variable is missing or has a value that is not supported; names it.
    """
    make = {"bart": _transformer, "t5": _t5, "whisper": _speech}[kind_of(file)]
    return make(file, facts, *vocabularies.values())


def _transformer(file, facts, source, target):
    """Return our config of a Marian, BART, M2M-100, NLLB-200 or mBART, or a model of our own."""
    pad_id, from_zero = _id(PAD, PAD, target, source), starts_from_zero(file)
    is_padded = len(target) > file.shape(TARGET)[0]
    normed = {f"{side}/layernorm_embedding/gamma" in file.places for side in SIDES}
    require(len(normed) == 1, "layernorm_embedding", "of one side", "of both sides or none")
    positions = _positions(file)
    # With shared embeddings and no norms, our model has one table of positions for both sides.
    shares = positions["positions"] != "learned" or normed == {True}
    shares |= file.is_same(*(f"{side}/{POSITIONS}" for side in SIDES))
    return TransformerConfig(
        source_vocab_size=len(source),
        target_vocab_size=len(target),
        **_sizes(file),
        **positions,
        norm_first=bool(file.of_both_sides("pre_norm")),
        scale_embeddings=_scales_embeddings(file),
        norm_embeddings=normed == {True},
        epsilon=facts.get("layer_norm_epsilon") or 1e-5,
        output_bias=BIAS in file.places or is_padded or from_zero,
        share_embeddings=file.is_same(SOURCE, TARGET) and shares,
        tie_output=file.is_same(OUTPUT, TARGET),
        pad_id=pad_id,
        bos_id=pad_id if from_zero else _id_in(facts, "decoder_start_token", target),
        eos_id=_id_in(facts, "eos_token", target, source),
    )


def _t5(file, facts, source, target):
    """Return our config of a T5, mT5, MADLAD-400 or UMT5."""
    factor = _common(file, "queries_scale")
    require(factor == 1, "queries_scale", factor, "1, as in T5")
    require(file.is_same(SOURCE, TARGET), SOURCE, "another table", f"equal to {TARGET}")
    sizes = _sizes(file)
    for name in ("num_heads", "d_ff"):  # a T5 has the same on both sides
        other = sizes.pop("num_decoder_heads" if name == "num_heads" else "decoder_d_ff")
        require(other == sizes[name], f"{name} of the decoder", other, f"{sizes[name]}")
    scale, expected = file.number("decoder/scale_outputs", 1), sizes["d_model"] ** -0.5
    is_known = scale == 1 or math.isclose(scale, expected, rel_tol=1e-3)
    require(is_known, "decoder/scale_outputs", scale, f"1 or {expected}")
    pad = PAD if PAD in target else "<s>"  # MADLAD-400 pads with <s>
    config = T5Config(
        vocab_size=len(target),
        **sizes,
        head_dim=file.shape("encoder/layer_0/self_attention/linear_1/weight")[1]
        // sizes["num_heads"],
        num_buckets=file.shape(f"encoder/layer_0/{RELATIVE}")[0],
        max_distance=_common(file, "relative_attention_max_distance"),
        positions_by_layer=_has_tables(file),
        gated="encoder/layer_0/ffn/linear_0_noact/weight" in file.places,
        tie_output=file.is_same(OUTPUT, TARGET),
        scale_output=scale != 1,
        epsilon=facts.get("layer_norm_epsilon") or 1e-6,
        pad_id=_id(pad, PAD, target, source),
        bos_id=_id_in(facts, "decoder_start_token", target),
        eos_id=_id_in(facts, "eos_token", target, source),
    )
    if BIAS in file.places:  # our exports exclude padding and BOS by a bias
        bias = file.read(BIAS)
        bias[[config.pad_id, config.bos_id]] = 0
        require(not bias.any(), BIAS, "of other pieces", "zeros, except for padding and BOS")
    return config


def _speech(file, facts, source, target):
    """Return our config of a Whisper."""
    require(file.is_same(OUTPUT, TARGET), OUTPUT, "another table", f"equal to {TARGET}")
    for name, value in dict(pre_norm=1, scale_embeddings=0, start_from_zero_embedding=0).items():
        number = file.number(f"decoder/{name}", value)
        require(number == value, f"decoder/{name}", number, f"{value} in a Whisper")
    end = _id("<|endoftext|>", "EOS", target)
    return SpeechConfig(
        vocab_size=len(target),
        num_mels=file.shape("encoder/conv1/weight")[1],
        **_sizes(file),
        max_frames=2 * file.shape(f"encoder/{POSITIONS}")[0],
        max_length=file.shape(f"decoder/{POSITIONS}")[0],
        pad_id=end,
        bos_id=_id("<|startoftranscript|>", "BOS", target),
        eos_id=end,
    )


def _sizes(file):
    """Return the sizes of both sides, and the activation."""
    layers = (re.match(r"(\w+)/layer_(\d+)/", name) for name in file.places)
    counts = Counter(side for side, _ in {match.groups() for match in layers if match})
    usual = _GELU if kind_of(file) == "whisper" else None  # the encoder of a Whisper has no entry
    activation = file.of_both_sides("activation", usual)
    is_known = activation in _ACTIVATIONS
    accepted = f"one of {', '.join(ACTIVATIONS.values())}"
    require(
        is_known, f"activation in {file.path}", dict(enumerate(_ENUM)).get(activation), accepted
    )
    return dict(
        d_model=file.shape(TARGET)[1],
        d_ff=file.shape("encoder/layer_0/ffn/linear_0/weight")[0],
        decoder_d_ff=file.shape("decoder/layer_0/ffn/linear_0/weight")[0],
        num_encoder_layers=counts["encoder"],
        num_decoder_layers=counts["decoder"],
        num_heads=file.number("encoder/num_heads"),
        num_decoder_heads=file.number("decoder/num_heads"),
        activation=_ACTIVATIONS[activation],
    )


def _positions(file):
    """Return the fields of the positions: sinusoids if the tables hold them, else learned ones."""
    names = [f"{side}/{POSITIONS}" for side in SIDES]
    if missing := [name for name in names if name not in file.places]:
        raise ValueError(
            f"{file.path} lacks {missing[0]}: positions of this kind are not supported"
        )
    lengths = [file.shape(name)[0] for name in names]
    size, d_model = min(lengths), file.shape(TARGET)[1]
    tables = [file.read(name)[:size] for name in names[: 1 if file.is_same(*names) else 2]]
    kinds = [(kind, 0) for kind in SINUSOIDS] + [("sinusoidal_tensor2tensor", 2)]  # as in fairseq
    for kind, offset in kinds if d_model % 2 == 0 else ():
        expected = sinusoids(size + offset, d_model, kind)[offset:]
        if all(np.abs(table - expected).max(initial=0) < _ROUNDING for table in tables):
            return dict(positions=kind, position_offset=offset, max_length=size)
    accepted = f"{lengths[0]}, as in the encoder"
    require(lengths[0] == lengths[1], "number of positions of the decoder", lengths[1], accepted)
    return dict(positions="learned", max_length=size)


def _scales_embeddings(file):
    """Return whether embeddings are multiplied by sqrt(d_model), from a flag or a factor."""
    scale, usual = file.of_both_sides("scale_embeddings"), file.shape(TARGET)[1] ** 0.5
    if isinstance(scale, int):
        return bool(scale)
    is_usual = math.isclose(scale, usual, rel_tol=1e-3)
    require(is_usual or scale == 1, "scale_embeddings", scale, f"1 or {usual}")
    return is_usual


def _has_tables(file):
    """Return whether each block of a T5 has its own relative positions, as in UMT5."""
    tables = [name for name in file.places if name.endswith(f"/{RELATIVE}")]
    return not all(file.is_same(x, f"{x.split('/')[0]}/layer_0/{RELATIVE}") for x in tables)


def _common(file, end):
    """Return the value that all variables `.../end` have; raise ValueError if they differ."""
    values = {value for name, value in file.numbers().items() if name.endswith(f"/{end}")}
    require(len(values) == 1, f"{end} in {file.path}", values, "one number, equal in all layers")
    return values.pop()


def _id_in(facts, field, *vocabularies):
    return _id(facts.get(field), field, *vocabularies)


def _id(piece, name, target, source=None):
    """Return the id of a piece; raise ValueError if it is not in each vocabulary with this id."""
    require(piece in target, name, piece, "a piece of the target vocabulary")
    i = target.index(piece)
    same = source is None or source[i : i + 1] == [piece]
    require(same, name, piece, "a piece with one id in both vocabularies")
    return i
